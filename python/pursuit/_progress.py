"""What a selection is doing, on tqdm's bar where it is installed and as a line on stderr otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Watch = Callable[[str, float, "tuple[int, int] | None"], None]

QUIET_FOR = 2.0
"""Seconds that a selection runs before it says so."""


@contextmanager
def watcher(progress: bool | None) -> Iterator[Watch | None]:
    """What to call with what is going on, or nobody."""
    if progress is False or (progress is None and not _somebody_looks_on()):
        yield None
        return
    shown = _bar() or _Line()
    quiet_for = 0.0 if progress else QUIET_FOR

    def watch(line: str, seconds: float, steps: tuple[int, int] | None) -> None:
        if seconds >= quiet_for:
            shown.show(line, seconds, steps)

    try:
        yield watch
    finally:
        shown.close()


def _somebody_looks_on() -> bool:
    is_terminal = getattr(sys.stderr, "isatty", lambda: False)
    return is_terminal() or "ipykernel" in sys.modules


class _Line:
    """One line that is written over itself."""

    def __init__(self) -> None:
        self._shown = ""

    def show(self, line: str, seconds: float, steps: tuple[int, int] | None) -> None:
        line = f"{line} ({seconds:.0f} s)"
        if line != self._shown:
            print(f"\r{line:<{len(self._shown)}}", end="", file=sys.stderr, flush=True)
            self._shown = line

    def close(self) -> None:
        if self._shown:
            print(f"\r{'':<{len(self._shown)}}\r", end="", file=sys.stderr, flush=True)


class _Bar:
    """A bar of tqdm, which knows terminals and notebooks."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None

    def show(self, line: str, seconds: float, steps: tuple[int, int] | None) -> None:
        done, total = (steps[0] - 1, steps[1]) if steps else (0, None)
        if self._bar is None:
            self._bar = self._tqdm(total=total, leave=False, bar_format="{desc} |{bar}| {elapsed}")
        if self._bar.total != total:
            self._bar.reset(total=total)
        self._bar.n = done
        self._bar.set_description_str(line)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _bar() -> _Bar | None:
    try:
        from tqdm import TqdmWarning
        from tqdm.auto import tqdm
    except ImportError:
        return None
    import warnings

    # tqdm says so where a notebook has no widgets, and draws a bar of letters there.
    warnings.filterwarnings("ignore", category=TqdmWarning)
    return _Bar(tqdm)
