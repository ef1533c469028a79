"""Write the reference numbers (*.json) next to this file.

They come from scikit-learn, pandas, numpy and exact fractions, none of it our code.
The last digits depend on the BLAS: compare with a tolerance.

pip install numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 pandas==3.1.1 pyarrow==26.0.1
python make_fixtures.py
"""

import json
import platform
import warnings
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import scipy
import sklearn
from sklearn.linear_model import OrthogonalMatchingPursuit, lars_path, orthogonal_mp

HERE = Path(__file__).resolve().parent
SAMPLES = HERE / ".." / ".." / "src" / "samples"
VERSIONS = {
    "python": platform.python_version(),
    "numpy": np.__version__,
    "scipy": scipy.__version__,
    "scikit-learn": sklearn.__version__,
    "pandas": pd.__version__,
    "pyarrow": pyarrow.__version__,
}


def compact(value, depth):
    """JSON with one entry per line down to `depth`, so that diffs stay readable."""
    pad = "\n" + " " * (4 - depth)
    if depth and isinstance(value, dict):
        body = [f"{json.dumps(k)}: {compact(v, depth - 1)}" for k, v in value.items()]
        return "{" + pad + ("," + pad).join(body) + "}"
    if depth and isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        return "[" + pad + ("," + pad).join(compact(v, depth - 1) for v in value) + "]"
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def save(name, content):
    path = HERE / name
    path.write_text(compact({"versions": VERSIONS, **content}, 3) + "\n")
    print(f"{name}: {path.stat().st_size} bytes")


# --- omp.json, lars.json -------------------------------------------------------------------


class Standardised:
    """A sample: columns centred and of unit l2 norm, label centred."""

    def __init__(self, dataset):
        frame = pd.read_parquet(SAMPLES / f"{dataset}.parquet")
        label = frame.pop("label")
        if pd.api.types.is_numeric_dtype(label):
            self.label = "number"
            y = label.to_numpy(float)
        else:
            # Sorted classes: benign 0, malignant 1; class_0 0, class_1 1, class_2 2.
            self.label = "class index"
            y = np.unique(label.to_numpy(str), return_inverse=True)[1].astype(float)
        self.constant = [c for c in frame if frame[c].nunique() == 1]
        frame = frame.drop(columns=self.constant)
        x = frame.to_numpy(float)
        self.names = list(frame)
        self.mean = x.mean(axis=0)
        self.norm = np.linalg.norm(x - self.mean, axis=0)
        self.x = (x - self.mean) / self.norm
        self.y_mean = y.mean()
        self.y = y - self.y_mean

    def head(self, dataset):
        return {
            "dataset": dataset,
            "label": self.label,
            "n": len(self.y),
            "names": self.names,
            "constant_dropped": self.constant,
            "feature_mean": self.mean.tolist(),
            "feature_norm": self.norm.tolist(),
            "label_mean": float(self.y_mean),
            "label_norm": float(np.linalg.norm(self.y)),
        }

    def intercept(self, coef):
        return float(self.y_mean - coef @ self.mean)


def omp():
    wanted = {"diabetes": [1, 3, 5, 10], "breast_cancer": [3, 5, 10],
              "digits": [5, 10, 20], "wine": [3, 6]}
    sets = []
    for dataset, ks in wanted.items():
        s = Standardised(dataset)
        path = orthogonal_mp(s.x, s.y, n_nonzero_coefs=max(ks), return_path=True)
        order, r2, correlation, lead = [], [], [], []
        residual = s.y
        for step in range(max(ks)):
            beta = path[:, step]
            (new,) = [int(j) for j in np.flatnonzero(beta) if j not in order]
            # How far the winner is ahead of the next tells a reader whether rounding could
            # swap two features; scikit-learn's choice must be the largest of them.
            c = np.abs(s.x.T @ residual)
            c[order] = 0
            ranked = np.sort(c)[::-1]
            assert c[new] == ranked[0]
            correlation.append(float(ranked[0]))
            lead.append(float((ranked[0] - ranked[1]) / ranked[0]))
            order.append(new)
            residual = s.y - s.x @ beta
            r2.append(float(1 - residual @ residual / (s.y @ s.y)))
        cases = []
        for k in ks:
            fit = OrthogonalMatchingPursuit(n_nonzero_coefs=k, fit_intercept=False)
            coef = fit.fit(s.x, s.y).coef_
            assert set(np.flatnonzero(coef)) == set(order[:k])
            original = coef / s.norm
            cases.append({
                "k": k,
                "features": [s.names[j] for j in order[:k]],
                "coef": original[order[:k]].tolist(),
                "coef_standardised": coef[order[:k]].tolist(),
                "intercept": s.intercept(original),
                "r2": r2[:k],
            })
        print(f"  omp {dataset}: smallest lead {min(lead):.1e}")
        sets.append({**s.head(dataset),
                     "order": [s.names[j] for j in order], "r2": r2,
                     "correlation": correlation, "lead": lead, "cases": cases})
    save("omp.json", {"sets": sets})


