"""An answer: a table that shows itself, and that every library of frames can read."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._engine import Table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_ROWS_SHOWN = 60


class Result:
    """The answer to a selection or a query.

    >>> import pursuit
    >>> r = pursuit.select("sample.diabetes", label="label", selector="omp", k=2)
    >>> r.features
    ['bmi', 's5']
    >>> r["rank"], len(r)
    ([1, 2], 2)

    It is an Arrow stream itself, so that ``polars.DataFrame(r)``, ``pyarrow.table(r)`` and ``duckdb`` read it.
    """

    def __init__(self, table: Table, query: str = "", notes: list[str] | None = None) -> None:
        self._table = table
        self._columns: dict[str, list[Any]] | None = None
        self.query = query
        """The SQL that was answered."""
        self.notes = list(notes or [])
        """What is to be known of the answer, a line for each."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._table.names

    @property
    def features(self) -> list[str]:
        """The chosen features, best first, each once."""
        if "feature" not in self.columns:
            raise AttributeError(f"this answer has no column `feature`; its columns are {', '.join(self.columns)}")
        ranks = self["rank"] if "rank" in self.columns else [1] * len(self)
        chosen = [(rank, feature) for rank, feature in zip(ranks, self["feature"]) if rank is not None and feature is not None]
        return list(dict.fromkeys(feature for _, feature in sorted(chosen, key=lambda row: row[0])))

    def __getitem__(self, column: str) -> list[Any]:
        """The values of a column."""
        try:
            return self.to_dict()[column]
        except KeyError:
            raise KeyError(f"no column `{column}`; there are {', '.join(self.columns)}") from None

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows as tuples."""
        return zip(*self.to_dict().values())

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by name, as lists."""
        if self._columns is None:
            self._columns = dict(zip(self._table.names, self._table.columns()))
        return self._columns

    def to_polars(self) -> polars.DataFrame:
        import polars

        return polars.DataFrame(self._table)

    def to_arrow(self) -> pyarrow.Table:
        import pyarrow

        return pyarrow.table(self._table)

    def to_pandas(self) -> pandas.DataFrame:
        import pandas

        try:
            return self.to_arrow().to_pandas()
        except ImportError:
            return pandas.DataFrame(self.to_dict())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._table.__arrow_c_schema__()

    def __repr__(self) -> str:
        shown = self._shown()
        cells = {name: [name, *(_text(value) for value in values[:_ROWS_SHOWN])] for name, values in shown.items()}
        widths = {name: max(map(len, column)) for name, column in cells.items()}
        is_number = {name: _are_numbers(values) for name, values in shown.items()}
        lines = []
        for row in zip(*cells.values()):
            padded = (f"{cell:>{widths[name]}}" if is_number[name] else f"{cell:<{widths[name]}}" for name, cell in zip(cells, row))
            lines.append("  ".join(padded).rstrip())
        return "\n".join([*lines, *self._below()])

    def _repr_html_(self) -> str:
        shown = self._shown()
        longest = max((abs(value) for value in shown.get("score", []) if _is_finite(value)), default=0.0)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in shown)
        rows = []
        for row in list(zip(*shown.values()))[:_ROWS_SHOWN]:
            cells = (_cell(name, value, longest) for name, value in zip(shown, row))
            rows.append(f"<tr>{''.join(cells)}</tr>")
        below = "".join(f"<div style='opacity:.7'>{html.escape(line)}</div>" for line in self._below())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{below}"

    def _shown(self) -> dict[str, list[Any]]:
        """The columns without those in which there is nothing."""
        return {name: values for name, values in self.to_dict().items() if not values or any(value is not None for value in values)}

    def _below(self) -> list[str]:
        more = len(self) - _ROWS_SHOWN
        return ([f"and {more} rows more"] if more > 0 else []) + [f"note: {note}" for note in self.notes]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _are_numbers(values: list[Any]) -> bool:
    return all(value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)) for value in values)


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and value - value == 0


def _cell(name: str, value: Any, longest: float) -> str:
    text = html.escape(_text(value))
    if name == "score" and _is_finite(value) and longest > 0:
        width = 100 * abs(value) / longest
        bar = f"background:linear-gradient(90deg,#7aa6da80 {width:.1f}%,transparent {width:.1f}%)"
        return f"<td style='text-align:left;min-width:9em;{bar}'>{text}</td>"
    side = "right" if _are_numbers([value]) and value is not None else "left"
    return f"<td style='text-align:{side}'>{text}</td>"
