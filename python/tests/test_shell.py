"""The same question has the same answer here and in the shell, to the last digit."""

from __future__ import annotations

import json

import pytest
from conftest import TABLES, cheap, sample, selectors, shell

import pursuit
from pursuit import _sql

# Trying all selectors on a large table takes minutes, and is cut off by the clock.
TABLES_OF = {"select_features": ["iris"]}


@pytest.mark.parametrize("selector", selectors())
def test_every_selector_answers_as_in_the_shell(selector: str) -> None:
    options = {"k": 4, **cheap(selector)}
    queries, answers = [], []
    labels = dict(zip(pursuit.selectors()["selector"], pursuit.selectors()["labels"]))
    for name in TABLES_OF.get(selector, TABLES):
        if name == "diabetes" and labels[selector] == "classes":
            continue
        if name in ("wine", "iris", "digits") and labels[selector] == "numbers, two classes":
            continue
        queries.append(_sql.call(selector, f"sample.{name}", "label", options))
        answers.append(pursuit.select(sample(name), label="label", selector=selector, **options))
    assert answers
    separate = shell(";\n".join(queries), "nd-json").splitlines()
    ours = [{name: value for name, value in zip(answer.columns, row) if value is not None} for answer in answers for row in answer]
    assert ours == [json.loads(line) for line in separate]
    assert all(len(answer.features) > 0 for answer in answers)