def lars():
    sets = []
    for dataset, steps in {"diabetes": 500, "breast_cancer": 15, "digits": 20}.items():
        s = Standardised(dataset)
        n = len(s.y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it warns where it gives up on a column
            alphas, final, coefs = lars_path(s.x, s.y, method="lasso", max_iter=steps)
        alphas = alphas * n  # scikit-learn's alpha is max |x' r| / n
        coefs = coefs.T.copy()
        assert np.isclose(alphas[0], np.abs(s.x.T @ s.y).max(), rtol=1e-12)
        # A coefficient that goes to zero at a knot is left there as rounding noise.
        coefs[np.abs(coefs) < 1e-9 * np.abs(coefs).max()] = 0
        nonzero = coefs != 0
        segments, order, events = [], [], []
        before = np.zeros(len(s.names), bool)
        for i in range(len(alphas) - 1):
            # Between two knots the path is linear: active is what is nonzero at either end.
            now = nonzero[i] | nonzero[i + 1]
            entered = [s.names[j] for j in np.flatnonzero(now & ~before)]
            dropped = [s.names[j] for j in np.flatnonzero(before & ~now)]
            order = [f for f in order if f not in dropped] + entered
            events.append({"knot": i, "entered": entered, "dropped": dropped})
            segments.append(order)
            before = now
        assert len(alphas) == steps + 1 or alphas[-1] < 1e-6
        if alphas[-1] < 1e-6:
            alphas[-1] = 0  # the end of the full path, least squares, up to rounding
        # The optimality conditions of the lasso hold at every knot.
        for alpha, beta in zip(alphas, coefs):
            c = s.x.T @ (s.y - s.x @ beta)
            slack = 1e-9 * alphas[0]
            assert np.all(np.abs(c) <= alpha + slack)
            assert np.allclose(c[beta != 0], alpha * np.sign(beta[beta != 0]), atol=slack)
        original = coefs / s.norm
        r2 = [float(1 - np.sum((s.y - s.x @ b) ** 2) / (s.y @ s.y)) for b in coefs]
        drops = sum(len(e["dropped"]) for e in events)
        print(f"  lars {dataset}: {len(alphas)} knots, {drops} dropped")
        sets.append({**s.head(dataset),
                     "alphas": alphas.tolist(), "r2": r2, "events": events,
                     "active_after_knot": segments,
                     "active_final": [s.names[j] for j in final],
                     "coef_standardised": coefs.tolist(), "coef": original.tolist(),
                     "intercept": [s.intercept(b) for b in original]})
    save("lars.json", {"sets": sets})


# --- moments.json --------------------------------------------------------------------------


def cross(x, w):
    """Fill with the mean, centre, sum of w * x x'."""
    known = ~np.isnan(x)
    mean = np.array([np.average(x[k, j], weights=w[k]) for j, k in enumerate(known.T)])
    d = np.where(known, x, mean) - mean
    return {"n": len(x), "weight_sum": float(w.sum()),
            "known_weight": (known * w[:, None]).sum(axis=0).tolist(),
            "mean": mean.tolist(), "cross": (d.T @ (w[:, None] * d)).tolist()}


def moments():
    rng = np.random.default_rng(20240607)
    n = 60
    numeric = ["a", "b", "c", "y"]
    levels = ["blue", "green", "red", "white"]
    a = rng.normal(3, 2, n)
    table = pd.DataFrame({
        "a": a,
        "b": 1000 + 50 * rng.normal(size=n) + 10 * a,
        "c": rng.integers(-5, 20, n).astype(float),
        "y": 0.5 * a + rng.normal(size=n),
        "flag": rng.random(n) < 0.4,
        "colour": rng.choice(levels, n, p=[0.4, 0.3, 0.2, 0.1]),
    })
    table["colour"] = table["colour"].astype(object)
    for name, share in {"a": 0.1, "b": 0.2, "c": 0.05, "colour": 0.15}.items():
        table.loc[rng.random(n) < share, name] = None
    weight = np.round(rng.uniform(0.2, 4, n), 3)

    # A missing text is a level of its own; where rows with NULLs are dropped there is no such level.
    dummies = pd.get_dummies(table["colour"], prefix="colour", prefix_sep="=", dtype=float, dummy_na=True)
    design = pd.concat([table[numeric], table[["flag"]].astype(float), dummies], axis=1)
    assert list(design) == numeric + ["flag"] + [f"colour={v}" for v in levels + ["nan"]]
    x = design.to_numpy(float)
    complete = ~np.isnan(x).any(axis=1) & table["colour"].notna().to_numpy()
    dropped = cross(x[complete][:, :-1], np.ones(complete.sum()))
    assert all(m > 0 for m in dropped["mean"][-4:])  # every level is still there

    def values(name):
        out = [None if pd.isna(v) else v for v in table[name].tolist()]
        return [None if v is None else int(v) for v in out] if name == "c" else out

    types = {"a": "float64", "b": "float64", "c": "int64", "y": "float64",
             "flag": "bool", "colour": "text"}
    save("moments.json", {
        "rows": n,
        "columns": [{"name": c, "type": t, "values": values(c)} for c, t in types.items()],
        "weight": weight.tolist(),
        "names": list(design),
        "unweighted": cross(x, np.ones(n)),
        "weighted": cross(x, weight),
        "complete_rows": dropped,
    })


# --- recarith.json -------------------------------------------------------------------------


def exact(columns):
    """Means and centred cross products without any rounding before the end."""
    n = len(columns[0])
    columns = [[Fraction(v) for v in c] for c in columns]
    means = [sum(c) / n for c in columns]
    centred = [[v - m for v in c] for c, m in zip(columns, means)]
    sums = [[sum(p * q for p, q in zip(u, v)) for v in centred] for u in centred]
    with localcontext() as context:
        context.prec = 60

        def decimal(f):
            return Decimal(f.numerator) / Decimal(f.denominator)

        corr = [[float(decimal(sums[i][j]) / (decimal(sums[i][i]) * decimal(sums[j][j])).sqrt())
                 for j in range(len(columns))] for i in range(len(columns))]
    return {"mean": [float(m) for m in means],
            "cross": [[float(v) for v in row] for row in sums], "correlation": corr}


def recarith():
    rng = np.random.default_rng(20240608)
    n = 1000
    time = 1_700_000_000_000_000_000 + rng.integers(0, 10**12, n)
    z, t = rng.normal(size=n), rng.normal(size=n)
    offset, tiny = 1e9 + z, t * 1e-8
    label = 3 * (time - 1_700_000_000_000_000_000) / 1e12 + 2 * z - t + 0.1 * rng.normal(size=n)
    columns = {"time": time.tolist(), "offset": offset.tolist(),
               "tiny": tiny.tolist(), "label": label.tolist()}
    save("recarith.json", {
        "rows": n,
        "names": list(columns),
        "columns": [{"name": c, "type": "int64" if c == "time" else "float64", "values": v}
                    for c, v in columns.items()],
        "exact": exact(list(columns.values())),
        # float64 holds a time of today only to 256 ns: what is left after that conversion.
        "exact_after_f64": exact([[float(v) for v in c] for c in columns.values()]),
    })


if __name__ == "__main__":
    print(", ".join(f"{k} {v}" for k, v in VERSIONS.items()))
    omp()
    lars()
    moments()
    recarith()
