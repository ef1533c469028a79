"""Write penalties.json next to this file: penalised models and best subsets of other libraries.

pip install numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 pandas==3.1.1 pyarrow==26.0.1 abess==0.4.11
python penalties.py

Features and labels are standardised (labels of classes are 0/1 columns, centred and of length 1 together), so that penalties are on our scale.
"""

import abess
import numpy as np
import pandas as pd
from sklearn.linear_model import ElasticNet, Lasso, MultiTaskLasso

from make_fixtures import SAMPLES, VERSIONS, save

VERSIONS.update({"abess": abess.__version__})


def sample(dataset):
    frame = pd.read_parquet(SAMPLES / f"{dataset}.parquet")
    label = frame.pop("label")
    x = frame.to_numpy(float)
    return list(frame), (x - x.mean(axis=0)) / x.std(axis=0), label.to_numpy()


def lengths(names, coefficients):
    """The length of each feature's coefficients, of those that have any."""
    size = np.sqrt((np.atleast_2d(coefficients) ** 2).sum(axis=0))
    return {name: float(s) for name, s in zip(names, size) if s > 1e-9}


def case(call, dataset, options, names, coefficients):
    return {"call": call, "dataset": dataset, "options": options, "lengths": lengths(names, coefficients)}


def regression():
    names, x, y = sample("diabetes")
    y = (y - y.mean()) / y.std()
    exact = {"tol": 1e-12, "max_iter": 1_000_000}
    for alpha in [0.05, 0.2]:
        yield case("lasso", "diabetes", f"penalty => {alpha}", names, Lasso(alpha=alpha, **exact).fit(x, y).coef_)
        net = ElasticNet(alpha=alpha, l1_ratio=0.3, **exact).fit(x, y)
        yield case("elastic_net", "diabetes", f"penalty => {alpha}, l1_ratio => 0.3", names, net.coef_)
    # Zou's rescaling: a plain LASSO on columns multiplied by their first coefficients.
    first = np.linalg.lstsq(x, y, rcond=None)[0]
    adaptive = Lasso(alpha=0.02, **exact).fit(x * np.abs(first), y).coef_ * np.abs(first)
    yield case("adaptive_lasso", "diabetes", "penalty => 0.02", names, adaptive)


def classes():
    names, x, label = sample("wine")
    y = (label[:, None] == np.unique(label)[None, :]).astype(float)
    y = y - y.mean(axis=0)
    y *= np.sqrt(len(y)) / np.linalg.norm(y)
    for alpha in [0.1, 0.3]:
        yield case("lasso", "wine", f"penalty => {alpha}", names, MultiTaskLasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(x, y).coef_)


def subsets():
    for dataset in ["diabetes", "breast_cancer"]:
        names, x, label = sample(dataset)
        y = label.astype(float) if dataset == "diabetes" else (label == np.unique(label)[1]).astype(float)
        for k in [2, 3, 5, 8]:
            model = abess.LinearRegression(support_size=k).fit(x, y)
            left = y - model.predict(x)
            r2 = 1 - float(left @ left) / float(((y - y.mean()) ** 2).sum())
            yield {"dataset": dataset, "k": k, "features": [n for n, b in zip(names, model.coef_) if b != 0], "r2": r2}


if __name__ == "__main__":
    save("penalties.json", {"sets": [{"models": [*regression(), *classes()], "subsets": list(subsets())}]})
