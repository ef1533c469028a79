"""What counts as a table, and how each becomes one of the engine's. Numbers are borrowed from their owner, not copied."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from typing import Any

from ._engine import Table

_KINDS = "a polars, pandas or pyarrow frame, a DuckDB relation, a numpy array with two dimensions, a dict of columns, or a path"


def is_path(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike))


def is_table(value: Any) -> bool:
    """Whether the value of an option is a table."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "collect_schema") or _is_pandas(value)


def table(data: Any) -> Table:
    """A table of the engine with the rows of ``data``."""
    if isinstance(data, Table):
        return data
    # A lazy frame of polars is a plan, which is carried out now: a selection reads its table more than once.
    if hasattr(data, "collect_schema") and hasattr(data, "collect"):
        data = data.collect()
    if _is_pandas(data):
        return _of_pandas(data)
    if hasattr(data, "__arrow_c_stream__"):
        return Table(data)
    if isinstance(data, Mapping):
        return Table.of_columns([(str(name), column(str(name), values)) for name, values in data.items()])
    if hasattr(data, "__array__") and getattr(data, "ndim", None) == 2:
        return of_array(data)
    if is_path(data):
        raise ValueError(f"{str(data)!r} is a path where a frame is wanted; write it into the query: FROM '{data}'")
    raise TypeError(f"a table must be {_KINDS}, got {type(data).__module__}.{type(data).__name__}")


def of_array(data: Any, names: list[str] | None = None) -> Table:
    """The columns of an array, x0, x1, … where nobody has named them."""
    import numpy

    array = numpy.asarray(data)
    # One column after the other: borrowed where the array is so already.
    array = numpy.asfortranarray(array) if array.dtype != object else array
    names = names or [f"x{at}" for at in range(array.shape[1])]
    return Table.of_columns([(name, column(name, array[:, at])) for at, name in enumerate(names)])


def column(name: str, values: Any) -> Any:
    """Values as the engine takes them: an array with a buffer of numbers or flags, or a list of texts."""
    import numpy

    array = numpy.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"column `{name}` must have one dimension, got {array.ndim}")
    kind = array.dtype.kind
    if kind in "mM":
        # Time as a number; what is not a time is missing.
        number = array.astype("int64").astype("float64")
        number[numpy.isnat(array)] = numpy.nan
        return number
    if kind == "f" and array.dtype.itemsize not in (4, 8):
        array = array.astype("float32" if array.dtype.itemsize < 4 else "float64")
    if kind in "iufb":
        return numpy.require(array, dtype=array.dtype.newbyteorder("="), requirements=["C", "A"])
    if kind in "UT":
        return array.tolist()
    if kind == "O":
        return _of_objects(name, array)
    raise ValueError(f"column `{name}` has values of type {array.dtype}, which are neither numbers, flags nor texts")


def _of_objects(name: str, array: Any) -> Any:
    import numpy

    values = [None if value is None or value != value else value for value in array.tolist()]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {str}:
        return values
    if kinds <= {bool, numpy.bool_} and None not in values:
        return array.astype(bool)
    if kinds == {int} and None not in values:
        return array.astype("int64")
    try:
        if kinds and not kinds & {str, bytes, complex}:
            return numpy.array([numpy.nan if value is None else float(value) for value in values])
    except (TypeError, ValueError):
        pass
    raise ValueError(_mixed(name, kinds))


def _mixed(name: str, kinds: set[type]) -> str:
    shown = ", ".join(sorted(kind.__name__ for kind in kinds)[:5])
    return f"column `{name}` has Python values of the types {shown}; make them all numbers or all texts"


def _is_pandas(data: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _of_pandas(frame: Any) -> Table:
    names = [str(name) for name in frame.columns]
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise ValueError(f"two columns are named `{twice}`; rename one")
    for at, name in enumerate(names):
        if frame.dtypes.iloc[at] == object:
            kinds = {type(value) for value in frame.iloc[:, at] if value is not None and value == value}
            if len(kinds) > 1 and str in kinds:
                raise ValueError(_mixed(name, kinds))
    if importlib.util.find_spec("pyarrow") is not None:
        import pyarrow

        try:
            # The index tells rows apart, and is no feature.
            return Table(pyarrow.Table.from_pandas(frame, preserve_index=False))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError) as error:
            raise ValueError(f"the table cannot be read: {'; '.join(map(str, error.args))}") from None
    return Table.of_columns([(name, column(name, _plain(frame.iloc[:, at]))) for at, name in enumerate(names)])


def _plain(series: Any) -> Any:
    """A column of pandas without pandas' own types."""
    import numpy
    import pandas

    if isinstance(series.dtype, numpy.dtype):
        return series.to_numpy()
    if pandas.api.types.is_numeric_dtype(series.dtype):
        return series.to_numpy(dtype="float64", na_value=numpy.nan)
    return series.astype(object).to_numpy()
