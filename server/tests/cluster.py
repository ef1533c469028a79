"""A scheduler and executors as processes on loopback: the same answers as on one machine, also when an executor dies. `server/test.sh` runs it."""
import os, shutil, signal, subprocess, tempfile, threading, time
from contextlib import contextmanager

from harness import PURSUIT, run, until

PARTS = 4
PORT = 50150


def shell(sql, *arguments, seconds=180):
    done = subprocess.run([PURSUIT, "-q", "--format", "csv", *arguments, "-c", sql], capture_output=True, text=True, timeout=seconds)
    return done.returncode, done.stdout, done.stderr


def data(folder, name, rows, columns):
    """A table in some files."""
    os.mkdir(os.path.join(folder, name))
    features = ", ".join(f"sin(i * {0.37 + at * 0.61}) AS x{at}" for at in range(columns))
    for part in range(PARTS):
        source = f"SELECT i, {features} FROM (SELECT value AS i FROM generate_series({part * rows // PARTS + 1}, {(part + 1) * rows // PARTS}))"
        sql = f"COPY (SELECT * EXCLUDE (i), 2 * x0 - x3 + 0.5 * x1 + 0.1 * sin(i * 9.7) AS y, i % 3 AS g FROM ({source})) TO '{folder}/{name}/{part}.parquet'"
        status, _, error = shell(sql)
        assert status == 0, error
    return f"{folder}/{name}/"


@contextmanager
def cluster(executors, port=PORT, heartbeat=1, timeout=4):
    folder = tempfile.mkdtemp()
    log = open(os.path.join(folder, "log"), "w+")
    start = lambda *arguments: subprocess.Popen([PURSUIT, *arguments], stdout=subprocess.PIPE, stderr=log, text=True)
    processes = [start("scheduler", "--listen", f"127.0.0.1:{port}", "--executor-timeout", str(timeout))]
    assert processes[0].stdout.readline().startswith("scheduler")
    try:
        for _ in range(executors):
            processes.append(start("executor", "--scheduler", f"127.0.0.1:{port}", "--tasks", "2", "--heartbeat", str(heartbeat)))
            assert processes[-1].stdout.readline().startswith("executor")
        url = f"df://127.0.0.1:{port}"
        with open(os.path.join(folder, "one.csv"), "w") as file:
            file.write("a\n1\n")
        until(lambda: shell(f"SELECT a FROM '{folder}/one.csv'", "--cluster", url)[1] == "a\n1\n", 30, "the cluster answers")
        yield url, processes
    except BaseException:
        log.flush()
        with open(log.name) as file:
            print("---- log ----", file.read()[-4000:])
        raise
    finally:
        for process in processes:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def answers_are_equal():
    with tempfile.TemporaryDirectory() as folder, cluster(2) as (url, _):
        table = data(folder, "t", 40_000, 8)
        for call in [f"omp('{table}', 'y', 4)", f"omp('{table}', label => 'y', k => 3, exclude => ['g'])", f"sequential_lasso('{table}', 'y', 3)",
                     f"lasso('{table}', 'y', 3)", f"correlation('{table}', 'y', 5)", f"omp('{table}', label => 'y', k => 2, partition_by => 'g')"]:
            sql = f"SELECT * FROM {call}"
            here, there = shell(sql), shell(sql, "--cluster", url)
            assert here[0] == 0, here
            assert sorted(there[1].splitlines()) == sorted(here[1].splitlines()), (call, here, there)
        joined = f"SELECT a.rank, a.feature, b.feature AS other FROM omp('{table}', 'y', 2) a JOIN lasso('{table}', 'y', 2) b ON a.rank = b.rank ORDER BY a.rank"
        assert shell(joined, "--cluster", url)[1] == shell(joined)[1]
        # More than the 16 MiB that a message of Ballista's holds by default: moments of 1,000 columns, twice.
        wide = data(folder, "wide", 400, 900)
        sql = f"SELECT rank, feature FROM omp('{wide}', 'y', 3)"
        assert shell(sql, "--cluster", url)[1] == shell(sql)[1]


def selectors_that_read_rows_see_all_of_them():
    """Their rows come from the cluster, which filters them and cuts them to the columns that count."""
    with tempfile.TemporaryDirectory() as folder, cluster(2) as (url, _):
        table = data(folder, "t", 4_000, 6)
        for call in [f"random_forest('{table}', 'y', 3)", f"sequential_attention('{table}', 'y', 3, '{{\"epochs\": 5}}')",
                     f"omp((SELECT * FROM '{table}' WHERE x0 > 0), label => 'y', k => 3, reads => 'rows')",
                     f"evaluate('{table}', label => 'y', model => 'linear', selector => 'omp', k => 2, folds => 3)"]:
            sql = f"SELECT * FROM {call}"
            here, there = shell(sql), shell(sql, "--cluster", url)
            assert here[0] == 0 and here[1].count("\n") > 2, here
            assert there[1] == here[1], (call, here, there)
        status, plan, error = shell(f"EXPLAIN SELECT * FROM random_forest('{table}', 'y', 3)", "--cluster", url)
        assert "SelectExec" in plan and "DistributedQueryExec" in plan, (plan, error)
        # Tables that only the shell has.
        sql = "SELECT feature FROM omp('sample.diabetes', 'label', 2)"
        assert shell(sql, "--cluster", url)[1] == shell(sql)[1]


def an_executor_that_dies_is_replaced():
    with tempfile.TemporaryDirectory() as folder, cluster(2) as (url, processes):
        table = data(folder, "t", 2_000_000, 12)
        sql = f"SELECT rank, feature, score FROM omp('{table}', 'y', 4)"
        expected = shell(sql)[1]
        answers = []
        thread = threading.Thread(target=lambda: answers.append(shell(sql, "--cluster", url)))
        thread.start()
        time.sleep(1.0)
        assert not answers, "the query was over before the executor died"
        processes[1].send_signal(signal.SIGKILL)
        thread.join(120)
        assert answers[0][1] == expected, answers


def a_scheduler_that_is_not_there_is_said():
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("a\n1\n")
        file.flush()
        status, _, error = shell(f"SELECT a FROM '{file.name}'", "--cluster", "df://127.0.0.1:1")
        assert status != 0 and error, error
    status, _, error = shell("SELECT 1 AS a", "--cluster", "nonsense")
    assert status != 0 and "df://" in error, error


run([answers_are_equal, selectors_that_read_rows_see_all_of_them, an_executor_that_dies_is_replaced, a_scheduler_that_is_not_there_is_said])
