"""The paper's judge of what neural greedy pursuit chose: a network of random neurons in numpy, word for word as Das et al. have it, sharing nothing with Pursuit."""

import numpy as np

NEURONS, RIDGE, MU, STEPS = 100, 100.0, 1e3, 100


def hidden(least_squares, weights, x):
    """What the readout sees, a column for each row: the linear prediction, its opposite, and the random neurons, each row of them of length 1."""
    linear, neurons = least_squares @ x, weights @ x
    lengths = np.linalg.norm(neurons, axis=0)
    neurons = np.where(lengths < 1e-12, 0.0, neurons / np.maximum(lengths, 1e-12))
    return np.maximum(np.vstack([linear, -linear, neurons]), 0.0)


def fit(x, t, seed, neurons=NEURONS):
    """A function from rows to predictions; rows of x are rows, columns of t are labels."""
    x, t = x.T, t.T
    least_squares = np.linalg.solve(x @ x.T + RIDGE * np.eye(len(x)), x @ t.T).T
    weights = np.random.default_rng(seed).uniform(-1, 1, (neurons, len(x)))
    y = hidden(least_squares, weights, x)
    inverse = np.linalg.inv(y @ y.T + np.eye(len(y)) / MU)
    products, bound = t @ y.T, 2 * np.sqrt(2 * len(t))
    z = dual = np.zeros_like(products)
    for _ in range(STEPS):
        readout = (products + (z + dual) / MU) @ inverse
        z = readout - dual
        z = z * min(1.0, bound / max(np.linalg.norm(z), 1e-300))
        dual = dual + z - readout
    return lambda rows: (readout @ hidden(least_squares, weights, rows.T)).T


def nme(predicted, truth):
    """Squared error in decibels of the label's square."""
    return 20 * np.log10(np.linalg.norm(predicted - truth) / np.linalg.norm(truth))


def errors(x, t, others, truth, seed=0):
    """Decibels on the rows learnt from and on others; of no feature at all, the error of predicting 0."""
    if x.shape[1] == 0:
        return 0.0, 0.0
    predict = fit(x, t[:, None], seed)
    return nme(predict(x)[:, 0], t), nme(predict(others)[:, 0], truth)


def accuracies(x, classes, others, truth, seed=0, neurons=NEURONS):
    labels = np.eye(classes.max() + 1)[classes]
    predict = fit(x, labels, seed, neurons)
    return float((predict(x).argmax(1) == classes).mean()), float((predict(others).argmax(1) == truth).mean())
