"""Inputs come when they are asked for, each once, and never over what a candidate has left in their place."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from hpc.errors import InfrastructureError
from sharp.evaluation.calls import CallPlan, SolverCall
from sharp.evaluation.candidate import InputProvider

FIRST = SolverCall("scored", {"a": np.arange(3.0)}, {"beta": 1.0}, {"u": (3,)})
OTHER = SolverCall("other", {"a": np.ones(2)}, {}, {"u": (2,)})
WORK = CallPlan("solver", (FIRST, OTHER), repeats=2)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_each_call_gets_its_own_inputs_when_it_is_ready(tmp_path: Path) -> None:
    give = InputProvider(tmp_path, WORK)
    assert give("load") is None
    assert names(tmp_path) == []
    assert give("ready scored") == "call scored"
    assert names(tmp_path) == ["input-scored-a.npy"]
    assert give("ready repeat-1") == "call repeat-1"
    assert names(tmp_path) == ["input-scored-a.npy"]
    assert give("ready other") == "call other"
    np.testing.assert_array_equal(np.load(tmp_path / "input-other-a.npy"), np.ones(2))


@pytest.mark.parametrize(
    "line", ["", "ready", "ready nothing", "READY scored", "done scored", "ready scored "]
)
def test_other_words_have_no_answer(tmp_path: Path, line: str) -> None:
    assert InputProvider(tmp_path, WORK)(line) is None
    assert names(tmp_path) == []


def test_a_file_in_the_place_of_an_input_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "input-scored-a.npy").write_text("mine")
    assert InputProvider(tmp_path, WORK)("ready scored") == "refused scored: File exists"
    assert (tmp_path / "input-scored-a.npy").read_text() == "mine"


def test_a_full_disk_is_the_machines_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1 << 40, 0, 1 << 20))
    with pytest.raises(InfrastructureError, match=r"has filled up during a run: .* could not be filled"):
        InputProvider(tmp_path / "gone", WORK)("ready scored")
