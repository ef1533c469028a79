"""Rival: neural greedy pursuit with random neurons in numpy, as a competent person would write it.

The algorithm is that of `ngp`: candidates of a step share their random weights, a candidate's hidden layer is a rank-one update of the current
one, products are BLAS on arrays that are reused, folds share their products, and the readout is a ridge solved by Cholesky. Hidden values
are computed once for all rows.

    python ngp_numpy.py TABLE ROWS COLUMNS K NEURONS FOLDS SHORTLIST     prints the features and the seconds

The table is float64, column by column, the label last. Without folds (0) a tenth of the rows is held out. With a shortlist (0.05) a quarter of the neurons judges
every candidate, and all of them only that share of the best, as `ngp` does; with 1 every candidate is judged by all.
"""
import sys
import time

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs


def judge(x, t, j, z, hidden, r, segments, held_out, learnt, ridge):
    """The squared error on the rows held out with candidate j, whose hidden values and own column are written into z."""
    neurons, m = len(r), z.shape[1]
    h = z[:, :neurons]
    np.multiply(x[:, j : j + 1], r, out=h)
    h += hidden
    np.maximum(h, 0, out=h)
    z[:, neurons] = x[:, j]
    products = [dsyrk(1.0, z[s].T) if i in learnt else None for i, s in enumerate(segments)]
    sides = [t[s] @ z[s] if i in learnt else None for i, s in enumerate(segments)]
    sums = [np.add.reduce(z[s]) if i in learnt else None for i, s in enumerate(segments)]
    total, side, all_sums = (sum(part[i] for i in learnt) for part in (products, sides, sums))
    loss = 0.0
    for i in held_out:
        s = segments[i]
        is_learnt = i in learnt
        a = total - products[i] if is_learnt else total
        b = side - sides[i] if is_learnt else side
        rows = sum(segments[j].stop - segments[j].start for j in learnt if j != i)
        means = (all_sums - sums[i] if is_learnt else all_sums) / rows
        t_mean = sum(t[segments[j]].sum() for j in learnt if j != i) / rows
        a -= np.outer(rows * means, means)
        b = b - rows * t_mean * means
        a[np.diag_indices(m)] *= 1 + ridge
        a[np.diag_indices(m)] += 1e-12
        factor, _ = dpotrf(a, lower=0, overwrite_a=1)
        beta, _ = dpotrs(factor, b, lower=0)
        error = t[s] - z[s] @ beta - (t_mean - means @ beta)
        loss += error @ error
    return loss


def pursue(x, t, k, neurons, folds, shortlist, ridge=1e-2, seed=0):
    rng = np.random.default_rng(seed)
    n, d = x.shape
    order = rng.permutation(n)
    cuts = np.linspace(0, n, folds + 1).astype(int) if folds else np.array([0, n // 10, n])
    segments = [slice(a, b) for a, b in zip(cuts, cuts[1:])]
    held_out = range(folds) if folds else [0]
    learnt = range(folds) if folds else [1]
    x = np.asfortranarray(((x - x.mean(0)) / x.std(0))[order])
    t = (t - t.mean())[order]
    chosen = []
    hidden = np.tile(rng.uniform(-1, 1, neurons), (n, 1))
    for _ in range(k):
        r = rng.uniform(-1, 1, neurons)

        def losses(candidates, neurons):
            # Row by row, so that a segment is one piece of memory, and its transpose what BLAS wants.
            z = np.empty((n, neurons + len(chosen) + 1))
            z[:, neurons + 1 :] = x[:, chosen]
            before = np.ascontiguousarray(hidden[:, :neurons])
            return [judge(x, t, j, z, before, r[:neurons], segments, held_out, learnt, ridge) for j in candidates]

        candidates = np.array([j for j in range(d) if j not in chosen])
        length = max(16, int(np.ceil(shortlist * len(candidates))))
        if 2 * length < len(candidates):
            candidates = candidates[np.argsort(losses(candidates, -(-neurons // 4)))[:length]]
        best = int(candidates[np.argmin(losses(candidates, neurons))])
        chosen.append(best)
        hidden += np.outer(x[:, best], r)
    return chosen


if __name__ == "__main__":
    path, (rows, columns, k, neurons, folds), shortlist = sys.argv[1], map(int, sys.argv[2:7]), float(sys.argv[7])
    table = np.fromfile(path).reshape(columns + 1, rows).T
    start = time.perf_counter()
    found = pursue(table[:, :-1], table[:, -1], k, neurons, folds, shortlist)
    print(",".join(map(str, found)), time.perf_counter() - start)
