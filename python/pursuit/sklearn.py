"""The selectors as scikit-learn transformers: a class for each, made from the registry when this module is imported.

>>> from pursuit.sklearn import OMP
>>> from sklearn.datasets import load_diabetes
>>> x, y = load_diabetes(return_X_y=True, as_frame=True)
>>> OMP(k=3).fit(x, y).get_feature_names_out().tolist()
['bmi', 'bp', 's5']
"""

from __future__ import annotations

import ast
import inspect
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from . import _ask, _sql, sql
from . import options as _options_of
from . import selectors as _selectors
from ._engine import Session
from ._tables import column, is_table, of_array, table
from .result import Result

# How the parts of a name are written that are no words.
_SPELLED = {word.lower(): word for word in "BART CART CMIM DeepLIFT GAM HSIC JMI LARS LassoNet MRMR OMP PFA RFE STG SVM".split()}

# Options that have another form here: weights are given to `fit`, one ranking is one transformer, and all rows of the answer are asked for.
_NOT_HERE = {"weights", "partition_by", "rows", "label"}


class Selector(SelectorMixin, BaseEstimator):
    """What all of them share. Take one of the subclasses."""

    _selector: str
    _labels: str
    _defaults: dict[str, Any]

    result_: Result
    """The whole answer, with the reason why a feature was not chosen."""
    scores_: np.ndarray[Any, Any]
    """The score of each feature; NaN where it was not chosen."""
    ranking_: np.ndarray[Any, Any]
    """The rank of each feature; those that were not chosen share the one after the last."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Selector:
        """Selects features by the rows of ``X``.

        ``X`` is an array or a frame; text columns of a frame are features too. ``y`` may be numbers or classes. A weight says how often a row counts.
        """
        is_frame = hasattr(X, "columns")
        checked, y = validate_data(
            self, X, y, dtype=None if is_frame else "numeric", ensure_all_finite="allow-nan", ensure_min_samples=2, y_numeric=False
        )
        given = table(X) if is_frame and (is_table(X) or hasattr(X, "iloc")) else of_array(checked)
        names = given.names
        label = _sql.free_name("label", names)
        given = given.with_column(label, column(label, y))
        options = {name: getattr(self, name) for name, default in self._defaults.items() if not _is_same(getattr(self, name), default)}
        options["rows"] = "all"
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, checked, dtype=np.float64, ensure_non_negative=True)
            options["weights"] = _sql.free_name("sample_weight", given.names)
            given = given.with_column(options["weights"], sample_weight)
            if "task" not in options and y.dtype.kind in "iu":
                options["task"] = _task(y, sample_weight)
        session = Session()
        session.register("t", given)
        for name, value in options.items():
            if is_table(value):
                options[name] = _sql.Name(f"option_{name}")
                session.register(options[name], table(value))
        self.result_ = _ask(session, _sql.call(self._selector, "t", label, options), None)
        self._keep(names)
        return self

    def _keep(self, names: list[str]) -> None:
        groups = getattr(self, "groups", None)
        if groups is None:
            groups = {}
        elif is_table(groups):
            pairs = Result(table(groups))
            members: dict[str, list[str]] = {}
            for feature, group in zip(pairs["feature"], pairs["feature_group"]):
                members.setdefault(group, []).append(feature)
            groups = members
        at = {name: place for place, name in enumerate(names)}
        self._support = np.zeros(len(names), dtype=bool)
        self.scores_ = np.full(len(names), np.nan)
        chosen = self.result_.features
        self.ranking_ = np.full(len(names), len(chosen) + 1)
        score = dict(zip(self.result_["feature"], self.result_["score"]))
        for rank, feature in enumerate(chosen, 1):
            # A feature may be a group of columns, which are chosen together.
            for name in groups.get(feature, [feature]):
                if name in at:
                    self._support[at[name]] = True
                    self.scores_[at[name]] = score[feature]
                    self.ranking_[at[name]] = rank

    def __sklearn_is_fitted__(self) -> bool:
        # An option may end in an underscore, as only what is learnt does elsewhere.
        return hasattr(self, "result_")

    def _get_support_mask(self) -> np.ndarray[Any, Any]:
        check_is_fitted(self)
        return self._support

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        if self._labels == "numbers, two classes":
            tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def _task(y: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> str:
    """Whether whole numbers are classes, by the engine's rule for rows, of which a weight is a number: at most 32 values, five rows of each."""
    values = len(np.unique(y[weights > 0]))
    return "classification" if values <= 32 and weights.sum() >= 5 * values else "regression"


