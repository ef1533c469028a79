"""The engine behind Python's database interface (DB-API 2), for SQL cells of notebooks and whatever else speaks it.

>>> from pursuit import dbapi
>>> with dbapi.connect(known={"feature": ["bmi", "s5"]}) as connection:
...     cursor = connection.cursor()
...     cursor.execute("SELECT rank, feature FROM omp(sample.diabetes, label => label, k => ?) JOIN known USING (feature) ORDER BY rank", [3]).fetchall()
[(1, 'bmi'), (2, 's5')]
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import _ask, _sql
from ._engine import Session
from ._tables import table
from .result import Result

apilevel = "2.0"
# Threads may share connections: queries of one do not wait for each other.
threadsafety = 2
paramstyle = "qmark"


class Warning(Exception):
    pass


class Error(Exception):
    pass


class InterfaceError(Error):
    pass


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


class _Type:
    """A group of column types, equal to each of them."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and bool(self._pattern.match(other)))

    def __hash__(self) -> int:
        return hash(self._pattern)


STRING = _Type("Utf8|LargeUtf8|Utf8View|Dictionary")
BINARY = _Type("Binary|LargeBinary|BinaryView|FixedSizeBinary")
NUMBER = _Type("U?Int|Float|Decimal|Boolean")
DATETIME = _Type("Date|Time|Duration|Interval")
ROWID = _Type("(?!)")


# Values of the types that SQL has and texts and numbers are not. Python's own are taken as they are.
Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    return TimestampFromTicks(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ticks)


def connect(**tables: Any) -> Connection:
    """Opens a session of its own that knows these tables, the sample tables, and files by their path."""
    return Connection(tables)


class Connection:
    Warning, Error, InterfaceError, DatabaseError, DataError = Warning, Error, InterfaceError, DatabaseError, DataError
    OperationalError, IntegrityError, InternalError = OperationalError, IntegrityError, InternalError
    ProgrammingError, NotSupportedError = ProgrammingError, NotSupportedError

    def __init__(self, tables: dict[str, Any]) -> None:
        self._session: Session | None = Session()
        for name, data in tables.items():
            self.register(name, data)

    def register(self, name: str, data: Any) -> None:
        """Makes a frame a table of this session."""
        with _translated():
            self._open().register(name, table(data))

    def cursor(self) -> Cursor:
        self._open()
        return Cursor(self)

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> Cursor:
        return self.cursor().execute(query, parameters)

    def commit(self) -> None:
        """Nothing: each statement holds by itself."""
        self._open()

    def rollback(self) -> None:
        """Nothing: there is nothing to take back."""
        self._open()

    def close(self) -> None:
        self._session = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Session:
        if self._session is None:
            raise InterfaceError("the connection is closed")
        return self._session


class Cursor:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self._is_open = True
        self._forget()

    def _forget(self) -> None:
        self.result: Result | None = None
        self._rows: Iterator[tuple[Any, ...]] = iter(())
        self.description: list[tuple[Any, ...]] | None = None
        self.rowcount = -1

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> Cursor:
        """Runs a query. Each ``?`` outside of quotes and comments stands for a parameter."""
        session = self._session()
        self._forget()
        with _translated():
            self.result = _ask(session, _bound(query, parameters), None)
        if self.result.columns:
            types = self.result._table.types
            self.description = [(name, kind, None, None, None, None, None) for name, kind in zip(self.result.columns, types)]
            self.rowcount = len(self.result)
            self._rows = iter(self.result)
        return self

    def executemany(self, query: str, parameters: Sequence[Sequence[Any]]) -> Cursor:
        for given in parameters:
            self.execute(query, given)
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(self._answered(), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        rows = self._answered()
        return [row for _, row in zip(range(self.arraysize if size is None else size), rows)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._answered())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._answered()

    def setinputsizes(self, sizes: Any) -> None:
        pass

    def setoutputsize(self, size: Any, column: Any = None) -> None:
        pass

    def close(self) -> None:
        self._is_open = False
        self._forget()

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _session(self) -> Session:
        if not self._is_open:
            raise InterfaceError("the cursor is closed")
        return self.connection._open()

    def _answered(self) -> Iterator[tuple[Any, ...]]:
        self._session()
        if self.description is None:
            raise ProgrammingError("there is no answer to fetch; execute a query first")
        return self._rows


_PARTS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|\?""", re.DOTALL)


def _bound(query: str, parameters: Sequence[Any]) -> str:
    """
    >>> _bound("SELECT '?', ? -- why?", ["it's"])
    "SELECT '?', 'it''s' -- why?"
    """
    left = list(parameters)

    def fill(part: re.Match[str]) -> str:
        if part.group() != "?":
            return part.group()
        if not left:
            raise ProgrammingError(f"the query has more parameters than the {len(parameters)} that are given")
        return _sql.literal(left.pop(0))

    filled = _PARTS.sub(fill, query)
    if left:
        raise ProgrammingError(f"the query has {len(parameters) - len(left)} parameters, and {len(parameters)} are given")
    return filled


@contextmanager
def _translated() -> Iterator[None]:
    kinds: list[tuple[type[Exception] | tuple[type[Exception], ...], Callable[[str], Error]]] = [
        (NotImplementedError, NotSupportedError),
        ((ValueError, TypeError), ProgrammingError),
        ((MemoryError, OSError), OperationalError),
        (RuntimeError, InternalError),
    ]
    try:
        yield
    except Error:
        raise
    except Exception as error:
        kind = next((to for of, to in kinds if isinstance(error, of)), DatabaseError)
        raise kind(str(error)) from error
