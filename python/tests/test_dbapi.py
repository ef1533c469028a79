"""DB-API 2, by the letter of PEP 249."""

from __future__ import annotations

import pytest
from conftest import sample

from pursuit import dbapi


def test_a_connection() -> None:
    assert (dbapi.apilevel, dbapi.paramstyle) == ("2.0", "qmark")
    with dbapi.connect(iris=sample("iris")) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE best AS SELECT rank, feature, score FROM omp(iris, label => label, k => ?)", (3,))
        cursor.execute("SELECT * FROM best ORDER BY rank -- really?")
        assert [column[0] for column in cursor.description] == ["rank", "feature", "score"]
        assert cursor.description[0][1] == dbapi.NUMBER and cursor.description[1][1] == dbapi.STRING
        assert cursor.description[1][1] != dbapi.NUMBER
        assert cursor.rowcount == 3
        first = cursor.fetchone()
        assert first[0] == 1 and isinstance(first[2], float)
        assert [row[0] for row in cursor.fetchmany(1)] == [2]
        assert [row[0] for row in cursor.fetchall()] == [3]
        assert cursor.fetchone() is None and cursor.fetchall() == []
        assert cursor.result.features == [row[1] for row in cursor.execute("SELECT * FROM best ORDER BY rank")]
        connection.commit()
        connection.rollback()
        connection.register("more", {"a": [1, 2]})
        assert connection.execute("SELECT sum(a) FROM more").fetchone() == (3,)
        cursor.executemany("SELECT ?", [(1,), ("it's",)])
        assert cursor.fetchall() == [("it's",)]
    with pytest.raises(dbapi.InterfaceError, match="closed"):
        cursor.execute("SELECT 1")


def test_sessions_are_apart() -> None:
    first, second = dbapi.connect(), dbapi.connect()
    first.execute("CREATE TABLE only_here AS SELECT 1 AS one")
    with pytest.raises(dbapi.ProgrammingError, match="only_here"):
        second.execute("SELECT * FROM only_here")


def test_mistakes() -> None:
    connection = dbapi.connect()
    with pytest.raises(connection.ProgrammingError, match="omp: no column `nothing`"):
        connection.execute("SELECT * FROM omp(sample.iris, label => nothing)")
    with pytest.raises(dbapi.ProgrammingError, match="more parameters than the 1"):
        connection.execute("SELECT ?, ?", (1,))
    with pytest.raises(dbapi.ProgrammingError, match="0 parameters, and 1 are given"):
        connection.execute("SELECT '?'", (1,))
    with pytest.raises(dbapi.ProgrammingError, match="no answer to fetch"):
        connection.cursor().fetchone()
    assert issubclass(dbapi.ProgrammingError, dbapi.DatabaseError) and issubclass(dbapi.DatabaseError, dbapi.Error)


def test_pandas_reads_through_it() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pandas.read_sql("SELECT feature FROM omp(sample.iris, label => label, k => 2)", dbapi.connect())
    assert len(frame) == 2
