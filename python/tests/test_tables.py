"""Whatever holds a table is read, and numbers stay where they are."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import sample

import pursuit
from pursuit._engine import Table
from pursuit._tables import table

ROWS = [("bmi", 1), ("s5", 2), ("bp", 3)]


def ranked(data: object, **options: object) -> list[tuple[str, int]]:
    answer = pursuit.select(data, label="label", k=3, selector="omp", **options)
    return list(zip(answer["feature"], answer["rank"]))


def test_every_kind_of_frame() -> None:
    frame = sample("diabetes")
    assert ranked(frame) == ROWS
    assert ranked(frame.lazy().filter(pl.col("age") > 0)) == ROWS
    assert ranked(frame.to_arrow()) == ROWS
    assert ranked(frame.to_pandas()) == ROWS
    assert ranked(duckdb.from_arrow(frame.to_arrow())) == ROWS
    assert ranked({name: frame[name].to_numpy() for name in frame.columns}) == ROWS
    # An answer is a table too.
    assert ranked(pursuit.sql("SELECT * FROM sample.diabetes")) == ROWS


def test_arrays_have_names_made_up() -> None:
    x = sample("diabetes").drop("label").to_numpy()
    y = sample("diabetes")["label"].to_numpy()
    for order in "CF":
        assert pursuit.select(np.array(x, order=order), y, k=3, selector="omp").features == ["x2", "x8", "x3"]


def test_files_are_read_by_the_engine(tmp_path: Path) -> None:
    frame = sample("diabetes")
    frame[:200].write_parquet(tmp_path / "a.parquet")
    frame[200:].write_parquet(tmp_path / "b.parquet")
    frame.write_csv(tmp_path / "all.csv")
    assert ranked(tmp_path / "all.csv") == ROWS
    assert ranked(str(tmp_path / "*.parquet")) == ROWS
    with pytest.raises(ValueError, match="label must be the name of a column"):
        pursuit.select(str(tmp_path / "all.csv"), label=[1.0, 2.0])


def test_an_index_of_pandas_is_no_feature() -> None:
    frame = sample("diabetes").to_pandas()
    frame = frame[frame["age"] > 40]
    assert frame.index[0] != 0 or len(frame) < frame.index[-1]
    assert table(frame).names == list(frame.columns)


def test_pandas_needs_no_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = sample("diabetes").to_pandas()
    frame["kind"] = np.where(frame["bmi"] > 26, "high", "low")
    frame["when"] = pd.date_range("2020-01-01", periods=len(frame))
    frame["count"] = pd.array(range(len(frame)), dtype="Int64")
    frame["class"] = pd.Categorical(frame["kind"])
    frame["flag"] = frame["bmi"] > 26
    with_arrow = pursuit.select(frame, label="label", k=4, selector="omp")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    without = pursuit.select(frame, label="label", k=4, selector="omp")
    assert without.features == with_arrow.features
    assert without["score"] == pytest.approx(with_arrow["score"], rel=1e-12)


def test_numbers_are_not_copied() -> None:
    x = np.asfortranarray(np.random.default_rng(0).normal(size=(50_000, 3)))
    here = [x[:, at].ctypes.data for at in range(3)]
    assert addresses(table(x)) == here

    frame = pl.DataFrame({"a": x[:, 0], "b": x[:, 1]})
    assert addresses(table(frame)) == addresses(frame.to_arrow())
    arrow = pa.table({"a": x[:, 0], "b": x[:, 1]})
    assert addresses(table(arrow)) == addresses(arrow) == here[:2]
    assert addresses(table(pd.DataFrame({"a": x[:, 0], "b": x[:, 1]}, copy=False))) == here[:2]
    # And back: an answer is handed over where it is.
    answer = pursuit.sql("SELECT a FROM t", t=frame)
    assert addresses(answer.to_polars().to_arrow()) == addresses(answer.to_arrow())


def addresses(of: object) -> list[int]:
    arrow = pa.table(of)
    return [arrow.column(name).chunk(0).buffers()[1].address + arrow.column(name).chunk(0).offset * 8 for name in arrow.column_names]


def test_a_column_more() -> None:
    frame = Table(pl.concat([sample("iris")[:100], sample("iris")[100:]], rechunk=False))
    more = frame.with_column("at", np.arange(150))
    assert pursuit.sql("SELECT at FROM t", t=more)["at"] == list(range(150))
    with pytest.raises(ValueError, match="the table has 150 rows and `at` has 3"):
        frame.with_column("at", np.arange(3))


def test_texts_categories_and_times_are_features() -> None:
    frame = sample("diabetes").with_columns(
        kind=pl.when(pl.col("bmi") > 26).then(pl.lit("high")).otherwise(pl.lit("low")),
        when=pl.datetime_range(pl.datetime(2020, 1, 1), pl.datetime(2020, 1, 2), interval="1m").head(442),
    ).with_columns(category=pl.col("kind").cast(pl.Categorical))
    answer = pursuit.select(frame, label="label", k="auto", selector="correlation", rows="all")
    assert {"kind", "when", "category"} <= set(answer["feature"])


def test_tables_by_keyword_in_any_letter_case() -> None:
    assert pursuit.sql("SELECT count(*) AS n FROM Frame", Frame=sample("iris"))["n"] == [150]
    assert pursuit.sql('SELECT count(*) AS n FROM "Frame"', Frame=sample("iris"))["n"] == [150]
    with pytest.raises(ValueError, match="path where a frame is wanted"):
        pursuit.sql("SELECT * FROM t", t="data.parquet")


def test_options_may_be_tables() -> None:
    groups = pl.DataFrame({"feature": ["s1", "s2"], "feature_group": ["blood", "blood"]})
    answer = pursuit.select(sample("diabetes"), label="label", k=9, selector="omp", groups=groups)
    assert "blood" in answer.features and "s1" not in answer.features
    assert answer.features == pursuit.select(sample("diabetes"), label="label", k=9, selector="omp", groups={"blood": ["s1", "s2"]}).features


def test_answers_go_everywhere() -> None:
    answer = pursuit.select("sample.iris", label="label", k=2, selector="omp")
    assert answer.to_polars()["feature"].to_list() == answer.features
    assert answer.to_pandas()["feature"].tolist() == answer.features
    assert answer.to_arrow()["feature"].to_pylist() == answer.features
    assert duckdb.from_arrow(answer.to_arrow()).fetchall()[0][1] == answer.features[0]
    assert sample("iris").select(answer.features).width == 2
    everything = pursuit.sql(
        "SELECT 1 AS i, 1.5 AS f, true AS b, 'x' AS s, [1, 2] AS l, MAP {'a': 1} AS m, {'p': 1} AS t, NULL AS n, arrow_cast('x', 'Dictionary(Int32, Utf8)') AS d, DATE '2020-01-02' AS day"
    )
    assert next(iter(everything)) == (1, 1.5, True, "x", [1, 2], {"a": 1}, {"p": 1}, None, "x", datetime.date(2020, 1, 2))


def test_days_times_and_decimals_are_pythons() -> None:
    query = (
        "SELECT TIMESTAMP '2020-01-02 03:04:05.123456' AS at, TIME '03:04:05' AS time, CAST('1.50' AS DECIMAL(5, 2)) AS price, X'6162' AS bytes, "
        "arrow_cast('2020-01-02T03:04:05', 'Timestamp(ns, \"+02:00\")') AS zone, INTERVAL '1 day' AS span, arrow_cast(4000000, 'Date32') AS far"
    )
    at, time, price, data, zone, span, far = next(iter(pursuit.sql(query)))
    assert at == datetime.datetime(2020, 1, 2, 3, 4, 5, 123456) and time == datetime.time(3, 4, 5)
    assert price == decimal.Decimal("1.50") and str(price) == "1.50" and data == b"ab"
    assert zone.utcoffset() == datetime.timedelta(hours=2)
    # What Python has no value for is text.
    assert isinstance(span, str) and far.startswith("+12921")


def test_an_answer_shows_itself() -> None:
    answer = pursuit.select(sample("diabetes").rename({"bmi": "<bmi>"}), label="label", k=2, selector="omp")
    page = answer._repr_html_()
    assert "&lt;bmi&gt;" in page and "<bmi>" not in page and page.count("linear-gradient") == 2
    assert "100.0%" in page and "coefficient" in page
    assert repr(answer).splitlines()[0].split()[:3] == ["rank", "feature", "score"]
    with pytest.raises(KeyError, match="no column `nothing`; there are rank"):
        answer["nothing"]
    with pytest.raises(AttributeError, match="no column `feature`"):
        pursuit.sql("SELECT 1 AS one").features
