"""Datum-wise classification: the speed of training, its growth with the features, and of deciding a million rows. Its accuracy is in benches/papers.

    benches/datum_wise.sh DATA [PEER.py]      DATA holds breast_cancer.parquet, label last

Draws growth.png into benches/data. With the path of a numpy version of the same method (a module with `fit` and `infer`), training time is compared in this run.
ONLY='growth' runs some of the parts. The part `classify` needs the shell, PURSUIT or target/release/pursuit.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.environ.get("DATUM_WISE", os.path.join(HERE, "target", "release", "datum_wise"))
OUT = os.path.join(HERE, "data")
DATA = sys.argv[1]
ONLY = os.environ.get("ONLY", "speed growth classify").split()
PURSUIT = os.environ.get("PURSUIT", os.path.join(HERE, "..", "target", "release", "pursuit"))


def load(name):
    return pd.read_parquet(os.path.join(DATA, name + ".parquet"))


def half(rows):
    """A random half, as the only split: True is to learn from."""
    mask = np.zeros((1, rows), bool)
    mask[0, np.random.default_rng(0).permutation(rows)[: rows // 2]] = True
    return mask


def run(frame, masks, settings):
    """A list of results for each setting."""
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        frame.to_csv(path("table.csv"), index=False)
        with open(path("splits.txt"), "w") as file:
            file.writelines("".join("1" if learn else "0" for learn in mask) + "\n" for mask in masks)
        with open(path("settings.json"), "w") as file:
            json.dump(settings, file)
        lines = subprocess.run([PROGRAM, path("table.csv"), path("splits.txt"), path("settings.json")], check=True, capture_output=True)
    results = [json.loads(line) for line in lines.stdout.decode().splitlines()]
    return [results[at : at + len(masks)] for at in range(0, len(results), len(masks))]


def mean(results, field):
    return float(np.mean([result[field] for result in results]))


def speed():
    """The contestants take turns, and the best of the rounds counts: whatever else the machine does only adds to it."""
    frame = load("breast_cancer")
    masks = half(len(frame))
    peer = None
    if len(sys.argv) > 2:
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[2])))
        peer = __import__(os.path.basename(sys.argv[2])[:-3])
    print("\nTraining on breast cancer (341 rows, 10 features; 10 states of each row, 10 iterations), seconds, best of 10 rounds")
    x, y, learn = frame.iloc[:, :-1].to_numpy(float), frame.iloc[:, -1].to_numpy(int), masks[0]
    z = (x - x[learn].mean(0)) / x[learn].std(0)
    for price in (0.01, 0.1):
        ours, theirs = [], []
        for _ in range(10):
            (result,) = run(frame, np.repeat(masks, 3, 0), [{"lambda": price, "states": 10, "iterations": 10}])
            ours.append(min(r["train_seconds"] for r in result))
            if peer:
                start = time.perf_counter()
                thetas, act = peer.fit(z[learn], y[learn], 2, price, rng=np.random.default_rng(0))
                theirs.append(time.perf_counter() - start)
        print(f"lambda {price}: pursuit {min(ours):.4f}, accuracy {mean(result, 'accuracy'):.3f} at sparsity {mean(result, 'sparsity'):.3f}")
        if peer:
            said, known = peer.infer(thetas[-1][1], act, z[~learn])
            accuracy, sparsity = (said == y[~learn]).mean(), 1 - known.mean()
            print(f"             numpy   {min(theirs):.4f}, accuracy {accuracy:.3f} at sparsity {sparsity:.3f}; {min(theirs) / min(ours):.1f} times ours")


def growth():
    print("\nGrowth with the number of features: 500 rows, 4 of the features matter, 10 states of each row, 3 iterations")
    print("features  seconds  seconds / features^2 * 1e6")
    random = np.random.default_rng(0)
    points = []
    for features in (10, 25, 50, 100, 200):
        x = random.normal(size=(600, features))
        y = (x[:, 0] + x[:, 1] - x[:, 2] + 0.5 * x[:, 3] > 0).astype(int)
        frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(features)]).assign(label=y)
        (result,) = run(frame, [np.arange(600) < 500], [{"lambda": 0.01, "states": 10, "iterations": 3}])
        seconds = mean(result, "train_seconds")
        points.append((features, seconds))
        print(f"{features:8}  {seconds:7.3f}  {seconds / features ** 2 * 1e6:.1f}", flush=True)
    figure, axes = plt.subplots(figsize=(5, 4))
    axes.loglog(*zip(*points), "o-", label="training")
    for power in (2, 3):
        axes.loglog([n for n, _ in points], [points[-1][1] * (n / points[-1][0]) ** power for n, _ in points], ":", label=f"features^{power}")
    axes.set(xlabel="features", ylabel="seconds", title="500 rows, 3 iterations")
    axes.legend()
    figure.savefig(os.path.join(OUT, "growth.png"), dpi=100)


def classify():
    """Deciding a million rows against reading them, each a process of its own that also starts the shell; start-up is measured and subtracted."""
    frame, random = load("breast_cancer"), np.random.default_rng(0)
    rows = frame.iloc[random.integers(len(frame), size=1_000_000)].reset_index(drop=True)
    features = list(frame.columns[:-1])
    rows[features] += random.normal(scale=0.01, size=(len(rows), len(features)))
    with tempfile.TemporaryDirectory() as folder:
        table, policy, small = (os.path.join(folder, name + ".parquet") for name in ("rows", "policy", "small"))
        rows.to_parquet(table, row_group_size=100_000)
        frame.to_parquet(small)
        shell = lambda sql: subprocess.run([PURSUIT, "-q", "-c", sql], check=True, capture_output=True).stdout.decode()
        label = frame.columns[-1]
        shell(f"COPY (SELECT * FROM datum_wise_policy('{small}', '{label}', NULL, '{{\"lambda\": 0.03}}')) TO '{policy}'")
        queries = {
            "start": "SELECT 1",
            "scan": f"SELECT {', '.join(f'sum({name})' for name in features)} FROM '{table}'",
            "decide": f"SELECT sum(CAST(prediction AS DOUBLE)), sum(n_features), sum(cost), sum(score) FROM datum_wise_classify('{table}', '{label}', NULL, '{{\"policy\": \"{policy}\"}}')",
            "all columns": f"SELECT count(prediction), count(features), sum(n_features), sum(cost), sum(score), count(correct) FROM datum_wise_classify('{table}', '{label}', NULL, '{{\"policy\": \"{policy}\"}}')",
        }
        times = {name: [] for name in queries}
        for _ in range(5):
            for name, sql in queries.items():
                start = time.perf_counter()
                shell(sql)
                times[name].append(time.perf_counter() - start)
    best = {name: min(of) for name, of in times.items()}
    scan = best["scan"] - best["start"]
    print(f"\nDeciding 1,000,000 rows of {len(features)} features by a kept policy; best of 5, start of the shell ({best['start']:.3f} s) subtracted")
    print(f"scan of the same columns {scan:.3f} s")
    for name in ("decide", "all columns"):
        print(f"{name}: {best[name] - best['start']:.3f} s, {(best[name] - best['start']) / scan:.2f} times the scan")


os.makedirs(OUT, exist_ok=True)
for part in ONLY:
    globals()[part]()
    sys.stdout.flush()
