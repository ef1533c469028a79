"""A table ranked by the plain shell, by one executor and by three, and the bytes that go between processes; see cluster.sh."""
import os, resource, shutil, sys, time

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from harness import cluster, cpu, shell

ROWS, FOLDER = int(sys.argv[1]), sys.argv[2]
COLUMNS, FILES, EXECUTORS = 50, 50, 3
# Rows of a row group: a multiple of those that are read at once, so that batches are the same however the files are dealt out.
GROUP = 16 * 8192


def write(name, rows, columns, files):
    """A table of 32-bit fractions and a label that depends on four of them."""
    os.mkdir(f"{FOLDER}/{name}")
    for file in range(files):
        n = (file + 1) * rows // files - file * rows // files
        random = lambda at: pyarrow.compute.random(n, initializer=file * 1000 + at).cast(pyarrow.float32())
        x = [random(at) for at in range(columns)]
        y = random(columns)
        for at, weight in [(2, 2.0), (5, -1.0), (7, 0.5), (8, 0.25)]:
            y = pyarrow.compute.add(y, pyarrow.compute.multiply(x[at], pyarrow.scalar(weight, pyarrow.float32())))
        table = pyarrow.table({**{f"x{at}": values for at, values in enumerate(x)}, "y": y})
        pyarrow.parquet.write_table(table, f"{FOLDER}/{name}/{file:03}.parquet", GROUP, compression="none", use_dictionary=False)
    return f"{FOLDER}/{name}/"


def asked(ask, sql, processes=()):
    """The answer, the seconds that it took with the start of the shell, and those that cores were busy with it, here and in the processes of a cluster."""
    busy = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) + sum(cpu(process) for process in processes)
    begun, before = time.monotonic(), busy()
    status, answer, error = ask(sql, seconds=900)
    assert status == 0 and answer.count("\n") > 1, error
    return answer, time.monotonic() - begun, busy() - before


def on_the_wire():
    """Bytes that were sent over loopback since the network was made."""
    with open("/proc/net/dev") as file:
        return next(int(line.split()[1]) for line in file if line.strip().startswith("lo:"))


def speed():
    begun = time.monotonic()
    table = write("big", ROWS, COLUMNS, FILES)
    size = sum(entry.stat().st_size for entry in os.scandir(table))
    print(f"{ROWS:,} rows x {COLUMNS} columns in {FILES} files, {size / 1e9:.1f} GB, written in {time.monotonic() - begun:.0f} s", flush=True)
    sql = f"SELECT * FROM omp('{table}', 'y', 5)"
    taken, busy, answers = {}, {}, set()
    with cluster(1) as one, cluster(EXECUTORS) as three:
        places = [("shell", shell, [])]
        places += [("1 executor" if some is one else f"{EXECUTORS} executors", some.ask, [some.scheduler, *some.executors]) for some in [one, three]]
        # In turn, because others disturb the machine; the least counts.
        for _ in range(2):
            for name, ask, processes in places:
                answer, seconds, cores = asked(ask, sql, processes)
                answers.add(answer)
                taken[name], busy[name] = min(seconds, taken.get(name, seconds)), min(cores, busy.get(name, cores))
                print(f"  {name}: {seconds:.1f} s, cores busy {cores:.1f} s", flush=True)
    print(answers.pop().strip())
    assert not answers, f"answers differ: {answers}"
    print("the same bytes in every answer")
    for name in taken:
        print(f"{name}: {taken[name]:.1f} s, {taken[name] / taken['shell']:.2f} times the shell; cores busy {busy[name]:.1f} s, {busy[name] / busy['shell']:.2f} times the shell")
    shutil.rmtree(table)


def wire():
    """Bytes between the shell, the scheduler and the executors for one query. Executors on one machine would read each other's files: they are told to send."""
    print(f"bytes on the wire, {EXECUTORS} executors of 2 tasks, 8 files")
    sent = {}
    with cluster(EXECUTORS) as three:
        for columns in [10, 50, 100, 200]:
            for rows in [100_000, 1_000_000]:
                table = write("wire", rows, columns, 8)
                before = on_the_wire()
                asked(three.ask, f"SET ballista.shuffle.force_remote_read = true; SELECT * FROM omp('{table}', 'y', 5)")
                sent[columns, rows] = on_the_wire() - before
                shutil.rmtree(table)
                size = rows * (columns + 1) * 4
                print(f"  {columns} columns, {rows:,} rows ({size / 1e6:.0f} MB): {sent[columns, rows]:,} bytes", flush=True)
    for columns in [10, 50, 100, 200]:
        ratio = sent[columns, 1_000_000] / sent[columns, 100_000]
        assert 0.8 < ratio < 1.25, f"ten times the rows send {ratio} times the bytes"
    grown = lambda columns: sent[columns, 1_000_000] - sent[10, 1_000_000]
    ratio = grown(200) / grown(100)
    print(f"10 times the rows: {sent[200, 1_000_000] / sent[200, 100_000]:.2f} times the bytes; from 100 to 200 columns {ratio:.1f} times what is beyond that of 10 columns")
    assert 3 < ratio < 5, ratio


def tasks():
    """What a task costs beside its rows: seconds and bytes, for the plan of a larger cluster."""
    table = write("tasks", 960_000, COLUMNS, 96)
    print(f"tasks of one query, {EXECUTORS} executors, {COLUMNS} columns, 96 files")
    with cluster(EXECUTORS) as three:
        for partitions in [6, 24, 96]:
            settings = f"SET ballista.shuffle.force_remote_read = true; SET datafusion.execution.target_partitions = {partitions}"
            before = on_the_wire()
            taken = [asked(three.ask, f"{settings}; SELECT * FROM omp('{table}', 'y', 5)")[1:] for _ in range(3)]
            sent = (on_the_wire() - before) / len(taken)
            print(f"  {partitions} tasks: {min(taken)[0]:.1f} s, {sent:,.0f} bytes", flush=True)


speed()
wire()
tasks()
