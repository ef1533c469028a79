"""Write fit.json next to this file: the coefficients of scikit-learn's linear models on the sample tables, in the units of the table.

pip install numpy==2.4.6 scikit-learn==1.9.1 pandas==3.1.1 pyarrow==26.0.1
python fit.py
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

HERE = Path(__file__).resolve().parent
SAMPLES = HERE / ".." / ".." / "src" / "samples"


def case(dataset, model, penalty, features):
    frame = pd.read_parquet(SAMPLES / f"{dataset}.parquet")
    x = frame[features].to_numpy(dtype=float)
    y = frame["label"].to_numpy()
    scaler = StandardScaler().fit(x)
    scaled = scaler.transform(x)
    rows = len(y)
    if model == "linear":
        fitted = Ridge(alpha=penalty * rows, solver="cholesky") if penalty else LinearRegression()
        fitted.fit(scaled, y)
        classes, coef, intercept = [None], fitted.coef_[None, :], np.array([fitted.intercept_])
    else:
        fitted = LogisticRegression(C=1 / (penalty * rows), tol=1e-14, max_iter=100_000, solver="newton-cholesky")
        fitted.fit(scaled, y)
        names = [str(name) for name in fitted.classes_]
        classes = names[1:] if len(names) == 2 else names
        coef, intercept = fitted.coef_, fitted.intercept_
    coef = coef / scaler.scale_
    intercept = intercept - coef @ scaler.mean_
    return {
        "dataset": dataset,
        "model": model,
        "penalty": penalty,
        "features": features,
        "classes": classes,
        "coef": coef.tolist(),
        "intercept": intercept.tolist(),
    }


sets = [
    case("diabetes", "linear", 0.0, ["age", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"]),
    case("diabetes", "linear", 0.05, ["age", "bmi", "bp", "s5"]),
    case("breast_cancer", "logistic", 0.01, ["mean_radius", "mean_texture", "mean_smoothness", "worst_area"]),
    case("iris", "logistic", 0.001, ["sepal_length", "sepal_width", "petal_length", "petal_width"]),
    case("wine", "logistic", 0.02, ["proline", "flavanoids", "color_intensity"]),
]
versions = {"numpy": np.__version__, "scikit-learn": sklearn.__version__, "pandas": pd.__version__}
body = ",\n ".join(json.dumps(one) for one in sets)
(HERE / "fit.json").write_text(f'{{"versions": {json.dumps(versions)},\n"sets": [\n {body}]}}\n')
