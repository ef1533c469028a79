"""Write lassonet.json next to this file: the proximal step and the order of features of the lassonet package.

pip install numpy==2.4.6 pandas==3.1.1 pyarrow==26.0.1 scikit-learn==1.9.1 lassonet==0.0.21 torch==2.15.0
python lasso_net.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from lassonet import LassoNetRegressor
from lassonet.prox import prox
from sklearn.preprocessing import StandardScaler

HERE = Path(__file__).resolve().parent
SAMPLES = HERE / ".." / ".." / "src" / "samples"
SEEDS = range(2)


def steps():
    """Random weights, from none of them at the limit to all."""
    random = np.random.default_rng(0)
    for case in range(60):
        v, u = random.normal(size=1 + case % 3), random.normal(scale=2, size=1 + case % 7)
        lambda_, m = [0.0, 0.1, 1.0, 5.0, 40.0][case % 5], [0.3, 1.0, 10.0][case % 3]
        beta, theta = prox(torch.tensor(v), torch.tensor(u), lambda_=lambda_, lambda_bar=0, M=m)
        yield {"v": v.tolist(), "u": u.tolist(), "lambda": lambda_, "m": m, "beta": beta.tolist(), "theta": theta.tolist()}


def orders(dataset):
    """Features by the mean over seeds of their rank, the last to leave first."""
    frame = pd.read_parquet(SAMPLES / f"{dataset}.parquet")
    label = frame.pop("label").to_numpy()
    x = StandardScaler().fit_transform(frame.to_numpy(float)).astype(np.float32)
    y = ((label - label.mean()) / label.std()).astype(np.float32)
    ranks = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        model = LassoNetRegressor(M=10, hidden_dims=(100,), random_state=seed, verbose=0)
        model.path(x, y)
        ranks.append(np.argsort(np.argsort(-model.feature_importances_.numpy())))
    mean = np.mean(ranks, axis=0)
    order = np.argsort(mean, kind="stable")
    return {"dataset": dataset, "order": [list(frame)[at] for at in order], "mean_rank": mean[order].tolist()}


content = {
    "versions": {name: version(name) for name in ["lassonet", "torch", "numpy", "pandas"]},
    "prox": list(steps()),
    "orders": [orders("diabetes")],
}
lines = [f"{json.dumps(key)}: " + (json.dumps(value) if isinstance(value, dict) else "[\n " + ",\n ".join(map(json.dumps, value)) + "]") for key, value in content.items()]
(HERE / "lassonet.json").write_text("{" + ",\n".join(lines) + "}\n")
