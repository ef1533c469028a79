"""Write classes.json next to this file: sparse models of classes, HSIC Lasso and principal feature analysis, of other libraries.

pip install numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 pandas==3.1.1 pyarrow==26.0.1 abess==0.4.11 cvxpy==1.9.3 pyHSICLasso==1.4.2
python classes.py

Features are standardised. Our penalty is on the mean loss, theirs on its sum: C = 1 / (rows × penalty).
"""

import cvxpy
import numpy as np
from pyHSICLasso import HSICLasso
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from make_fixtures import VERSIONS, save
from penalties import case, sample

VERSIONS.update({"cvxpy": cvxpy.__version__, "pyHSICLasso": "1.4.2"})


def logistic():
    names, x, label = sample("breast_cancer")
    for penalty in [0.02, 0.1]:
        model = LogisticRegression(l1_ratio=1, C=1 / (len(x) * penalty), solver="saga", tol=1e-12, max_iter=1_000_000).fit(x, label)
        yield case("logistic_lasso", "breast_cancer", f"penalty => {penalty}", names, model.coef_)
    # A feature is in for all classes at once, which scikit-learn has not: solved as the convex problem that it is.
    names, x, label = sample("wine")
    y = (label[:, None] == np.unique(label)[None, :]).astype(float)
    for penalty in [0.05, 0.15]:
        b, c = cvxpy.Variable((x.shape[1], y.shape[1])), cvxpy.Variable((1, y.shape[1]))
        f = x @ b + np.ones((len(x), 1)) @ c
        loss = (cvxpy.sum(cvxpy.log_sum_exp(f, axis=1)) - cvxpy.sum(cvxpy.multiply(y, f))) / len(x)
        cvxpy.Problem(cvxpy.Minimize(loss + penalty * cvxpy.sum(cvxpy.norm(b, 2, axis=1)))).solve(
            solver=cvxpy.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        found = b.value.copy()
        found[np.linalg.norm(found, axis=1) < 1e-5] = 0
        yield case("logistic_lasso", "wine", f"penalty => {penalty}", names, found.T)


def machines():
    for dataset, penalties in [("breast_cancer", [0.1, 0.5]), ("wine", [0.2, 0.6])]:
        names, x, label = sample(dataset)
        for penalty in penalties:
            model = LinearSVC(penalty="l1", dual=False, C=1 / (len(x) * penalty), tol=1e-10, max_iter=10_000_000, random_state=0).fit(x, label)
            yield case("l1_svm", dataset, f"penalty => {penalty}", names, model.coef_)


def nearness(dataset, k):
    """All rows in one block. The order in which features enter, and the set at each size."""
    names, x, label = sample(dataset)
    model = HSICLasso()
    model.X_in, model.featname = x.T, names
    if dataset == "diabetes":
        model.Y_in = label.astype(float)[None, :]
        model.regression(k, B=0, n_jobs=1)
    else:
        model.Y_in = np.unique(label, return_inverse=True)[1][None, :]
        model.classification(k, B=0, n_jobs=1)
    path = np.asarray(model.path)
    first = {name: int(np.argmax(row > 0)) for name, row in zip(names, path) if (row > 0).any()}
    chosen = [names[at] for at in model.get_index()]
    return {"dataset": dataset, "k": k, "order": [name for name in sorted(first, key=first.get) if name in chosen], "chosen": sorted(chosen)}


def principal(dataset, k, variance):
    """The features nearest to the middles of k groups of weights in the principal components, by scikit-learn's PCA and KMeans."""
    names, x, _ = sample(dataset)
    pca = PCA().fit(x)
    count = int(np.argmax(np.cumsum(pca.explained_variance_ratio_) >= variance)) + 1
    points = pca.components_.T[:, :count]
    groups = KMeans(k, n_init=200, random_state=0).fit(points)
    far = groups.transform(points)
    chosen = sorted(names[int(np.argmin(np.where(groups.labels_ == at, far[:, at], np.inf)))] for at in range(k))
    return {"dataset": dataset, "k": k, "variance": variance, "chosen": chosen}


if __name__ == "__main__":
    save("classes.json", {"sets": [{"models": [*logistic(), *machines()], "hsic": [nearness("diabetes", 5), nearness("wine", 5), nearness("breast_cancer", 6)],
                                    "pfa": [principal("wine", 3, 0.5), principal("diabetes", 4, 0.9)]}]})
