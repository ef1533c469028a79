"""Feature selection: which columns of a table predict another one?

>>> import pursuit
>>> ranking = pursuit.select("sample.diabetes", label="label", selector="omp", k=3)
>>> ranking.features
['bmi', 's5', 'bp']

A table is a polars (also lazy), pandas or pyarrow frame, a DuckDB relation, a numpy array, a dict of columns, anything else with
``__arrow_c_stream__``, or the path of a file. ``pursuit.selectors()`` lists the methods and ``pursuit.options("omp")`` what one of them takes,
``pursuit.sql`` asks anything that SQL can ask, and ``pursuit.sklearn`` has a class for each selector.
"""

from __future__ import annotations

from typing import Any

from . import _sql
from ._engine import Session, __version__
from ._progress import watcher
from ._tables import column, is_path, is_table, table
from .result import Result

__all__ = ["Result", "__version__", "options", "select", "selectors", "sql"]


def select(
    data: Any,
    label: Any,
    k: int | str | None = None,
    *,
    selector: str = "select_features",
    progress: bool | None = None,
    **options: Any,
) -> Result:
    """Ranks the columns of ``data`` by how well they predict ``label``.

    Parameters
    ----------
    data : frame, relation, array, dict of columns, or path
        A path or a glob such as ``"data/*.parquet"`` is read by the engine, and so is a sample table such as ``"sample.wine"``. The columns of
        an array are called x0, x1, …
    label : str or array
        The name of the column to predict, or its values.
    k : int, "auto" or "one_se"
        How many features. If not given, as many as the selector itself asks for, which the default does, or 10.
    selector : str
        One of ``pursuit.selectors()["selector"]``. The default tries several of them and asks rows held out who was right.
    progress : bool
        Whether to show what is going on. ``None``: where a person looks on, when it takes longer than two seconds.
    **options
        What ``pursuit.options(selector)`` lists: numbers, texts, lists, dicts and, where a table can be given, frames. An option that is a word
        of Python has an underscore behind it: ``lambda_``.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(200, 4))
    >>> pursuit.select(x, label=2 * x[:, 2] - x[:, 0], k=2, selector="omp").features
    ['x2', 'x0']
    """
    session = Session()
    if is_path(data):
        if not isinstance(label, str):
            raise ValueError("label must be the name of a column where the table is a file")
        source = _sql.literal(str(data))
    else:
        given = table(data)
        if not isinstance(label, str):
            label, values = _sql.free_name("label", given.names), label
            given = given.with_column(label, column(label, values))
        session.register("t", given)
        source = "t"
    if k is not None:
        options = {"k": k, **options}
    for name, value in options.items():
        if is_table(value):
            options[name] = _sql.Name(f"option_{name}")
            session.register(options[name], table(value))
    query = _sql.call(selector, source, label, options)
    try:
        return _ask(session, query, progress)
    except ValueError:
        # Of a function that is not there SQL says less than the registry.
        _manual(selector)
        raise


def sql(query: str, *, progress: bool | None = None, **tables: Any) -> Result:
    """Answers a query about tables that are given by name, files, and the sample tables.

    Every function of the manual can be called; a selection is a table like others.

    >>> import numpy as np
    >>> known = {"feature": ["bmi", "s5"], "meaning": ["body mass index", "log of triglycerides"]}
    >>> query = "SELECT rank, meaning FROM omp(sample.diabetes, label => label, k => 3) JOIN known USING (feature) ORDER BY rank"
    >>> pursuit.sql(query, known=known)["meaning"]
    ['body mass index', 'log of triglycerides']
    """
    session = Session()
    for name, data in tables.items():
        session.register(name, table(data))
    return _ask(session, query, progress)


def selectors() -> Result:
    """The selectors: what each does, which labels it predicts, what its score is.

    >>> "omp" in pursuit.selectors()["selector"]
    True
    """
    return sql("SELECT * FROM selectors()")


def options(selector: str) -> Result:
    """The options of a selector: their types, defaults, and what they are for.

    >>> pursuit.options("omp")["option"][:3]
    ['model', 'criterion', 'tolerance']
    """
    return _manual(selector)


def _manual(selector: str) -> Result:
    return sql(f"SELECT * FROM selector_options({_sql.literal(selector)})")


def _ask(session: Session, query: str, progress: bool | None) -> Result:
    with watcher(progress) as watch:
        answer = session.query(query, watch)
    return Result(answer, query, session.remarks())
