"""scikit-learn's own suite for every class, and what its users do with transformers."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn
from conftest import cheap, sample, selectors
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import pursuit
import pursuit.sklearn
from pursuit import _sql
from pursuit.sklearn import OMP, class_name

CLASSES = {name: getattr(pursuit.sklearn, class_name(name)) for name in selectors()}


def quick(selector: str) -> Any:
    return CLASSES[selector](**{_sql.argument_name(option): value for option, value in cheap(selector).items()})


@parametrize_with_checks([quick(name) for name in selectors()])
def test_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


def test_a_class_for_every_selector() -> None:
    assert set(pursuit.sklearn.__all__) == {"Selector"} | {made.__name__ for made in CLASSES.values()}
    for selector, made in CLASSES.items():
        options = pursuit.options(selector)
        signature = inspect.signature(made)
        for option, description, kind in zip(options["option"], options["description"], options["type"]):
            if option in pursuit.sklearn._NOT_HERE or kind == "table":
                continue
            assert _sql.argument_name(option) in signature.parameters
            assert description in made.__doc__
        assert made.__doc__.startswith(dict(zip(pursuit.selectors()["selector"], pursuit.selectors()["summary"]))[selector])


@pytest.mark.parametrize("selector", selectors())
def test_the_answer_is_the_engines(selector: str) -> None:
    frame = sample("iris").with_columns(label=pl.when(pl.col("label") == sample("iris")["label"][0]).then(pl.lit("a")).otherwise(pl.lit("b")))
    x, y = frame.drop("label"), frame["label"]
    made = clone(quick(selector)).set_params(k=2).fit(x, y.to_numpy())
    answer = pursuit.select(frame, label="label", selector=selector, k=2, rows="all", **cheap(selector))
    assert made.result_.to_dict() == answer.to_dict()
    chosen = [x.columns[at] for at in np.argsort(made.ranking_, kind="stable")[: len(answer.features)]]
    assert chosen == answer.features
    assert sorted(made.get_feature_names_out()) == sorted(answer.features)
    assert np.isfinite(made.scores_[made.get_support()]).all() and np.isnan(made.scores_[~made.get_support()]).all()


def test_a_pipeline() -> None:
    wine = sample("wine").to_pandas()
    x, y = wine.drop(columns="label"), wine["label"]
    pipeline = make_pipeline(OMP(k=10), LogisticRegression(max_iter=5000))
    assert cross_val_score(pipeline, x, y).mean() > 0.9
    search = GridSearchCV(make_pipeline(OMP(), LinearRegression()), {"omp__k": [1, 3, 5]}, n_jobs=2)
    diabetes = sample("diabetes").to_pandas()
    search.fit(diabetes.drop(columns="label"), diabetes["label"])
    assert search.best_params_["omp__k"] in (3, 5)


def test_frames_in_and_out() -> None:
    diabetes = sample("diabetes")
    x, y = diabetes.drop("label"), diabetes["label"].to_numpy()
    for frame in (x, x.to_pandas()):
        made = OMP(k=2).fit(frame, y)
        assert made.feature_names_in_.tolist() == x.columns
        assert isinstance(made.transform(frame), np.ndarray)
    assert made.set_output(transform="pandas").transform(x.to_pandas()).columns.tolist() == ["bmi", "s5"]
    polars = OMP(k=2).fit(x, y).set_output(transform="polars").transform(x)
    assert isinstance(polars, pl.DataFrame) and polars.columns == ["bmi", "s5"]
    assert OMP(k=2).fit(x.to_numpy(), y).get_feature_names_out().tolist() == ["x2", "x8"]


def test_text_columns_of_a_frame_are_features() -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"colour": rng.choice(["red", "green"], 300), "noise": rng.normal(size=300), "label": rng.normal(size=300)})
    y = (x["colour"] == "red") * 2.0 + x["label"] * 0.1
    made = OMP(k=2).fit(x, y).set_output(transform="pandas")
    assert made.transform(x).columns.tolist() == ["colour", "label"]


def test_weights_through_metadata_routing() -> None:
    x = np.random.default_rng(0).normal(size=(200, 3))
    y = np.where(np.arange(200) < 100, x[:, 0], x[:, 2])
    weights = np.where(np.arange(200) < 100, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(OMP(k=1).set_fit_request(sample_weight=True), LinearRegression().set_fit_request(sample_weight=True))
        pipeline.fit(x, y, sample_weight=weights)
    assert pipeline[0].get_support().tolist() == [False, False, True]
    assert OMP(k=1).fit(x, y, sample_weight=1 - weights).get_support().tolist() == [True, False, False]


def test_groups_are_chosen_together() -> None:
    diabetes = sample("diabetes")
    groups = {"blood": ["s1", "s2", "s5"]}
    for given in (groups, pl.DataFrame({"feature": groups["blood"], "feature_group": ["blood"] * 3})):
        made = OMP(k=1, groups=given).fit(diabetes.drop("label"), diabetes["label"].to_numpy())
        assert made.get_feature_names_out().tolist() == ["s1", "s2", "s5"] or made.result_.features == ["bmi"]
        made = OMP(k=2, groups=given).fit(diabetes.drop("label"), diabetes["label"].to_numpy())
        assert made.get_feature_names_out().tolist() == ["bmi", "s1", "s2", "s5"]


def test_clone_and_pickle() -> None:
    x, y = sample("wine").drop("label").to_numpy(), sample("wine")["label"].to_numpy()
    made = OMP(k=3, exclude=["x0"], tolerance=0.1).fit(x, y)
    assert clone(made).get_params() == made.get_params()
    again = pickle.loads(pickle.dumps(made))
    assert (again.transform(x) == made.transform(x)).all()
    assert again.result_.to_dict() == made.result_.to_dict()


def test_mistakes() -> None:
    x, y = sample("iris").drop("label").to_numpy(), sample("iris")["label"].to_numpy()
    with pytest.raises(TypeError, match="[Ss]parse data was passed"):
        OMP().fit(scipy.sparse.csr_matrix(x), y)
    with pytest.raises(ValueError, match="y contains NaN"):
        OMP().fit(x, np.full(150, np.nan))
    with pytest.raises(TypeError, match="unexpected keyword argument 'kk'; its options are k, "):
        OMP(kk=3)
    with pytest.raises(ValueError, match="omp: "):
        OMP(k=99).fit(x, y)
    with pytest.raises(ValueError, match="omp: `tolerance` must be between 0 and 1"):
        OMP(tolerance=-1.0).fit(x, y)
