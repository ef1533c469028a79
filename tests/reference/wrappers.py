"""Write wrappers.json next to this file: what scikit-learn's wrappers and BorutaPy choose on the sample tables.

pip install numpy==2.4.6 scikit-learn==1.9.1 pandas==3.1.1 pyarrow==26.0.1 boruta==0.4.3
python wrappers.py
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
from boruta import BorutaPy
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import RFE, SequentialFeatureSelector
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler

HERE = Path(__file__).resolve().parent
SAMPLES = HERE / ".." / ".." / "src" / "samples"


def read(dataset, number=True):
    frame = pd.read_parquet(SAMPLES / f"{dataset}.parquet")
    label = frame.pop("label").to_numpy()
    if number and label.dtype == object or str(label.dtype) == "str":
        label = np.unique(label.astype(str), return_inverse=True)[1]
    frame = frame[[c for c in frame if frame[c].nunique() > 1]]
    return list(frame), StandardScaler().fit_transform(frame.to_numpy(float)), label


def elimination(dataset, model):
    """Features, the last to go first."""
    names, x, y = read(dataset)
    rows = len(y)
    fit = LinearRegression() if model == "linear" else LogisticRegression(C=1 / (0.01 * rows), tol=1e-12, max_iter=100_000, solver="newton-cholesky")
    ranking = RFE(fit, n_features_to_select=1).fit(x, y.astype(float) if model == "linear" else y).ranking_
    return {"dataset": dataset, "model": model, "order": [names[i] for i in np.argsort(ranking)]}


def sequential(dataset, direction, sizes):
    """Sets that are chosen by R² on the rows themselves."""
    names, x, y = read(dataset)
    everything = np.arange(len(y))
    sets = []
    for k in sizes:
        chosen = SequentialFeatureSelector(LinearRegression(), n_features_to_select=k, direction=direction, scoring="r2",
                                           cv=[(everything, everything)]).fit(x, y.astype(float)).get_support()
        sets.append(sorted(name for name, is_in in zip(names, chosen) if is_in))
    return {"dataset": dataset, "direction": direction, "sizes": sizes, "sets": sets}


def permuted(dataset, split):
    """What R² of least squares on other rows loses, five hundred times dealt out: rows whose `split` is even learn, the others judge."""
    frame = pd.read_parquet(SAMPLES / f"{dataset}.parquet")
    label = frame.pop("label").to_numpy(float)
    learns = (frame[split].astype(int) % 2 == 0).to_numpy()
    x = frame.to_numpy(float)
    fit = LinearRegression().fit(x[learns], label[learns])
    judged = permutation_importance(fit, x[~learns], label[~learns], scoring="neg_mean_squared_error", n_repeats=500, random_state=0)
    # The variance of the judges about the mean that was learnt.
    variance = np.mean((label[~learns] - label[learns].mean()) ** 2)
    return {"dataset": dataset, "split": split, "names": list(frame), "lost": (judged.importances_mean / variance).tolist()}


def boruta(dataset):
    frame = pd.read_parquet(SAMPLES / f"{dataset}.parquet")
    label = frame.pop("label").to_numpy()
    kind = RandomForestRegressor if label.dtype.kind in "fi" else RandomForestClassifier
    # As many columns for a split as ours, and R's: a third for numbers, the root for classes.
    per_split = 1 / 3 if kind is RandomForestRegressor else "sqrt"
    found = BorutaPy(kind(n_jobs=1, max_depth=7, max_features=per_split, random_state=0), n_estimators=100, max_iter=40, two_step=False, random_state=0)
    found.fit(frame.to_numpy(float), label)
    names = np.array(list(frame))
    return {"dataset": dataset, "confirmed": sorted(names[found.support_]), "rejected": sorted(names[~found.support_ & ~found.support_weak_])}


content = {
    "versions": {"numpy": np.__version__, "scikit-learn": sklearn.__version__, "pandas": pd.__version__, "boruta": "0.4.3"},
    "rfe": [elimination("diabetes", "linear"), elimination("breast_cancer", "linear"), elimination("wine", "logistic"), elimination("breast_cancer", "logistic")],
    "sequential": [sequential("diabetes", "forward", [1, 3, 5, 7]), sequential("diabetes", "backward", [1, 3, 5, 7]),
                   sequential("breast_cancer", "forward", [4, 9]), sequential("breast_cancer", "backward", [5, 12])],
    "permutation": [permuted("diabetes", "s1")],
    "boruta": [boruta("iris"), boruta("diabetes")],
}
lines = []
for key, value in content.items():
    body = json.dumps(value) if isinstance(value, dict) else "[\n " + ",\n ".join(json.dumps(one) for one in value) + "]"
    lines.append(f"{json.dumps(key)}: {body}")
(HERE / "wrappers.json").write_text("{" + ",\n".join(lines) + "}\n")
