"""Clients that ask a server for small and for neural selections until the time is up; see server.sh."""
import collections, os, random, sys, threading, time

import psycopg

from harness import cpu, server

CONNECTIONS, SECONDS = int(sys.argv[1]), int(sys.argv[2])
# Longest pause of a client between two small selections. With none, 56 clients are a queue on two cores, and the time of an answer is the length of that queue.
PAUSE = float(sys.argv[3]) if len(sys.argv) > 3 else 2.0
SMALL = "SELECT feature FROM omp('sample.diabetes', 'label', 3)"
NEURAL = "SELECT feature FROM sequential_attention('sample.diabetes', 'label', 3, '{\"epochs\": 3}')"
LARGE = "SELECT feature FROM sequential_attention('sample.digits', 'label', 5, '{\"epochs\": 3}')"
# What a server may say when it is full.
LIMITS = {"53400", "53200", "53300", "57014"}
# What is asked of it: a small selection within so many seconds while networks are trained, and so much memory more at the end than at the start.
SMALL_SECONDS, MORE_BYTES = 1.0, 32 * 2**20


def client(one, at, until, times, errors):
    choose = random.Random(at)
    # A client in eight trains networks without a pause, the first of them large ones.
    kind, sql = ("small", SMALL) if at % 8 else ("neural", NEURAL) if at else ("large neural", LARGE)
    with psycopg.connect(one.url(), autocommit=True) as connection:
        while time.monotonic() < until:
            begun = time.monotonic()
            try:
                connection.execute(sql).fetchall()
                times[kind].append(time.monotonic() - begun)
            except psycopg.Error as error:
                errors[error.sqlstate] += 1
            time.sleep(choose.uniform(0, PAUSE) if kind == "small" else 0)


def load(one, seconds):
    """Seconds of all answers by kind, and the errors."""
    times, errors = collections.defaultdict(list), collections.Counter()
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=client, args=(one, at, until, times, errors)) for at in range(CONNECTIONS)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return times, errors


def memory(one):
    """Bytes that an idle server has; it gives them back by and by."""
    time.sleep(10)
    return one.metric("resident_memory_bytes")


def busy_cores():
    """Seconds that the machine's cores were busy."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, soft_irq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")


with server("--max-connections", str(CONNECTIONS + 4), "--max-selections-per-user", "64", "--max-selections", "64", trust=True) as one:
    # Threads, caches and the allocator's pages are there after a while, and stay.
    load(one, min(30, SECONDS / 10))
    before = memory(one)
    others = lambda: busy_cores() - cpu(one.process) - time.process_time()
    begun, others_before, own_before = time.monotonic(), others(), cpu(one.process)
    times, errors = load(one, SECONDS)
    seconds, own, others = time.monotonic() - begun, cpu(one.process) - own_before, others() - others_before
    after, reserved = memory(one), one.metric("memory_reserved_bytes")
    print(f"{CONNECTIONS} connections, {SECONDS} s, pauses up to {PAUSE} s; of {os.cpu_count()} cores the server had {own / seconds:.2f}, others {others / seconds:.2f}")
    for kind, taken in sorted(times.items()):
        taken.sort()
        at = lambda share: taken[min(len(taken) - 1, int(share * len(taken)))]
        print(f"{kind}: {len(taken)} answers, median {at(0.5):.3f} s, 99 % within {at(0.99):.3f} s, longest {taken[-1]:.3f} s")
    print(f"memory: {before / 2**20:.0f} MiB before, {after / 2**20:.0f} MiB after; reserved {reserved:.0f} bytes")
    print(f"errors: {dict(errors) or 'none'}")
    verdicts = {
        "no error but declared limits": set(errors) <= LIMITS,
        f"every small selection within {SMALL_SECONDS} s": max(times["small"]) <= SMALL_SECONDS,
        "networks were trained all the while": len(times["neural"]) > 0,
        f"memory back to its start, {MORE_BYTES >> 20} MiB allowed": after <= before + MORE_BYTES and reserved == 0 and one.running() == 0,
    }
    for what, is_so in verdicts.items():
        print("pass" if is_so else "FAIL", what)
sys.exit(0 if all(verdicts.values()) else 1)
