"""What benches/filters.sh prints: seconds of one call of a peer, the data in memory before, and of ours, the process from its start on, the median of three.

python benches/filters.py peer data.parquet label call …
"""

import os
import resource
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq


def spent(work, who):
    """Seconds of the clock and of the processors, and what came of it."""
    before, start = resource.getrusage(who), time.perf_counter()
    result = work()
    after, wall = resource.getrusage(who), time.perf_counter() - start
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result


def mutual_info_classif(x, y):
    from sklearn.feature_selection import mutual_info_classif

    return spent(lambda: mutual_info_classif(x, y), resource.RUSAGE_SELF)[:2] + ("",)


def lars_path(x, y):
    from sklearn.linear_model import lars_path

    x = x - x.mean(axis=0)
    x /= np.linalg.norm(x, axis=0)
    y = y.astype(float) - y.mean()
    return spent(lambda: lars_path(x, y, method="lasso"), resource.RUSAGE_SELF)[:2] + ("",)


def abess(x, y):
    import abess

    # It refuses columns that do not vary.
    x, y = np.ascontiguousarray(x[:, x.std(axis=0) > 0]), y.astype(float)
    wall, cpu, model = spent(lambda: abess.LinearRegression(support_size=50).fit(x, y), resource.RUSAGE_SELF)
    left = y - model.predict(x)
    return wall, cpu, f", R² {1 - float(left @ left) / float(((y - y.mean()) ** 2).sum()):.6f}"


def ours(call):
    command = [os.environ["PURSUIT"], "-q", "-c", f"SELECT max(train_score) AS r2 FROM {call}"]
    runs = [spent(lambda: subprocess.run(command, capture_output=True, text=True, check=True), resource.RUSAGE_CHILDREN) for _ in range(3)]
    return sorted(runs, key=lambda run: run[0])[1]


peer, path, label = sys.argv[1:4]
frame = pq.read_table(path).to_pandas()
y = frame.pop(label).to_numpy()
wall, cpu, note = globals()[peer](np.ascontiguousarray(frame.to_numpy(float)), y)
print(f"{peer:<24} {wall:8.2f} s, of processors {cpu:8.2f} s{note}")
for call in sys.argv[4:]:
    own_wall, own_cpu, run = ours(call)
    r2 = [line.strip("| ") for line in run.stdout.splitlines() if line.strip("| ").startswith("0.")]
    print(f"{call.split('(')[0]:<24} {own_wall:8.2f} s, of processors {own_cpu:8.2f} s, R² {' '.join(r2)}; {wall / own_wall:.1f} times as fast, {cpu / own_cpu:.1f} times by processors")
