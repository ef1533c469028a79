"""Write lassonet.json next to this file: the proximal step of the lassonet package.

pip install numpy==2.4.6 lassonet==0.0.21 torch==2.15.0
python lasso_net.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from lassonet.prox import prox

HERE = Path(__file__).resolve().parent


def steps():
    """Random weights, from none of them at the limit to all."""
    random = np.random.default_rng(0)
    for case in range(60):
        v, u = random.normal(size=1 + case % 3), random.normal(scale=2, size=1 + case % 7)
        lambda_, m = [0.0, 0.1, 1.0, 5.0, 40.0][case % 5], [0.3, 1.0, 10.0][case % 3]
        beta, theta = prox(torch.tensor(v), torch.tensor(u), lambda_=lambda_, lambda_bar=0, M=m)
        yield {"v": v.tolist(), "u": u.tolist(), "lambda": lambda_, "m": m, "beta": beta.tolist(), "theta": theta.tolist()}


content = {
    "versions": {name: version(name) for name in ["lassonet", "torch", "numpy"]},
    "prox": list(steps()),
}
lines = [f"{json.dumps(key)}: " + (json.dumps(value) if isinstance(value, dict) else "[\n " + ",\n ".join(map(json.dumps, value)) + "]") for key, value in content.items()]
(HERE / "lassonet.json").write_text("{" + ",\n".join(lines) + "}\n")
