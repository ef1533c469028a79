"""Our trees against scikit-learn's forest and XGBoost, on the same tables in the same run.

    benches/trees.sh DATA [TABLE ...]

DATA holds adult_train.parquet and the others; TABLE is adult, california or mnist. Times are of the fastest of three (the rivals' of `fit`, with two
threads), quality is of rows that nobody has learnt from.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import pandas as pd
import xgboost
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import accuracy_score, r2_score

BINARY = pathlib.Path(__file__).parent / "target/release/trees"
THREADS = 2


def tables(data, wanted):
    """Name, all rows, how many of them are to be learnt from, and rounds of boosting."""
    for name, rounds in [("adult", 100), ("california", 100), ("mnist", 10)]:
        if name not in wanted:
            continue
        if name == "california":
            frame = pd.read_parquet(data / "california_housing.parquet").sample(frac=1, random_state=0)
            yield name, frame.reset_index(drop=True), int(0.8 * len(frame)), rounds
        else:
            train, test = (pd.read_parquet(data / f"{name}_{part}.parquet") for part in ("train", "test"))
            yield name, pd.concat([train, test], ignore_index=True), len(train), rounds


def write(frame, own, path):
    """The table as `trees.rs` reads it, and the same as numbers for the rivals: texts as the places of their levels."""
    label = frame.columns[-1] if "label" not in frame.columns else "label"
    y = frame[label]
    is_class = y.nunique() <= 32
    y = pd.Categorical(y).codes.astype(float) if is_class else y.to_numpy(float)
    columns, values = [], []
    for name in frame.columns.drop(label):
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            columns.append({"name": name})
            values.append(column.to_numpy(float))
        else:
            text = pd.Categorical(column.astype(object))
            columns.append({"name": name, "levels": [str(level) for level in text.categories]})
            values.append(text.codes.astype(float))
    head = {"rows": len(frame), "own": own, "is_class": is_class, "columns": columns}
    with open(path, "wb") as file:
        file.write(json.dumps(head).encode() + b"\n")
        for column in values + [y]:
            file.write(np.ascontiguousarray(column, "<f8").tobytes())
    return np.column_stack(values), y, is_class


def ours(path, function, **settings):
    command = [BINARY, path, function, json.dumps(settings)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def fastest(fit):
    best, model = float("inf"), None
    for _ in range(3):
        start = time.perf_counter()
        model = fit()
        best = min(best, time.perf_counter() - start)
    return best, model


def main(data, wanted):
    print(f"{'table':<12}{'what':<14}{'ours s':>9}{'rival s':>9}{'ratio':>7}  {'quality':<9}{'ours':>8}{'rival':>8}")
    for name, frame, own, rounds in tables(data, wanted):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/table"
            x, y, is_class = write(frame, own, path)
            quality, score = ("accuracy", accuracy_score) if is_class else ("r2", r2_score)
            own_x, own_y, other_x, other_y = x[:own], y[:own], x[own:], y[own:]
            kinds = {
                "random_forest": RandomForestClassifier if is_class else RandomForestRegressor,
                "extra_trees": ExtraTreesClassifier if is_class else ExtraTreesRegressor,
            }
            for what, kind in kinds.items():
                # As many features for each split as ours have by default.
                share = "sqrt" if is_class else (1 / 3 if what == "random_forest" else 1.0)
                seconds, model = fastest(lambda: kind(n_jobs=THREADS, random_state=0, max_features=share).fit(own_x, own_y))
                reached = ours(path, "evaluate", model="forest") if what == "random_forest" else {}
                line(name, what, ours(path, what)["seconds"], seconds, quality, reached, score(other_y, model.predict(other_x)))
            kind = xgboost.XGBClassifier if is_class else xgboost.XGBRegressor

            def boost(rounds):
                return kind(n_estimators=rounds, learning_rate=0.1, max_depth=6, tree_method="hist", n_jobs=THREADS).fit(own_x, own_y)

            seconds, model = fastest(lambda: boost(rounds))
            # `evaluate` has 100 rounds.
            reached = ours(path, "evaluate", model="boosting") if rounds == 100 else {}
            seconds_of_ours = ours(path, "boosting", rounds=rounds)["seconds"]
            line(name, f"boosting {rounds}", seconds_of_ours, seconds, quality, reached, score(other_y, model.predict(other_x)))


def line(name, what, seconds, rival, quality, reached, score):
    reached = f"{reached[quality]:8.4f}" if reached else f"{'':8}"
    print(f"{name:<12}{what:<14}{seconds:9.2f}{rival:9.2f}{seconds / rival:7.2f}  {quality:<9}{reached}{score:8.4f}", flush=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2:] or ["adult", "california", "mnist"])
