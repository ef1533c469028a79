"""What the documents say is so."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

import pursuit

HERE = Path(__file__).parents[1]
MODULES = ["pursuit", "pursuit._sql", "pursuit._tables", "pursuit.result", "pursuit.sklearn", "pursuit.dbapi"]


@pytest.mark.parametrize("module", MODULES)
def test_doctests(module: str) -> None:
    ran = doctest.testmod(importlib.import_module(module), extraglobs={"pursuit": pursuit})
    assert ran.failed == 0
    assert ran.attempted > 0 or module == "pursuit._tables"


def test_the_readme() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)


def test_the_notebook(tmp_path: Path) -> None:
    notebook = nbformat.read(HERE / "examples" / "tour.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("linear-gradient" in output.get("data", {}).get("text/html", "") for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)


def test_types(tmp_path: Path) -> None:
    assert (Path(pursuit.__file__).parent / "py.typed").exists()
    user = tmp_path / "user.py"
    user.write_text(
        "import pursuit\nfrom pursuit.sklearn import OMP, SequentialAttention\n"
        "names: list[str] = pursuit.select('sample.iris', label='label', k=2).features\n"
        "made = OMP(k=3)\nother: type = SequentialAttention\n"
    )
    # The package that is installed, and a user's file.
    for what in (["-p", "pursuit"], [str(user)]):
        command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--cache-dir", str(tmp_path / "cache"), *what]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=os.environ)
        assert ran.returncode == 0, ran.stdout + ran.stderr
