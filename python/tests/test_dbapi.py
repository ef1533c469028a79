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


def test_values_go_in_and_come_out() -> None:
    given = [
        dbapi.Date(2020, 1, 2), dbapi.Time(3, 4, 5), dbapi.Timestamp(2020, 1, 2, 3, 4, 5, 6), dbapi.Binary(b"a\x00b"),
        dbapi.DateFromTicks(86400 * 400), dbapi.TimestampFromTicks(1e9), dbapi.TimeFromTicks(1e9), "it's ?", None, 7, 0.1, True,
    ]
    cursor = dbapi.connect().cursor()
    cursor.execute(f"SELECT {', '.join(f'? AS c{at}' for at in range(len(given)))}", given)
    assert cursor.fetchone() == tuple(given)
    kinds = [column[1] for column in cursor.description]
    assert kinds[0] == dbapi.DATETIME and kinds[2] == dbapi.DATETIME and kinds[3] == dbapi.BINARY and kinds[0] != dbapi.STRING


def test_pandas_reads_through_it() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pandas.read_sql("SELECT feature FROM omp(sample.iris, label => label, k => 2)", dbapi.connect())
    assert len(frame) == 2


QUESTION = "SELECT rank, feature FROM omp(wine, label => label, k => 2) ORDER BY rank"


def test_a_cell_of_marimo() -> None:
    marimo = pytest.importorskip("marimo")
    frame = marimo.sql(QUESTION, engine=dbapi.connect(wine=sample("wine")), output=False)
    assert frame.columns == ["rank", "feature"] and frame["rank"].to_list() == [1, 2]


def test_a_cell_of_jupysql() -> None:
    pytest.importorskip("sql")
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "sql")
    shell.user_ns["connection"] = dbapi.connect(wine=sample("wine"))
    shell.run_line_magic("sql", "connection")
    answer = shell.run_cell_magic("sql", "", QUESTION)
    assert answer.DataFrame()["rank"].tolist() == [1, 2]


def test_sqlalchemy_fills_in_parameters() -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    from sqlalchemy.dialects import registry
    from sqlalchemy.engine.default import DefaultDialect

    class Dialect(DefaultDialect):
        name = "pursuit"
        supports_statement_cache = True
        default_paramstyle = dbapi.paramstyle

        @classmethod
        def import_dbapi(cls) -> object:
            return dbapi

        def do_rollback(self, connection: dbapi.Connection) -> None:
            connection.rollback()

    registry.impls["pursuit"] = lambda: Dialect
    engine = sqlalchemy.create_engine("pursuit://", creator=lambda: dbapi.connect(wine=sample("wine")))
    with engine.connect() as connection:
        query = sqlalchemy.text("SELECT feature FROM omp(wine, label => label, k => :count) WHERE rank >= :least ORDER BY rank")
        rows = connection.execute(query, {"least": 2, "count": 3}).fetchall()
    assert len(rows) == 2
    with pytest.raises(sqlalchemy.exc.ProgrammingError, match="no column `nothing`"), engine.connect() as connection:
        connection.execute(sqlalchemy.text("SELECT * FROM omp(wine, label => nothing)"))
