"""How it behaves while it works: threads, signals, memory, panics, progress."""

from __future__ import annotations

import concurrent.futures
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import sample

import pursuit

# Long enough to be interrupted.
LONG = {"label": "label", "k": 60, "selector": "sequential_attention", "epochs": 100_000}


NUMBERS = "SELECT * FROM sample_problem('interaction', 60000, 1, '{\"columns\": 60}')"

# Reading, networks, trees, wrappers, folds and repetitions.
WORK = {
    "reading": "SELECT count(*) FROM generate_series(1, 100000000000)",
    "moments": "SELECT * FROM omp((SELECT sin(value) AS a, value % 3 AS label FROM generate_series(1, 100000000000)), label => label, k => 1)",
    "attention": "SELECT * FROM sequential_attention(sample.digits, label => label, k => 60, epochs => 100000)",
    "pursuit": f"SELECT * FROM ngp(({NUMBERS}), label => label, k => 20)",
    "forest": f"SELECT * FROM random_forest(({NUMBERS}), label => label, trees => 20000)",
    "boosting": f"SELECT * FROM boosting(({NUMBERS}), label => label, rounds => 20000)",
    "stability": f"SELECT * FROM stability_selection(({NUMBERS}), label => label, selector => 'random_forest', k => 4)",
    "neighbours": f"SELECT * FROM relief(({NUMBERS}), label => label, k => 4)",
}


@pytest.mark.parametrize("work", WORK)
def test_ctrl_c_stops(work: str) -> None:
    sent = []

    def press() -> None:
        time.sleep(1.0)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    # Once more where others kept the machine busy just then.
    waited = []
    while not waited or (waited[-1] >= 0.1 and len(waited) < 3):
        threading.Thread(target=press).start()
        with pytest.raises(KeyboardInterrupt):
            pursuit.sql(WORK[work])
        waited.append(time.perf_counter() - sent[-1])
    print(f"{work}: stopped after {1000 * waited[-1]:.0f} ms")
    assert waited[-1] < 0.1
    # Nobody goes on with it behind our back, but for the batch that is being computed.
    for _ in range(20):
        before = time.process_time()
        time.sleep(0.2)
        if time.process_time() - before < 0.1:
            break
    else:
        pytest.fail("somebody goes on with it")


def test_other_threads_of_python_go_on() -> None:
    count = 0
    done = threading.Event()

    def counting() -> None:
        nonlocal count
        while not done.is_set():
            count += 1
            time.sleep(0.001)

    with pytest.raises(TimeoutError):
        thread = threading.Thread(target=counting)
        thread.start()
        try:
            pursuit.select("sample.digits", time_limit=1.0, **LONG)
        finally:
            done.set()
            thread.join()
    assert count > 50


def test_four_threads_agree_and_take_no_longer_than_one() -> None:
    rng = np.random.default_rng(0)
    x = np.asfortranarray(rng.normal(size=(200_000, 40)))
    y = x @ rng.normal(size=40)

    def one(_: int) -> list[object]:
        return pursuit.select(x, y, k=10, selector="omp")["score"]

    first = one(0)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        row = [one(at) for at in range(4)]
        in_a_row = time.perf_counter() - start
        start = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            together = list(pool.map(one, range(4)))
        best = min(best, (time.perf_counter() - start) / in_a_row)
        assert all(answer == first for answer in row + together)
    print(f"four threads took {best:.2f} of four in a row")
    assert best <= 1.2


def test_a_thousand_selections_do_not_grow_the_process() -> None:
    frame = sample("diabetes")

    def memory() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    sizes = []
    for at in range(1000):
        pursuit.select(frame, label="label", k=3, selector="omp")
        if at % 250 == 249:
            sizes.append(memory())
    growth = (sizes[-1] - sizes[0]) / 750
    print(f"{growth:.0f} bytes a selection")
    # A frame of this size would be 35,000 bytes, a session a million.
    assert growth < 5_000


def test_a_panic_is_an_exception() -> None:
    with pytest.raises(RuntimeError, match="internal error: on purpose.*; please report it"):
        pursuit.sql("SELECT panic_for_test()")
    assert len(pursuit.sql("SELECT 1 AS one")) == 1


def test_a_forked_process_says_so() -> None:
    code = """
import os, pursuit
pursuit.sql("SELECT 1 AS one")
if os.fork() == 0:
    try:
        pursuit.sql("SELECT 1 AS one")
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout
    assert "start processes with the method 'spawn'" in said


def test_progress_on_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TimeoutError):
        pursuit.select("sample.digits", time_limit=1.0, progress=True, **LONG)
    assert "sequential_attention: step" in capsys.readouterr().err


def test_progress_on_stderr_without_tqdm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(TimeoutError):
        pursuit.select("sample.digits", time_limit=1.0, progress=True, **LONG)
    said = capsys.readouterr().err
    assert "\rsequential_attention: step" in said and "|" not in said
    with pytest.raises(TimeoutError):
        pursuit.select("sample.digits", time_limit=0.2, progress=False, **LONG)
    assert capsys.readouterr().err == ""
