"""Orthogonal matching pursuit from a Parquet file to a ranking: Pursuit, scikit-learn, and the limit, which is the scan.

Everything is a process of its own, started cold, from file to answer; the contestants take turns and the median of the rounds
counts, so that a noisy machine is noisy to all of them. Printed are seconds, peak memory, and the ratios.
"""

import os
import statistics
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq

HERE = os.path.dirname(os.path.abspath(__file__))
SHELL = os.path.join(HERE, "..", "target", "release", "pursuit")
ROUNDS = int(os.environ.get("ROUNDS", "5"))

SKLEARN = """
import sys, time, numpy as np, pyarrow.parquet as pq
from sklearn.linear_model import OrthogonalMatchingPursuit
path, label, k = sys.argv[1], sys.argv[2], int(sys.argv[3])
start = time.time()
table = pq.read_table(path)
y = table.column(label).to_numpy().astype(np.float64)
names = [name for name in table.column_names if name != label]
x = np.column_stack([table.column(name).to_numpy(zero_copy_only=False) for name in names]).astype(np.float64)
x -= x.mean(0)
norm = np.sqrt((x * x).sum(0))
keep = norm > 0
x, names = x[:, keep] / norm[keep], [n for n, ok in zip(names, keep) if ok]
model = OrthogonalMatchingPursuit(n_nonzero_coefs=k, precompute=True, fit_intercept=False).fit(x, y - y.mean())
print(sorted(names[i] for i in np.flatnonzero(model.coef_)))
print(time.time() - start, file=sys.stderr)
"""


def run(command):
    """Seconds, peak megabytes, output."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    output = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"failed: {command[:3]}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024, output


def generate(rows, columns):
    """A float32 table with a planted label, in row groups of 100,000."""
    import numpy as np

    path = os.path.join(HERE, "data", f"planted_{rows}x{columns}.parquet")
    if os.path.exists(path):
        return path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    random = np.random.default_rng(0)
    schema = pa.schema([(f"c{j}", pa.float32()) for j in range(columns)] + [("label", pa.float32())])
    with pq.ParquetWriter(path + ".part", schema) as writer:
        for _ in range(0, rows, 100_000):
            x = random.standard_normal((min(100_000, rows), columns), dtype=np.float32)
            y = x[:, :10] @ np.linspace(3, 1, 10, dtype=np.float32) + random.standard_normal(len(x), dtype=np.float32)
            writer.write_table(pa.table([*x.T, y], schema=schema))
    os.rename(path + ".part", path)
    return path


def compare(path, label, k):
    names = pq.read_schema(path).names
    options = "{\"task\": \"regression\"}"
    omp = f"SELECT feature FROM omp('{path}', '{label}', {k}, '{options}')"
    scan = "SELECT " + ", ".join(f"sum({name})" for name in names) + f" FROM '{path}'"
    pursuit = [SHELL, "--quiet", "--format", "csv"]
    contestants = {
        "omp": [*pursuit, "-c", omp],
        "omp, one partition": [*pursuit, "--partitions", "1", "-c", omp],
        "scan (sum of every column)": [*pursuit, "-c", scan],
        "scan, one partition": [*pursuit, "--partitions", "1", "-c", scan],
        "scikit-learn": [sys.executable, "-c", SKLEARN, path, label, str(k)],
    }
    seconds, memory, answers = {}, {}, {}
    for _ in range(ROUNDS):
        # Not measured: it brings the file back into the page cache, which the largest contestant of the last round took.
        run(contestants["scan (sum of every column)"])
        for name, command in contestants.items():
            s, m, output = run(command)
            seconds.setdefault(name, []).append(s)
            memory[name] = max(memory.get(name, 0), m)
            answers[name] = output
    ours = sorted(answers["omp"].split()[1:])
    theirs = eval(answers["scikit-learn"])
    print(f"\n{os.path.basename(path)}: {pq.read_metadata(path).num_rows} x {len(names) - 1}, k = {k}, median of {ROUNDS}")
    print(f"the same {k} features as scikit-learn: {'yes' if ours == theirs else 'NO'}")
    for name in contestants:
        print(f"  {name:28} {statistics.median(seconds[name]):7.2f} s   {memory[name]:7.0f} MB")
    t = {name: statistics.median(seconds[name]) for name in contestants}
    print(f"  scikit-learn / omp           {t['scikit-learn'] / t['omp']:7.2f}")
    print(f"  omp / scan                   {t['omp'] / t['scan (sum of every column)']:7.2f}")
    print(f"  one partition / two          {t['omp, one partition'] / t['omp']:7.2f}   (scan: {t['scan, one partition'] / t['scan (sum of every column)']:.2f})")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        compare(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        compare(generate(5_000_000, 50), "label", 10)
