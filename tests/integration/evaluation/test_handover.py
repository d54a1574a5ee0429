"""Inputs come when they are asked for and results go when they are done, each once and each its own file."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpc.errors import InfrastructureError
from sharp.evaluation.calls import CallPlan, SolverCall
from sharp.evaluation.candidate import InputProvider
from sharp.evaluation.outcome import read_arrays, read_report

FIRST = SolverCall("scored", {"a": np.arange(3.0)}, {"beta": 1.0}, {"u": (3,)}, ("a",))
OTHER = SolverCall("other", {"a": np.ones(2)}, {}, {"u": (2,)})
WORK = CallPlan("solver", (FIRST, OTHER), repeats=2)
OUTPUT, REPORT = "output-scored-u.bin", "report-scored.json"
ENVIRONMENT = '"environment": {"python": "3", "numpy": "2", "device": "cpu"}'


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    for name in ("scratch", "kept"):
        (tmp_path / name).mkdir()
    return tmp_path / "scratch"


@pytest.fixture
def kept(scratch: Path) -> Path:
    return scratch.with_name("kept")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_each_call_gets_its_own_inputs_when_it_is_ready(scratch: Path, kept: Path) -> None:
    answer = InputProvider(scratch, kept, WORK)
    assert answer("load") is None
    assert names(scratch) == []
    for call in ("scored", "repeat-1", "other"):
        assert answer(f"ready {call}") == f"call {call}"
    calls = ("other", "repeat-1", "scored")
    assert names(scratch) == [
        *(f"call-{call}.json" for call in calls),
        *(f"input-{call}-a.npy" for call in calls),
    ]
    np.testing.assert_array_equal(np.load(scratch / "input-other-a.npy"), np.ones(2))
    assert not np.array_equal(np.load(scratch / "input-repeat-1-a.npy"), FIRST.arrays["a"])


def test_what_is_there_at_the_import_tells_nothing_of_the_calls() -> None:
    smoke = CallPlan("solver", (FIRST, OTHER), repeats=5)
    longer = replace(FIRST, arrays={"a": np.arange(9.0)}, returns={"u": (9,)})
    assert smoke.interface() == CallPlan("solver", (longer,)).interface()


@pytest.mark.parametrize(
    "line", ["", "ready", "ready nothing", "READY scored", "done nothing", "kept scored", "ready scored "]
)
def test_other_words_have_no_answer(scratch: Path, kept: Path, line: str) -> None:
    assert InputProvider(scratch, kept, WORK)(line) is None
    assert names(scratch) == names(kept) == []


def test_what_is_written_after_a_call_was_done_does_not_count(scratch: Path, kept: Path) -> None:
    answer = InputProvider(scratch, kept, WORK)
    answer("ready scored")
    with (scratch / OUTPUT).open("wb") as file:
        np.ones(3).tofile(file)
        file.flush()
        assert answer("done scored") == "kept scored"
        file.seek(0)
        np.zeros(3).tofile(file)
    assert answer("ready scored") == "refused scored: They were given before"
    assert answer("done scored") == "kept scored"
    np.testing.assert_array_equal(read_arrays(kept, FIRST)["u"], np.ones(3))


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_values_are_known_by_the_size_of_their_file(scratch: Path, kept: Path, precision: type) -> None:
    answer = InputProvider(scratch, kept, WORK)
    answer("ready scored")
    np.arange(3, dtype=precision).tofile(scratch / OUTPUT)
    answer("done scored")
    values = read_arrays(kept, FIRST)["u"]
    assert values.dtype == precision
    np.testing.assert_array_equal(values, np.arange(3))


FORGED = {
    "nothing": lambda path: None,
    "another size": lambda path: path.write_bytes(bytes(23)),
    "an empty file": lambda path: path.write_bytes(b""),
    "an endless hole": lambda path: (path.touch(), os.truncate(path, 1 << 40)),
    "a link": lambda path: path.symlink_to("/etc/passwd"),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a second name": lambda path: (path.write_bytes(bytes(24)), path.with_name("x").hardlink_to(path)),
}


@pytest.mark.parametrize("what", FORGED)
@pytest.mark.parametrize("name", [OUTPUT, REPORT])
def test_what_is_of_another_form_is_left_behind(scratch: Path, kept: Path, what: str, name: str) -> None:
    answer = InputProvider(scratch, kept, WORK)
    answer("ready scored")
    FORGED[what](scratch / name)
    assert answer("done scored") == "kept scored"
    assert read_arrays(kept, FIRST) is None
    assert read_report(kept, FIRST) is None


@pytest.mark.parametrize(
    "returned",
    [
        '{"u": {"dtype": "float64", "shape": [' + "9" * 60_000 + "]}}",
        '{"u": {"dtype": "float64", "shape": [' + ",".join("1" * 30_000) + "]}}",
        '{"u": {"dtype": "' + "f" * 41 + '", "shape": [3]}}',
        '{"u": {"dtype": "float64", "shape": [-3]}}',
        '{"u": {"dtype": "float64", "shape": [1e400]}}',
        "[" * 60_000,
    ],
)
def test_a_report_of_unbounded_words_is_none(scratch: Path, kept: Path, returned: str) -> None:
    answer = InputProvider(scratch, kept, WORK)
    answer("ready scored")
    (scratch / REPORT).write_text(f'{{"failure": null, "returned": {returned}, {ENVIRONMENT}}}')
    answer("done scored")
    assert (kept / REPORT).exists()
    assert read_report(kept, FIRST) is None


def test_words_of_a_report_have_nothing_that_a_terminal_obeys(scratch: Path, kept: Path) -> None:
    answer = InputProvider(scratch, kept, WORK)
    answer("ready scored")
    fault = r'{"kind": "exception", "message": "a\u001b[2Jb\u202ec", "traceback": "one\n\ttwo\u0007"}'
    (scratch / REPORT).write_text(f'{{"failure": {fault}, "returned": {{}}, {ENVIRONMENT}}}')
    answer("done scored")
    failure = read_report(kept, FIRST).failure
    assert (failure.message, failure.traceback) == ("a?[2Jb?c", "one\n\ttwo?")


def test_a_file_in_the_place_of_an_input_is_not_written_to(scratch: Path, kept: Path) -> None:
    (scratch / "input-scored-a.npy").write_text("mine")
    assert InputProvider(scratch, kept, WORK)("ready scored") == "refused scored: File exists"
    assert (scratch / "input-scored-a.npy").read_text() == "mine"


def test_a_full_disk_is_the_machines_fault(
    scratch: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1 << 40, 0, 1 << 20))
    with pytest.raises(InfrastructureError, match=r"has filled up during a run: .* could not be filled"):
        InputProvider(scratch / "gone", kept, WORK)("ready scored")


def test_no_room_for_copies_is_the_machines_fault(scratch: Path, kept: Path) -> None:
    answer = InputProvider(scratch, kept / "gone", WORK)
    answer("ready scored")
    np.arange(3.0).tofile(scratch / OUTPUT)
    with pytest.raises(InfrastructureError, match="could not be filled"):
        answer("done scored")
