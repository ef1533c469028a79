"""Write cart.json next to this file: the share of the rows whose path through scikit-learn's pruned tree asks for a feature.

Where two splits are equally good scikit-learn draws one; only trees that are the same for every seed are kept.

pip install numpy==2.4.6 scikit-learn==1.9.1 pandas==3.1.1 pyarrow==26.0.1
python cart.py
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

HERE = Path(__file__).resolve().parent
SAMPLES = HERE / ".." / ".." / "src" / "samples"


def usage(x, y, complexity, seed):
    kind = DecisionTreeRegressor if y.dtype.kind == "f" else DecisionTreeClassifier
    root = kind(max_depth=1).fit(x, y).tree_.impurity[0]
    tree = kind(ccp_alpha=complexity * root, random_state=seed).fit(x, y)
    path = tree.decision_path(x)
    asked = np.zeros(x.shape)
    for row in range(len(x)):
        nodes = path.indices[path.indptr[row]:path.indptr[row + 1]]
        features = tree.tree_.feature[nodes]
        asked[row, features[features >= 0]] = 1
    return asked.mean(axis=0).round(12).tolist()


sets = []
for dataset, columns in [("iris", None), ("wine", None), ("diabetes", ["age", "bmi", "bp", "s1", "s6"])]:
    frame = pd.read_parquet(SAMPLES / f"{dataset}.parquet")
    label = frame.pop("label")
    y = label.to_numpy(float) if pd.api.types.is_numeric_dtype(label) else label.to_numpy(str)
    frame = frame[columns or list(frame)]
    # Ours would cut more values than that into bins.
    assert frame.nunique().max() <= 255
    for complexity in [0.01, 0.05]:
        found = [usage(frame.to_numpy(float), y, complexity, seed) for seed in range(8)]
        if all(one == found[0] for one in found):
            sets.append({"dataset": dataset, "complexity": complexity, "names": list(frame), "usage": found[0]})
versions = {"numpy": np.__version__, "scikit-learn": sklearn.__version__, "pandas": pd.__version__}
body = ",\n ".join(json.dumps(one) for one in sets)
(HERE / "cart.json").write_text(f'{{"versions": {json.dumps(versions)},\n"sets": [\n {body}]}}\n')
