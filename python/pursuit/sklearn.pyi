from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin

from .result import Result

class Selector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    result_: Result
    scores_: np.ndarray[Any, Any]
    ranking_: np.ndarray[Any, Any]
    def __init__(self, **options: Any) -> None: ...
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self: ...

def class_name(selector: str) -> str: ...

# A class for each selector of the registry.
def __getattr__(name: str) -> type[Selector]: ...
