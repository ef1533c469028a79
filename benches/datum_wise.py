"""Datum-wise classification on real data: the figures of the paper, an L1 classifier on the same splits, and the speed of training.

    benches/datum_wise.sh DATA [PEER.py]      DATA holds the sets as Parquet files, label last

Prints a table for each set and draws breast_cancer.png, wine.png, sonar.png, heart.png, mnist_blocks.png and growth.png into benches/data. With the path of a
numpy version of the same method (a module with `fit` and `infer`), training time is compared in this run. ONLY='curves growth' runs some of the parts,
SETS='sonar' some of the curves, SPLITS and SEED say how many splits and which. The part `classify` needs the shell, PURSUIT or target/release/pursuit.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.environ.get("DATUM_WISE", os.path.join(HERE, "target", "release", "datum_wise"))
OUT = os.path.join(HERE, "data")
DATA = sys.argv[1]
SPLITS = int(os.environ.get("SPLITS", "30"))
SEED = int(os.environ.get("SEED", "0"))
ONLY = os.environ.get("ONLY", "curves pima adult mnist speed growth classify").split()
PURSUIT = os.environ.get("PURSUIT", os.path.join(HERE, "..", "target", "release", "pursuit"))


def load(name):
    return pd.read_parquet(os.path.join(DATA, name + ".parquet"))


def halves(rows, splits):
    """Random halves: True is to learn from."""
    random = np.random.default_rng(SEED)
    masks = np.zeros((splits, rows), bool)
    for mask in masks:
        mask[random.permutation(rows)[: rows // 2]] = True
    return masks


def folds(rows, n, times):
    """Each row is decided once in every n, for so many orders of the rows."""
    masks = np.ones((n * times, rows), bool)
    for time in range(times):
        order = np.random.default_rng(SEED + time).permutation(rows)
        for fold in range(n):
            masks[time * n + fold, order[fold::n]] = False
    return masks


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


def l1(frame, masks):
    """(sparsity, accuracy) of L1 logistic regression and of an L1 support vector machine, for a grid of penalties."""
    x, y = frame.iloc[:, :-1].to_numpy(float), frame.iloc[:, -1].to_numpy()
    curves = {}
    for name, make in {
        "L1 logistic": lambda c: LogisticRegression(penalty="l1", solver="liblinear", C=c),
        "L1 SVM": lambda c: LinearSVC(penalty="l1", dual=False, C=c),
    }.items():
        points = []
        for c in np.geomspace(0.0003, 30, 20):
            scores = []
            for learn in masks:
                z = (x - x[learn].mean(0)) / np.maximum(x[learn].std(0), 1e-12)
                model = OneVsRestClassifier(make(c)).fit(z[learn], y[learn])
                used = (np.max([np.abs(one.coef_[0]) for one in model.estimators_], 0) > 0).mean()
                scores.append((1 - used, (model.predict(z[~learn]) == y[~learn]).mean()))
            points.append(np.mean(scores, 0))
        curves[name] = sorted(map(tuple, points))
    return curves


def at_sparsity(curve, sparsity):
    return float(np.interp(sparsity, [s for s, _ in curve], [a for _, a in curve]))


def curves():
    grids = {
        "breast_cancer": [0, 0.001, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.1, 0.15, 0.2],
        "wine": [0, 0.01, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3],
        "heart": [0, 0.001, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15],
        "sonar": [0.001, 0.003, 0.01, 0.015, 0.02],
    }
    for name in os.environ.get("SETS", " ".join(grids)).split():
        grid, frame = grids[name], load(name)
        masks = halves(len(frame), min(SPLITS, 12) if name == "sonar" else SPLITS)
        results = run(frame, masks, [{"lambda": price} for price in grid])
        budgets = run(frame, masks, [{"lambda": 0.05, "budget": budget} for budget in (2, 3)]) if name == "wine" else []
        rivals = l1(frame, masks)
        print(f"\n{name}: {len(frame)} rows, {frame.shape[1] - 1} features, {len(masks)} splits in halves")
        print("lambda  accuracy  sparsity  features  share of rows with <= 3   L1 logistic   L1 SVM   (accuracy at that sparsity)")
        ours = []
        for price, result in zip(grid, results):
            accuracy, sparsity = mean(result, "accuracy"), mean(result, "sparsity")
            ours.append((sparsity, accuracy))
            there = [at_sparsity(curve, sparsity) for curve in rivals.values()]
            print(f"{price:6}  {accuracy:8.4f}  {sparsity:8.3f}  {mean(result, 'features'):8.2f}  {mean(result, 'at_most_3'):23.3f}"
                  f"   {there[0]:11.4f}   {there[1]:6.4f}   {'above both' if accuracy > max(there) else ''}")
        for budget, result in zip((2, 3), budgets):
            print(f"lambda 0.05, budget {budget}: accuracy {mean(result, 'accuracy'):.4f} at sparsity {mean(result, 'sparsity'):.3f}")
        figure, axes = plt.subplots(figsize=(6, 4))
        axes.plot(*zip(*sorted(ours)), "o-", label="datum_wise")
        for rival, curve in rivals.items():
            axes.plot(*zip(*curve), "--", label=rival)
        axes.set(xlabel="sparsity", ylabel="accuracy", title=name)
        axes.legend()
        figure.savefig(os.path.join(OUT, name + ".png"), dpi=100)


PIMA = {"pregnancies": 1, "plasma_glucose": 17.61, "blood_pressure": 1, "skin_thickness": 1, "insulin": 22.78, "bmi": 1, "pedigree": 1, "age": 1}


def pima():
    frame = load("diabetes_pima")
    print("\nPima, Turney's test costs (2.10 for drawing blood paid once), 5 folds, six times; total = tests + mistakes - gain for being right")
    print("penalty  gain  total cost  tests  accuracy")
    for penalty in (400, 800):
        for gain in (50, 0):
            setting = {
                "lambda": 1, "costs": PIMA, "next_costs": {"plasma_glucose": 15.51, "insulin": 20.68},
                "cost_groups": {"blood": ["plasma_glucose", "insulin"]}, "cost_matrix": [[-gain, penalty], [penalty, -gain]],
            }
            (result,) = run(frame, folds(len(frame), 5, 6), [setting])
            print(f"{penalty:7}  {gain:4}  {mean(result, 'total_cost'):10.2f}  {mean(result, 'cost'):5.2f}  {mean(result, 'accuracy'):8.4f}")


def adult():
    train, test = load("adult_train"), load("adult_test")
    frame = pd.concat([train, test])
    mask = np.arange(len(frame)) < len(train)
    grid = [0, 0.003, 0.005, 0.01, 0.02]
    print(f"\nAdult, 14 attributes, texts as one feature each; {len(train)} rows to learn from, {len(test)} to decide")
    print("lambda  accuracy  features  seconds of training")
    for price, result in zip(grid, run(frame, [mask], [{"lambda": price} for price in grid])):
        print(f"{price:6}  {mean(result, 'accuracy'):8.4f}  {mean(result, 'features'):8.2f}  {mean(result, 'train_seconds'):8.1f}")


def mnist():
    rows, decide = int(os.environ.get("MNIST_ROWS", "2000")), 2000
    train, test = load("mnist_train").iloc[:rows], load("mnist_test").iloc[:decide]
    frame = pd.concat([train, test])
    names = list(frame.columns[:-1])
    groups = collections.defaultdict(list)
    for pixel, name in enumerate(names):
        y, x = divmod(pixel, 28)
        groups[f"block_{y // 7}{x // 7}"].append(name)
    setting = {"lambda": 0.005, "gamma": 0.05, "image": [28, 28], "groups": groups, "states": 10, "iterations": 6}
    (result,) = run(frame, [np.arange(len(frame)) < rows], [setting])
    print(f"\nMNIST, 4 x 4 blocks, {rows} rows to learn from, {decide} to decide, a touching block {setting['lambda']}, any other {setting['gamma']}")
    print(f"accuracy {mean(result, 'accuracy'):.4f}, blocks {mean(result, 'features'):.2f} of 16, {mean(result, 'train_seconds'):.0f} s of training")
    print("share of the rows of each digit that ask for each block, row by row")
    figure, axes = plt.subplots(1, 10, figsize=(14, 2))
    for digit in range(10):
        used = result[0]["usage"].get(str(digit), {})
        grid = np.array([[used.get(f"block_{y}{x}", 0.0) for x in range(4)] for y in range(4)])
        print(digit, " | ".join(" ".join(f"{share:.2f}" for share in row) for row in grid), f"  mean {grid.sum():.1f}")
        axes[digit].imshow(grid, vmin=0, vmax=1, cmap="gray_r")
        axes[digit].set(title=str(digit), xticks=[], yticks=[])
    figure.savefig(os.path.join(OUT, "mnist_blocks.png"), dpi=80)


def speed():
    """The contestants take turns, and the best of the rounds counts: whatever else the machine does only adds to it."""
    frame = load("breast_cancer")
    masks = halves(len(frame), 1)
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
