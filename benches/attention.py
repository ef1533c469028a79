"""Driven by attention.sh."""

import json
import os
import re
import statistics
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PURSUIT = os.environ.get("PURSUIT", os.path.join(HERE, "..", "target", "release", "pursuit"))
DATA = os.path.join(HERE, "data")


def pursuit(sql):
    """Runs queries, returns the output, the seconds and the megabytes."""
    command = ["/usr/bin/time", "-f", "%e %M", PURSUIT, "--format", "json", "-c", sql]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    seconds, kilobytes = done.stderr.split()[-2:]
    return done.stdout, float(seconds), float(kilobytes) / 1024


def rows(sql):
    return json.loads(pursuit(sql)[0].strip().splitlines()[-1])


# --- speed ----------------------------------------------------------------------------------------------------------

UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def select_seconds(sql):
    """The operator's own time for the selection, from rows in memory to the ranking; warm, as the rival's: the second time in one process."""
    out = pursuit(f"EXPLAIN ANALYZE {sql}; EXPLAIN ANALYZE {sql}")[0]
    out = out.encode().decode("unicode_escape", "ignore").replace("Âµ", "µ")
    number, unit = re.findall(r"select_time=([\d.]+)(ns|µs|ms|s)\b", out)[-1]
    return float(number) * UNITS[unit]


def peak():
    """Gflop/s of a large f32 product in numpy's BLAS on all cores, best of five."""
    a = np.random.default_rng(0).standard_normal((2000, 2000)).astype(np.float32)
    best = min(timed(lambda: a @ a) for _ in range(5))
    return 2 * 2000**3 / best / 1e9


def timed(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def speed(directory):
    limit = peak()
    print(f"f32 gemm peak, numpy's BLAS, all cores: {limit:.0f} Gflop/s")
    print("| | JAX, warm | Pursuit | ratio | Gflop/s | share of peak |\n|---|---|---|---|---|---|")
    for name, epochs, examples, inputs in (("mnist", 20, 60000, 784), ("isolet", 50, 6238, 617)):
        path = os.path.join(directory, f"{name}_train.parquet")
        sql = f"SELECT * FROM sequential_attention('{path}', label => label, k => 50, epochs => {epochs})"
        ours, theirs = [], []
        for _ in range(3):
            jax = subprocess.run([sys.executable, os.path.join(HERE, "attention_jax.py"), path, "50", str(epochs)], capture_output=True, text=True)
            theirs.append(float(jax.stdout.split()[-1]))
            ours.append(select_seconds(sql))
        ours, theirs = statistics.median(ours), statistics.median(theirs)
        rate = 4 * 67 * inputs * 128 * (examples // 128) * epochs / ours / 1e9
        print(f"| {name}, {epochs} epochs, k = 50 | {theirs:.2f} s | {ours:.2f} s | **{theirs / ours:.1f}** | {rate:.0f} | {rate / limit:.0%} |", flush=True)


# --- one pass -------------------------------------------------------------------------------------------------------

PLANTED = {f"f{j}" for j in (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 20, 21, 30)}


def one_pass():
    os.makedirs(DATA, exist_ok=True)
    path = os.path.join(DATA, "clicks.parquet")
    if not os.path.exists(path):
        subprocess.run([sys.executable, os.path.join(HERE, "clicks.py"), "5000000", path], check=True)
    scan = "SELECT " + ", ".join(f"sum(f{j})" for j in range(40)) + f" FROM '{path}'"
    call = f"SELECT feature FROM sequential_attention('{path}', label => click, k => 15, passes => 'one', max_memory => '200MB')"
    found = {row["feature"] for row in rows(call)}
    ours, scans = [], []
    for _ in range(5):
        pursuit(scan)
        scans.append(pursuit(scan)[1:])
        ours.append(pursuit(call)[1:])
    ours, scans = min(ours), min(scans)
    print("| | one pass | scan | ratio | planted features found |\n|---|---|---|---|---|")
    print(f"| 5,000,000 × 40, k = 15 | {ours[0]:.2f} s, {ours[1]:.0f} MB | {scans[0]:.2f} s, {scans[1]:.0f} MB | {ours[0] / scans[0]:.1f} | {len(found & PLANTED)} of 15 |")


{"speed": speed, "one_pass": one_pass}[sys.argv[1]](*sys.argv[2:])
