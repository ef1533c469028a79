"""Write lassonet.json next to this file: the proximal step of the lassonet package, and the order in which its path drops features of the sample tables.

pip install numpy==2.4.6 pandas==3.1.1 pyarrow==26.0.1 lassonet==0.0.21 torch==2.15.0
python lasso_net.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from lassonet import LassoNetClassifier, LassoNetRegressor
from lassonet.prox import prox

HERE = Path(__file__).resolve().parent
SAMPLES = HERE / ".." / ".." / "src" / "samples"


def steps():
    """Random weights, from none of them at the limit to all."""
    random = np.random.default_rng(0)
    for case in range(60):
        v, u = random.normal(size=1 + case % 3), random.normal(scale=2, size=1 + case % 7)
        lambda_, m = [0.0, 0.1, 1.0, 5.0, 40.0][case % 5], [0.3, 1.0, 10.0][case % 3]
        beta, theta = prox(torch.tensor(v), torch.tensor(u), lambda_=lambda_, lambda_bar=0, M=m)
        yield {"v": v.tolist(), "u": u.tolist(), "lambda": lambda_, "m": m, "beta": beta.tolist(), "theta": theta.tolist()}


def order(dataset):
    """Features, the last to be dropped first."""
    frame = pd.read_parquet(SAMPLES / f"{dataset}.parquet")
    label = frame.pop("label")
    x = ((frame - frame.mean()) / frame.std(ddof=0)).to_numpy(np.float32)
    options = {"hidden_dims": (67,), "M": 10, "random_state": 0, "torch_seed": 0, "verbose": 0}
    if label.dtype.kind in "fi":
        model, y = LassoNetRegressor(**options), ((label - label.mean()) / label.std(ddof=0)).to_numpy(np.float32)
    else:
        model, y = LassoNetClassifier(**options), np.unique(label.astype(str), return_inverse=True)[1]
    model.path(x, y)
    return {"dataset": dataset, "order": [frame.columns[at] for at in np.argsort(-model.feature_importances_.numpy(), kind="stable")]}


content = {
    "versions": {name: version(name) for name in ["lassonet", "torch", "numpy"]},
    "prox": list(steps()),
    "orders": [order("diabetes"), order("wine")],
}
lines = [f"{json.dumps(key)}: " + (json.dumps(value) if isinstance(value, dict) else "[\n " + ",\n ".join(map(json.dumps, value)) + "]") for key, value in content.items()]
(HERE / "lassonet.json").write_text("{" + ",\n".join(lines) + "}\n")
