"""Bad input: an exception of the right kind with one line that says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import sample

import pursuit

NAN = float("nan")
IRIS = sample("iris")
TWICE = pa.table([pa.array([1.0, 2.0]), pa.array([1.0, 2.0])], names=["a", "a"])
MIXED = pd.DataFrame({"a": [1, "two", 3.0] * 20, "y": range(60)})

MISTAKES: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (pl.DataFrame(), {}, ValueError, "no column"),
    (IRIS[:0], {"label": "label"}, ValueError, "omp: "),
    (pd.DataFrame(), {}, ValueError, "no column"),
    (TWICE, {}, ValueError, "two columns are named `a`; rename one"),
    (pd.DataFrame(np.ones((3, 2)), columns=["a", "a"]), {}, ValueError, "two columns are named `a`; rename one"),
    (MIXED, {}, ValueError, "column `a` has Python values of the types float, int, str; make them all numbers or all texts"),
    ({"a": [object(), 1], "y": [1, 2]}, {}, ValueError, "column `a` has Python values"),
    (np.array([["a", 1, 2]], dtype=object), {}, ValueError, "column|label"),
    (np.ones((3, 2)) * 1j, {"label": [1, 2, 3]}, ValueError, "complex"),
    (np.ones(3), {}, TypeError, "a table must be"),
    (42, {}, TypeError, "a table must be a polars, pandas or pyarrow frame, .*, got builtins.int"),
    (IRIS, {"label": "nothing"}, ValueError, "omp: no column `nothing`"),
    (IRIS, {"label": "label", "k": 99}, ValueError, "omp: .*`?k`?"),
    (IRIS, {"label": "label", "kk": 3}, ValueError, "omp: unknown option `kk`; did you mean `k`"),
    (IRIS, {"label": "label", "tolerance": NAN}, ValueError, "a number must be finite, got nan"),
    (IRIS, {"label": "label", "tolerance": object()}, ValueError, "a value of type object cannot be written in SQL"),
    (IRIS, {"label": "label", "selector": "op"}, ValueError, "op"),
    (IRIS, {"label": "label", "selector": "omp(x)"}, ValueError, "selector must be a name"),
    (np.ones((4, 2)), {"label": [1.0, 2.0]}, ValueError, "the table has 4 rows and `label` has 2"),
    (np.random.default_rng(0).normal(size=(4, 2)), {"label": [NAN] * 4}, ValueError, "omp: "),
    ("nowhere.parquet", {}, Exception, "nowhere.parquet"),
    ("nowhere/*.parquet", {}, Exception, "nowhere"),
]


@pytest.mark.parametrize("data, call, kind, line", MISTAKES, ids=range(len(MISTAKES)))
def test_one_line(data: Any, call: dict[str, Any], kind: type[Exception], line: str) -> None:
    with pytest.raises(kind, match=line) as raised:
        pursuit.select(data, **{"label": "y", "selector": "omp", **call})
    assert isinstance(raised.value, (ValueError, TypeError, OSError))
    assert "\n" not in str(raised.value) and str(raised.value).strip()


def test_nan_labels_are_rows_without_a_label() -> None:
    x = np.random.default_rng(0).normal(size=(100, 3))
    y = x[:, 1].copy()
    y[::2] = NAN
    assert pursuit.select(x, y, k=1, selector="omp").features == ["x1"]


def test_sql() -> None:
    with pytest.raises(ValueError, match="Expected") as raised:
        pursuit.sql("SELEC 1")
    assert "\n" not in str(raised.value)
    with pytest.raises(ValueError, match="nothing"):
        pursuit.sql("SELECT * FROM nothing")
    assert len(pursuit.sql("CREATE TABLE a AS SELECT 1 AS x; SELECT * FROM a")) == 1
    assert len(pursuit.sql("")) == 0


def test_limits() -> None:
    with pytest.raises(MemoryError, match="max_memory"):
        pursuit.select("sample.digits", label="label", k=3, selector="sequential_attention", max_memory=100)
    with pytest.raises(TimeoutError, match="the time_limit of 0.01 seconds is over"):
        pursuit.select("sample.digits", label="label", k=30, selector="sequential_attention", time_limit=0.01)


def test_a_stream_that_breaks() -> None:
    def batches() -> Any:
        yield pa.record_batch({"a": [1.0]})
        raise RuntimeError("the line is dead")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.float64()}), batches())
    with pytest.raises(ValueError, match="the table cannot be read: .*the line is dead"):
        pursuit.select(reader, label="a")
    with pytest.raises(ValueError, match="cannot be read"):
        pursuit.select(pa.chunked_array([[1.0, 2.0]]), label="a")
