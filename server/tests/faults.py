"""What fails in a cluster, and what becomes of the query: processes are killed, stopped and started again. `server/test.sh` runs it."""
import signal, subprocess, tempfile, threading, time, urllib.parse

from harness import PURSUIT, cluster, cpu, run, shell, table, until

# Trains for minutes if nobody stops it.
LONG = "SELECT * FROM sequential_attention('{}', label => y, k => 2, epochs => 100000)"


class Asked:
    """A query that runs while something happens."""

    def __init__(self, one, sql):
        self.answer = None
        self.thread = threading.Thread(target=self.ask, args=(one, sql))
        self.thread.start()

    def ask(self, one, sql):
        self.answer = one.ask(sql, seconds=300)

    def wait(self):
        self.thread.join(300)
        return self.answer


def at_work(executors, asked, seconds=0.3):
    """Waits until one of the executors has worked on a query for a while."""
    before = [cpu(executor) for executor in executors]
    busy = lambda: [executor for executor, then in zip(executors, before) if cpu(executor) - then > seconds]
    until(busy, 60, "an executor works")
    assert asked.answer is None, f"the query was over before anything happened: {asked.answer}"
    return busy()[0]


def executors_that_die_or_sleep_are_replaced():
    with tempfile.TemporaryDirectory() as folder, cluster(3) as one:
        t = table(folder, "t", 2_000_000, 12)
        sql = f"SELECT rank, feature, score FROM omp('{t}', 'y', 4)"
        expected = shell(sql)[1]
        # Slow: it is asleep for a while, and its part is waited for.
        asked = Asked(one, sql)
        slow = at_work(one.executors, asked)
        slow.send_signal(signal.SIGSTOP)
        time.sleep(one.timeout / 4)
        slow.send_signal(signal.SIGCONT)
        assert asked.wait()[1] == expected, asked.answer
        # Asleep for longer than the scheduler waits: the others do its part.
        asked = Asked(one, sql)
        asleep = at_work(one.executors, asked)
        asleep.send_signal(signal.SIGSTOP)
        assert asked.wait()[1] == expected, asked.answer
        asleep.send_signal(signal.SIGCONT)
        # Dead, while it multiplies.
        asked = Asked(one, sql)
        at_work(one.executors, asked).send_signal(signal.SIGKILL)
        assert asked.wait()[1] == expected, asked.answer


def a_scheduler_comes_back():
    with tempfile.TemporaryDirectory() as folder, cluster(2) as one:
        t = table(folder, "t", 4_000, 6)
        sql = f"SELECT rank, feature, score FROM omp('{t}', 'y', 4)"
        asked = Asked(one, LONG.format(t))
        at_work(one.executors, asked)
        one.scheduler.kill()
        one.scheduler.wait()
        begun = time.monotonic()
        status, _, error = asked.wait()
        assert status != 0 and error and time.monotonic() - begun < 30, (status, error)
        one.start_scheduler()
        one.until_it_answers()
        assert one.ask(sql)[1] == shell(sql)[1]


def who_goes_away_stops_the_job():
    with tempfile.TemporaryDirectory() as folder, cluster(2) as one:
        t = table(folder, "t", 4_000, 6)
        for gone, way in enumerate([signal.SIGKILL, signal.SIGINT], 1):
            before = [cpu(executor) for executor in one.executors]
            # Whoever was started in the background ignores Ctrl-C, and so would the client.
            client = subprocess.Popen([PURSUIT, "-q", "--cluster", one.url, "-c", LONG.format(t)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            until(lambda: any(cpu(executor) - then > 1 for executor, then in zip(one.executors, before)), 60, "an executor trains")
            client.send_signal(way)
            client.wait()
            until(lambda: one.logged().count("its client is gone") == gone, 10, "the scheduler learns of it")

            def is_idle():
                before = [cpu(executor) for executor in one.executors]
                time.sleep(0.5)
                return all(cpu(executor) - then < 0.1 for executor, then in zip(one.executors, before))

            until(is_idle, 10, "the executors rest")
        # Its place is free again.
        one.until_it_answers()


def an_executor_of_another_make_is_sent_away():
    """Whoever would run tasks without our functions learns it when it comes."""
    with cluster(1) as one:
        call = f"http://127.0.0.1:{one.port}/ballista.protobuf.SchedulerGrpc/RegisterExecutor"
        done = subprocess.run(["curl", "-s", "-i", "--http2-prior-knowledge", "-A", "ballista", "-H", "content-type: application/grpc", "-H", "te: trailers",
                               "--data-binary", "@-", call], input=bytes(5), capture_output=True, timeout=30)
        said = urllib.parse.unquote(done.stdout.decode())
        assert "grpc-status: 9" in said and "start it with `pursuit executor`" in said, (said, done.stderr)


run([executors_that_die_or_sleep_are_replaced, a_scheduler_comes_back, who_goes_away_stops_the_job, an_executor_of_another_make_is_sent_away])
