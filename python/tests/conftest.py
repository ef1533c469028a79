"""What the tests share: the sample tables as frames, the shell, and options that make a selector quick."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pursuit

TABLES = ["diabetes", "wine", "breast_cancer", "iris", "digits"]

# What makes training short, wherever a selector has an option of this name that means something.
CHEAP = {"epochs": 2, "trees": 5, "rounds": 5, "iterations": 2, "neurons": 10, "inner_folds": 2, "batch_rows": 64}


@functools.cache
def sample(name: str) -> pl.DataFrame:
    return pursuit.sql(f"SELECT * FROM sample.{name}").to_polars()


@functools.cache
def selectors() -> list[str]:
    return pursuit.selectors()["selector"]


@functools.cache
def cheap(selector: str) -> dict[str, Any]:
    """Those of CHEAP that the selector takes. One that means nothing beside the other defaults is refused, and so left out."""
    known = set(pursuit.options(selector)["option"])
    taken = {}
    for option, value in CHEAP.items():
        if option in known:
            try:
                pursuit.select("sample.iris", label="label", selector=selector, k=1, **{option: value})
                taken[option] = value
            except ValueError:
                pass
    return taken


def shell(query: str, form: str = "json") -> str:
    """The answer of the Rust program."""
    built = Path(__file__).parents[2] / "target" / "debug" / "pursuit"
    program = os.environ.get("PURSUIT_SHELL") or (str(built) if built.exists() else shutil.which("pursuit"))
    if program is None:
        pytest.fail("no shell to compare with: cargo build in the repository, or set PURSUIT_SHELL")
    command = [program, "--quiet", "--maxrows", "inf", "--format", form, "--command", query]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
