"""Write rivals.json next to this file: additive models, group LASSO, knockoffs and BART of other libraries, on the sample tables.

pip install numpy==2.4.6 scipy==1.16.3 pandas==3.1.1 pyarrow==26.0.1 pygam==0.12.0 skglm==0.5 knockpy==1.3.5 bartz==0.13.0
python rivals.py
"""

import json
import warnings
from functools import reduce
from importlib.metadata import version
from operator import add
from pathlib import Path

import numpy as np
import pandas as pd
from bartz.BART import gbart
from knockpy.knockoff_stats import LassoStatistic
from knockpy.knockoffs import FXSampler
from pygam import LinearGAM, s
from pygam.utils import b_spline_basis, gen_edge_knots
from skglm import GroupLasso

warnings.filterwarnings("ignore")
HERE = Path(__file__).resolve().parent
SAMPLES = HERE / ".." / ".." / "src" / "samples"


def sample(dataset, features=None):
    frame = pd.read_parquet(SAMPLES / f"{dataset}.parquet")
    label = frame.pop("label")
    label = label.to_numpy(float) if label.dtype.kind in "fi" else np.unique(label.astype(str), return_inverse=True)[1].astype(float)
    frame = frame[features] if features else frame
    return list(frame), frame.to_numpy(float), label


def additive(features, smoothness):
    """The variance of each smooth function as a share of the label's. A bend costs `smoothness` times the mean square of the column's splines."""
    names, x, y = sample("diabetes", features)
    terms = []
    for at in range(len(names)):
        splines = b_spline_basis(x[:, at], edge_knots=gen_edge_knots(x[:, at], "numerical"), n_splines=8, spline_order=3, sparse=False)
        terms.append(s(at, n_splines=8, spline_order=3, penalties="derivative", lam=smoothness * np.mean((np.asarray(splines) ** 2).sum(0))))
    model = LinearGAM(reduce(add, terms), tol=1e-10, max_iter=500).fit(x, y)
    shares = [float(np.var(model.partial_dependence(at, X=x)) / np.var(y)) for at in range(len(names))]
    return {"dataset": "diabetes", "smoothness": smoothness, "shares": dict(zip(names, shares))}


def grouped(dataset, groups):
    """The penalty at which each group comes in, to a ten thousandth. Columns of a group are orthonormal."""
    names, x, y = sample(dataset, [name for members in groups.values() for name in members])
    x, y = x - x.mean(0), (y - y.mean()) / y.std()
    places = [[names.index(name) for name in members] for members in groups.values()]
    for members in places:
        x[:, members] = np.linalg.qr(x[:, members])[0] * np.sqrt(len(y))
    weights = np.sqrt([len(members) for members in places])

    def inside(penalty):
        model = GroupLasso(groups=places, alpha=penalty, weights=weights, fit_intercept=False, tol=1e-12, max_iter=5000).fit(x, y)
        return np.array([np.abs(model.coef_[members]).max() > 1e-8 for members in places])

    top = max(np.linalg.norm(x[:, members].T @ y) / len(y) / weight for members, weight in zip(places, weights))
    penalties = top * np.geomspace(1, 2e-3, 60)
    found = np.array([inside(penalty) for penalty in penalties])
    enters = {}
    for at, group in enumerate(groups):
        if not found[:, at].any():
            continue
        first = int(np.argmax(found[:, at]))
        high, low = penalties[max(first - 1, 0)] * 1.001, penalties[first]
        while high / low > 1.0001:
            middle = np.sqrt(high * low)
            high, low = (high, middle) if inside(middle)[at] else (middle, low)
        enters[group] = float(low)
    return {"dataset": dataset, "groups": groups, "enters": enters}


DRAWS = 150


def imitated(features):
    """How often each feature comes before its knockoff on the path of the LASSO. The package draws no direction at random, so the rows are turned."""
    names, x, y = sample("diabetes", features)
    x, y = x - x.mean(0), y - y.mean()
    x, y = x / np.linalg.norm(x, axis=0), y / y.std()
    random, first = np.random.default_rng(0), np.zeros(len(names))
    for _ in range(DRAWS):
        turn = np.linalg.qr(random.standard_normal((len(y), len(y))))[0]
        turned = turn @ x
        imitation = FXSampler(X=turned, method="equicorrelated").sample_knockoffs()
        first += LassoStatistic().fit(turned, imitation, turn @ y, zstat="lars_path", antisym="sm") > 0
    return {"dataset": "diabetes", "draws": DRAWS, "first": dict(zip(names, (first / DRAWS).tolist()))}


# Friedman's function of five columns, each between 0 and 1; in SQL as here.
PLANTED = "10 * sin(pi() * u_age * u_bmi) + 20 * (u_bp - 0.5) * (u_bp - 0.5) + 10 * u_s3 + 5 * u_s6"


def trees():
    """Shares of the splits, of a label that five columns make."""
    names, x, _ = sample("diabetes")
    u = dict(zip(names, ((x - x.min(0)) / (x.max(0) - x.min(0))).T))
    y = 10 * np.sin(np.pi * u["age"] * u["bmi"]) + 20 * (u["bp"] - 0.5) ** 2 + 10 * u["s3"] + 5 * u["s6"]
    model = gbart(x.astype(np.float32), y.astype(np.float32), ntree=50, ndpost=1000, nskip=1000, seed=0)
    counts = np.asarray(model.varcount_mean, float)
    return {"dataset": "diabetes", "label": PLANTED, "shares": dict(zip(names, (counts / counts.sum()).tolist()))}


MEASURES = ["radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity", "concave_points", "symmetry", "fractal_dimension"]
content = {
    "versions": {name: version(name) for name in ["numpy", "scipy", "pandas", "pygam", "skglm", "knockpy", "bartz"]},
    "gam": [additive(["age", "sex", "bmi", "bp", "s3", "s5", "s6"], smoothness) for smoothness in [1.0, 0.01]],
    "group_lasso": [
        grouped("diabetes", {"lipids": ["s1", "s2", "s3", "s4"], "blood": ["s5", "s6"], "body": ["bmi", "bp"], "age": ["age"], "sex": ["sex"]}),
        grouped("breast_cancer", {name: [f"mean_{name}", f"worst_{name}"] for name in MEASURES}),
    ],
    "knockoffs": [imitated(["age", "sex", "bmi", "bp", "s3", "s5", "s6"])],
    "bart": [trees()],
}
lines = [f"{json.dumps(key)}: " + (json.dumps(value) if isinstance(value, dict) else "[\n " + ",\n ".join(map(json.dumps, value)) + "]") for key, value in content.items()]
(HERE / "rivals.json").write_text("{" + ",\n".join(lines) + "}\n")