def class_name(selector: str) -> str:
    """
    >>> class_name("sequential_attention"), class_name("omp")
    ('SequentialAttention', 'OMP')
    """
    return "".join(_SPELLED.get(word, word.capitalize()) for word in selector.split("_"))


def _is_same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def _default(text: str, kind: str) -> Any:
    """A default as the registry prints it.

    >>> _default("'auto'", "text"), _default("[67]", "list of whole numbers"), _default("0", "number"), _default("NULL", "number")
    ('auto', (67,), 0.0, None)
    """
    if text in ("true", "false"):
        return text == "true"
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return None
    if isinstance(value, list):
        return tuple(value)
    return float(value) if kind == "number" else value


def _make(manual: dict[str, str]) -> type[Selector]:
    """The class of a selector, from its row in the manual."""
    selector = manual["selector"]
    rows = [row for row in _rows(_options_of(selector)) if row["option"] not in _NOT_HERE and row["type"] != "table"]
    # What most people set comes first.
    rows.sort(key=lambda row: row["option"] != "k")
    defaults = {_sql.argument_name(row["option"]): _default(row["default"], row["type"]) for row in rows}
    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default) for name, default in defaults.items()]
    signature = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY), *parameters])

    def __init__(self: Selector, **options: Any) -> None:
        name = type(self).__name__
        for option in options:
            if option not in defaults:
                raise TypeError(f"{name}() got an unexpected keyword argument '{option}'; its options are {', '.join(defaults)}")
        for option, default in defaults.items():
            setattr(self, option, options.get(option, default))

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    body = {
        "__init__": __init__,
        "__doc__": _documentation(*_page(selector), rows),
        "__module__": __name__,
        "_selector": selector,
        "_labels": manual["labels"],
        "_defaults": defaults,
    }
    return type(class_name(selector), (Selector,), body)


def _rows(answer: Result) -> list[dict[str, str]]:
    return [dict(zip(answer.columns, row)) for row in answer]


def _page(selector: str) -> tuple[str, str]:
    """What a selector does, and what its score is, from its page in the manual."""
    lines = [line.strip() for line in sql(f"SELECT * FROM manual({_sql.literal(selector)})")["manual"]]
    call, options = lines.index("Call"), next(at for at, line in enumerate(lines) if line.startswith("Options"))
    return "\n".join(lines[2:call]), " ".join(lines[call:options]).partition("score: ")[2].strip()


def _documentation(description: str, score: str, rows: list[dict[str, str]]) -> str:
    lines = [description.strip(), "", "Parameters", "----------"]
    for row in rows:
        allowed = f", {row['allowed']}" if row["allowed"] else ""
        lines += [f"{_sql.argument_name(row['option'])} : {row['type']}{allowed}, default {row['default']}", f"    {row['description']}"]
    lines += [
        "",
        "Attributes",
        "----------",
        "result_ : Result",
        "    The whole answer, with the reason why a feature was not chosen.",
        "ranking_ : array of int",
        "    The rank of each feature; those that were not chosen share the one after the last.",
        "scores_ : array of float",
        f"    NaN where a feature was not chosen, otherwise: {score}.",
    ]
    return "\n".join(lines)


_CLASSES = {class_name(row["selector"]): _make(row) for row in _rows(_selectors())}
globals().update(_CLASSES)
__all__ = ["Selector", *_CLASSES]
