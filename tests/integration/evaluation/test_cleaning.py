"""What programs leave on disk is cleared away without holding the worker up, whatever it is."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sharp.evaluation.scratch import clear_away
from tests.helpers.evaluation.deep_folders import nest

_PATIENCE_S = 120


def _nested(folder: Path) -> None:
    nest(folder, 3000)


def _many(folder: Path) -> None:
    for number in range(20_000):
        (folder / f"{number}").symlink_to("loop")


def _odd(folder: Path) -> None:
    for number in range(3000):
        os.mkfifo(folder / f"pipe\n{number}")
    (folder / "loop").symlink_to(folder)
    (folder / "closed" / "within").mkdir(parents=True)
    (folder / "closed" / "within").chmod(0)
    (folder / "closed").chmod(0)
    folder.chmod(0)


@pytest.mark.parametrize("leave", [_nested, _many, _odd])
def test_the_worker_goes_on_while_another_process_clears_away(tmp_path, leave):
    folder = tmp_path / "scratch"
    folder.mkdir()
    leave(folder)
    before = time.process_time()
    clear_away(folder)
    assert time.process_time() - before < 1
    assert folder.exists(), "more than the worker does itself is left to the other process"
    deadline = time.monotonic() + _PATIENCE_S
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []
