"""Clients that ask a server for small and for neural selections until the time is up; see server.sh."""
import collections, random, sys, threading, time

import psycopg

from harness import server

CONNECTIONS, SECONDS = int(sys.argv[1]), int(sys.argv[2])
SMALL = "SELECT feature FROM omp('sample.diabetes', 'label', 3)"
NEURAL = "SELECT feature FROM sequential_attention('sample.digits', 'label', 5, '{\"epochs\": 3}')"
# What a server may say when it is full.
LIMITS = {"53400", "53200", "53300", "57014"}


def client(one, at, until, times, errors):
    choose = random.Random(at)
    with psycopg.connect(one.url(), autocommit=True) as connection:
        while time.monotonic() < until:
            # A client in eight trains networks.
            kind, sql = ("neural", NEURAL) if at % 8 == 0 else ("small", SMALL)
            begun = time.monotonic()
            try:
                connection.execute(sql).fetchall()
                times[kind].append(time.monotonic() - begun)
            except psycopg.Error as error:
                errors[error.sqlstate] += 1
            time.sleep(choose.uniform(0, 0.2))


with server("--max-connections", str(CONNECTIONS + 4), "--max-selections-per-user", "64", "--max-selections", "64", trust=True) as one:
    with psycopg.connect(one.url(), autocommit=True) as connection:
        for sql in [SMALL, NEURAL]:
            connection.execute(sql).fetchall()
    before = one.metric("resident_memory_bytes")
    times, errors = collections.defaultdict(list), collections.Counter()
    until = time.monotonic() + SECONDS
    threads = [threading.Thread(target=client, args=(one, at, until, times, errors)) for at in range(CONNECTIONS)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    time.sleep(2)
    print(f"{CONNECTIONS} connections, {SECONDS} s")
    for kind, taken in sorted(times.items()):
        taken.sort()
        at = lambda share: taken[min(len(taken) - 1, int(share * len(taken)))]
        print(f"{kind}: {len(taken)} answers, median {at(0.5):.3f} s, 99 % within {at(0.99):.3f} s, longest {taken[-1]:.3f} s")
    print(f"errors: {dict(errors) or 'none'}")
    after = one.metric("resident_memory_bytes")
    print(f"memory: {before / 2**20:.0f} MiB before, {after / 2**20:.0f} MiB after; reserved {one.metric('memory_reserved_bytes'):.0f} bytes")
    assert set(errors) <= LIMITS, errors
    assert one.metric("memory_reserved_bytes") == 0 and one.running() == 0
