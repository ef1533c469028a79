"""What the border between Python and Rust costs, and how fast the whole is beside scikit-learn. Needs a release build:

    pip install './python[test]' && python python/benches/frames.py

Both figures are measured in one run: the median of turns that are taken in alternation.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from sklearn.linear_model import OrthogonalMatchingPursuit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pursuit
from pursuit import dbapi

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
COLUMNS, K, TURNS = 50, 10, 7


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, COLUMNS))
    y = x[:, ::5] @ rng.normal(size=10) + rng.normal(size=ROWS)
    frame = pl.DataFrame({f"c{at}": x[:, at] for at in range(COLUMNS)} | {"y": y})
    features = [f"c{at}" for at in range(COLUMNS)]
    del x, y

    # The same rows as a table that Rust holds and has cut into batches itself.
    inside = dbapi.connect(frame=frame)
    inside.execute("CREATE TABLE t AS SELECT * FROM frame")

    def rival() -> list[str]:
        pipeline = make_pipeline(StandardScaler(), OrthogonalMatchingPursuit(n_nonzero_coefs=K))
        pipeline.fit(frame.select(features).to_numpy(), frame["y"].to_numpy())
        return [name for name, weight in zip(features, pipeline[1].coef_) if weight != 0]

    ways: dict[str, Callable[[], list[str]]] = {
        "pursuit.select": lambda: pursuit.select(frame, label="y", k=K, selector="omp").features,
        "inside Rust": lambda: [row[1] for row in inside.execute(f"SELECT * FROM omp(t, label => y, k => {K})").fetchall()],
        "scikit-learn": rival,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    answers: dict[str, Any] = {name: sorted(way()) for name, way in ways.items()}
    for _ in range(TURNS):
        for name, way in ways.items():
            # Threads of BLAS spin for a while after their work, and would take a core from whoever is next.
            time.sleep(0.2)
            start = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - start)
    median = {name: statistics.median(taken) for name, taken in times.items()}
    assert answers["pursuit.select"] == answers["inside Rust"] == answers["scikit-learn"], answers
    for name, seconds in median.items():
        print(f"{name:15} {seconds:8.3f} s")
    print(f"pursuit.select / inside Rust  {median['pursuit.select'] / median['inside Rust']:.2f}")
    print(f"scikit-learn / pursuit.select {median['scikit-learn'] / median['pursuit.select']:.1f}")


main()
