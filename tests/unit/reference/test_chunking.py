from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from sharp.reference.chunking import map_blocks


def test_results_are_in_order_and_cover_all_samples() -> None:
    found = map_blocks(lambda rows: list(range(rows.start, rows.stop)), 11, 4, "work")
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]


def test_progress_is_told_from_the_calling_thread() -> None:
    calls: list[tuple[int, int, str, int]] = []
    map_blocks(lambda rows: None, 5, 2, "work", lambda *call: calls.append((*call, threading.get_ident())))
    assert calls[-1][:3] == (5, 5, "work")
    assert [done for done, *_ in calls] == sorted(done for done, *_ in calls)
    assert {thread for *_, thread in calls} == {threading.get_ident()}


def test_an_error_drops_what_has_not_begun() -> None:
    begun = []

    def work(rows: slice) -> None:
        begun.append(rows.start)
        raise ValueError("broken sample")

    with pytest.raises(ValueError, match="broken sample"):
        map_blocks(work, 1000, 1, "work")
    assert len(begun) <= len(os.sched_getaffinity(0))


def test_no_samples_is_no_work() -> None:
    assert map_blocks(lambda rows: rows, 0, 4, "work") == []


INTERRUPTED = """
import random, signal
from sharp.reference.chunking import map_blocks

signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
for _ in range(400):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 0.01))
        map_blocks(lambda rows: sum(range(20_000)), 502, 4, "work")
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_an_interruption_at_any_moment_ends_the_work() -> None:
    """Without deferring it, one in a few hundred would leave a lock taken, and all threads waiting for ever."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.splitlines() == ["interrupted"] * 400
