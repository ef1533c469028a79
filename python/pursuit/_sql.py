"""Python values as SQL, and a call of a selector as a query."""

from __future__ import annotations

import datetime
import decimal
import keyword
import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any


class Name(str):
    """The name of a table, where others are texts."""


def call(function: str, source: str, label: str, options: Mapping[str, Any]) -> str:
    """
    >>> call("omp", "t", "it's", {"k": 3, "exclude": ["id"], "groups": {"size": ["a", "b"]}})
    "SELECT * FROM omp(t, label => 'it''s', k => 3, exclude => ['id'], groups => MAP {'size': ['a', 'b']})"
    """
    if not function.isidentifier():
        raise ValueError(f"selector must be a name such as 'omp', got {function!r}")
    given = [f"{option_name(option)} => {literal(value)}" for option, value in options.items()]
    return f"SELECT * FROM {', '.join([f'{function}({source}', f'label => {literal(label)}', *given])})"


def argument_name(option: str) -> str:
    """An option as Python can write it: ``lambda_``."""
    return option + "_" if keyword.iskeyword(option) else option


def option_name(argument: str) -> str:
    return argument[:-1] if keyword.iskeyword(argument[:-1]) else argument


def free_name(wish: str, taken: Iterable[str]) -> str:
    """
    >>> free_name("label", ["a", "label"])
    'label_'
    """
    taken = set(taken)
    while wish in taken:
        wish += "_"
    return wish


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """A value as SQL writes it.

    >>> literal([1, 0.5, None, True, "it's"])
    "[1, 0.5, NULL, true, 'it''s']"
    >>> literal(datetime.date(2020, 1, 2)), literal(b"ab")
    ("DATE '2020-01-02'", "X'6162'")
    """
    if isinstance(value, Name):
        return identifier(value)
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    # numpy's flags are no bool.
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, (numbers.Real, decimal.Decimal)):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"a number must be finite, got {number}")
        return repr(number)
    # A moment is a day too, so it is asked for first.
    for kind, word in ((datetime.datetime, "TIMESTAMP"), (datetime.date, "DATE"), (datetime.time, "TIME")):
        if isinstance(value, kind):
            return f"{word} '{value.isoformat()}'"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, Mapping):
        items = ", ".join(f"{literal(key)}: {literal(item)}" for key, item in value.items())
        return f"MAP {{{items}}}"
    if isinstance(value, Iterable):
        return f"[{', '.join(literal(item) for item in value)}]"
    raise ValueError(f"a value of type {type(value).__name__} cannot be written in SQL: {value!r:.80}")
