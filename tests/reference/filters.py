"""Write filters.json next to this file: what filters and their tests are elsewhere, none of it our code.

pip install numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 pandas==3.1.1 pyarrow==26.0.1 statsmodels==0.15.0 mrmr_selection==0.2.8
python filters.py
"""

import numpy as np
import pandas as pd
import sklearn
from scipy.stats import chi2_contingency
from sklearn.feature_selection import chi2, f_classif, f_regression, mutual_info_classif, mutual_info_regression
from sklearn.metrics import mutual_info_score
import mrmr
import statsmodels
from statsmodels.stats.multitest import multipletests

import make_fixtures
from make_fixtures import SAMPLES, VERSIONS, save

VERSIONS.update({"statsmodels": statsmodels.__version__, "mrmr_selection": "0.2.8"})


def sample(dataset):
    frame = pd.read_parquet(SAMPLES / f"{dataset}.parquet")
    label = frame.pop("label")
    frame = frame[[c for c in frame if frame[c].nunique() > 1]]
    return frame.astype(float), label


def floats(values):
    return [float(value) for value in values]


def tests(dataset):
    """F and chi-squared tests, Fisher scores, and which p-values are discoveries."""
    x, y = sample(dataset)
    is_class = not pd.api.types.is_numeric_dtype(y) or dataset == "digits"
    f, p = (f_classif if is_class else f_regression)(x.to_numpy(), y.to_numpy())
    case = {"dataset": dataset, "names": list(x), "f": floats(f), "p": floats(p)}
    for method, name in [("fdr_bh", "benjamini_hochberg"), ("bonferroni", "bonferroni")]:
        found = multipletests(p, alpha=0.001, method=method)[0]
        case[name] = [c for c, is_found in zip(x, found) if is_found]
    if is_class:
        case["chi2"], case["chi2_p"] = map(floats, chi2(x.to_numpy(), y.to_numpy()))
        groups = [x[(y == label).to_numpy()] for label in sorted(y.unique())]
        between = sum(len(g) * (g.mean() - x.mean()) ** 2 for g in groups)
        within = sum(len(g) * g.var(ddof=0) for g in groups)
        case["fisher"] = floats(between / within)
    return case


def relevant(dataset, k):
    x, y = sample(dataset)
    is_class = not pd.api.types.is_numeric_dtype(y)
    select = mrmr.mrmr_classif if is_class else mrmr.mrmr_regression
    codes = pd.Series(np.unique(y.to_numpy(), return_inverse=True)[1]) if is_class else y.astype(float)
    return {"dataset": dataset, "k": k, "mrmr": select(x, codes, K=k, show_progress=False)}


def joint(a, b):
    return np.unique(np.stack([a, b]), axis=1, return_inverse=True)[1].ravel()


def information(k):
    """Discrete features: every value is a bin. The definitions of Brown et al. (2012), which scikit-feature has too; cmim as Fleuret begins it, with what a feature says alone."""
    x, y = sample("digits")
    y = np.unique(y.to_numpy(), return_inverse=True)[1]
    columns = {c: np.unique(x[c].to_numpy(), return_inverse=True)[1] for c in x}
    alone = {c: mutual_info_score(columns[c], y) for c in columns}

    def given(f, g):
        # I(f; y | g) = I(f, g; y) − I(g; y)
        return mutual_info_score(joint(columns[f], columns[g]), y) - alone[g]

    def greedy(score):
        chosen, scores, links = [], [], {c: [] for c in columns}
        while len(chosen) < k:
            of = {c: score(alone[c], links[c]) for c in columns if c not in chosen}
            best = max(of, key=of.get)
            chosen.append(best)
            scores.append(float(of[best]))
            for c in columns:
                links[c].append((given(c, best), mutual_info_score(columns[c], columns[best])))
        return {"features": chosen, "scores": scores}

    g_test = chi2_contingency(pd.crosstab(x["p20"] if "p20" in x else x.iloc[:, 20], y), lambda_="log-likelihood", correction=False)
    return {
        "dataset": "digits",
        "names": list(columns),
        "alone": floats(alone.values()),
        "g_test": {"feature": "p20" if "p20" in x else list(x)[20], "p": float(g_test.pvalue)},
        "cmim": greedy(lambda alone, links: min([alone] + [given for given, _ in links])),
        "jmi": greedy(lambda alone, links: np.mean([given for given, _ in links]) if links else alone),
        "mid": greedy(lambda alone, links: alone - np.mean([shared for _, shared in links]) if links else alone),
    }


def neighbours():
    """Numbers without ties, which scikit-learn moves apart by random amounts."""
    random = np.random.default_rng(7)
    x = np.round(random.normal(size=(150, 4)), 9)
    y = np.round(np.sin(2 * x[:, 0]) + x[:, 1] ** 2 + 0.3 * random.normal(size=150), 9)
    classes = (y > 0.3).astype(int) + (y > 1.2)
    return {
        "x": [floats(row) for row in x],
        "y": floats(y),
        "classes": [int(c) for c in classes],
        "regression": floats(mutual_info_regression(x, y, random_state=0)),
        "classification": floats(mutual_info_classif(x, classes, random_state=0)),
    }


def relief(dataset, k=10):
    """ReliefF (Kononenko, 1994) and RReliefF (Robnik-Sikonja and Kononenko, 1997) on all rows, as scikit-feature and the papers have them: differences as shares of a feature's range, k equal neighbours."""
    x, y = sample(dataset)
    scaled = ((x - x.min()) / (x.max() - x.min())).to_numpy()
    rows = len(scaled)
    is_class = not pd.api.types.is_numeric_dtype(y)
    y = y.to_numpy() if is_class else y.to_numpy(float)
    gains, both, label = np.zeros(scaled.shape[1]), np.zeros(scaled.shape[1]), 0.0
    for row in range(rows):
        differences = np.abs(scaled - scaled[row])
        order = np.argsort(differences.sum(axis=1), kind="stable")
        order = order[order != row]
        if not is_class:
            near = order[:k]
            apart = np.abs(y[near] - y[row]) / (y.max() - y.min())
            label += apart.mean()
            gains += differences[near].mean(axis=0)
            both += (differences[near] * apart[:, None]).mean(axis=0)
            continue
        for c in np.unique(y):
            near = order[y[order] == c][:k]
            share = (y == c).sum() / (y != y[row]).sum() if c != y[row] else -1
            gains += share * differences[near].mean(axis=0)
    scores = gains / rows if is_class else both / label - (gains - both) / (rows - label)
    return {"dataset": dataset, "names": list(x), "scores": floats(scores)}


if __name__ == "__main__":
    save(
        "filters.json",
        {
            "sets": [
                {
                    "tests": [tests(d) for d in ["diabetes", "wine", "breast_cancer", "iris"]],
                    "mrmr": [relevant(d, k) for d, k in [("diabetes", 8), ("wine", 10), ("breast_cancer", 12)]],
                    "information": information(8),
                    "neighbours": neighbours(),
                    "relief": [relief("breast_cancer"), relief("diabetes")],
                }
            ]
        },
    )
