"""Training a small operator: it learns, goes on where it was killed, and is scored on what it has never seen."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from sharp.errors import ConfigurationError, DataError
from sharp.neural.baseline import TrainingListener, train_baseline
from sharp.neural.operator import TrainingConfig, check_settings
from sharp.neural.result import TrainedResult, read_result, trained_rows
from sharp.neural.training import CHECKPOINT, Epoch
from sharp.neural.training_data import initial_states, later_states, solutions, training_set
from sharp.problems import Problem, load_problem
from sharp.reference.datasets import read_inputs, read_reference
from tests.helpers import finding_helpers
from tests.helpers.problems.neural_problems import HELD_OUT, SMALL, small_data, small_problem

pytest.importorskip("optax", reason="training needs the extra `neural`")
SHORT = replace(SMALL, epochs=20)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with generated data of its own."""
    folder = tmp_path_factory.mktemp("neural")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHARP_DATA", str(folder / "data"))
        yield folder


@pytest.fixture(scope="module")
def problem(home: Path) -> Problem:
    return small_problem(home)


def trained(
    problem: Problem, folder: Path, settings: TrainingConfig = SHORT, told: list[Epoch] | None = None
) -> TrainedResult:
    listener = TrainingListener(on_epoch=lambda epoch: told.append(epoch) if told is not None else None)
    folder.parent.mkdir(exist_ok=True)
    return train_baseline(problem, settings, *small_data(problem, folder.parent), folder, listener)


@pytest.fixture(scope="module")
def finished(problem: Problem, home: Path) -> Path:
    """A finished training, not to be changed."""
    trained(problem, home / "finished")
    return home / "finished"


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished training, to be damaged."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def leaves(folder: Path) -> list[np.ndarray]:
    with np.load(folder / CHECKPOINT) as file:
        return [file[name] for name in file.files if name.startswith("leaf")]


def test_training_learns_much_more_than_a_constant(problem: Problem, tmp_path: Path) -> None:
    told: list[Epoch] = []
    result = trained(problem, tmp_path / "run", SMALL, told)
    assert [epoch.epoch for epoch in told] == [10, 20, 30, 40]
    assert result.history == tuple(told)
    assert result.test.nrmse < 0.3 * constant_error(problem, tmp_path)
    assert result.test.nrmse < 0.7 * result.test.unchanged
    assert result.validation.nrmse == told[-1].validation


def constant_error(problem: Problem, folder: Path) -> float:
    """The error of predicting the mean of all training solutions."""
    dataset, splits = small_data(problem, folder)
    wanted = read_reference(dataset, problem, splits.test)["u"].reshape(HELD_OUT, -1)
    mean = training_set(problem, SMALL).later.mean()
    return float(np.mean(np.linalg.norm(wanted - mean, axis=1) / np.linalg.norm(wanted, axis=1)))


def test_scores_are_those_of_solvers_with_both_errors_and_the_floor(
    problem: Problem, home: Path, finished: Path
) -> None:
    result = read_result(finished)
    assert result is not None
    assert result.validation.samples == (HELD_OUT, 2 * HELD_OUT)
    assert result.test.samples == (0, HELD_OUT)
    dataset, splits = small_data(problem, home)
    wanted = read_reference(dataset, problem, splits.test)["u"].astype(float)
    kept = np.repeat(wanted[:, :1], wanted.shape[1], axis=1)
    sizes = np.linalg.norm(wanted.reshape(HELD_OUT, -1), axis=1)
    found = np.linalg.norm((kept - wanted).reshape(HELD_OUT, -1), axis=1) / sizes
    assert result.test.unchanged == pytest.approx(found.mean(), rel=1e-5)
    assert result.test.data_error is not None
    assert result.test.nrmse_reference is not None
    assert abs(result.test.nrmse - result.test.nrmse_reference) <= 1.5 * result.test.data_error


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(
    problem: Problem, finished: Path, tmp_path: Path
) -> None:
    trained(problem, tmp_path / "again")
    trained(problem, tmp_path / "other", replace(SHORT, seed=1))
    first, again, other = map(leaves, (finished, tmp_path / "again", tmp_path / "other"))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])


def test_an_interrupted_training_goes_on_to_the_same_weights(
    problem: Problem, finished: Path, tmp_path: Path
) -> None:
    class Interrupt(list[Epoch]):
        def append(self, epoch: Epoch) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(problem, tmp_path / "run", told=Interrupt())
    assert read_result(tmp_path / "run") is None
    trained(problem, tmp_path / "run")
    assert all(np.array_equal(a, b) for a, b in zip(leaves(tmp_path / "run"), leaves(finished), strict=True))


def test_a_killed_training_goes_on_where_it_was(
    problem: Problem, home: Path, finished: Path, tmp_path: Path
) -> None:
    """XLA does not promise two processes the same machine code, so their weights are compared up to rounding."""
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from tests.integration.neural import test_neural_training as t\n"
        "class Killer(list):\n"
        "    def append(self, epoch): os.kill(os.getpid(), signal.SIGKILL)\n"
        "t.trained(t.small_problem(Path(sys.argv[1])), Path(sys.argv[2]), t.SHORT, Killer())\n"
    )
    killed = tmp_path / "killed"
    command = [sys.executable, "-c", code, str(home), str(killed)]
    done = subprocess.run(command, env=finding_helpers(), check=False)
    assert done.returncode == -signal.SIGKILL
    assert read_result(killed) is None
    told: list[Epoch] = []
    result = trained(problem, killed, told=told)
    assert [epoch.epoch for epoch in told] == [20]
    assert [epoch.epoch for epoch in result.history] == [10, 20]
    wanted = read_result(finished)
    assert wanted is not None
    assert result.test.nrmse == pytest.approx(wanted.test.nrmse, rel=1e-2)


def test_test_samples_are_opened_once_and_last(problem: Problem, tmp_path: Path) -> None:
    dataset, splits = small_data(problem, tmp_path)
    with h5py.File(dataset.path, "r+") as file:
        file["tensor"][splits.test.start, 1] = np.nan
    told: list[Epoch] = []
    with pytest.raises(DataError, match="not finite in sample 0"):
        train_baseline(
            problem, SHORT, dataset, splits, tmp_path / "run", TrainingListener(on_epoch=told.append)
        )
    assert [epoch.epoch for epoch in told] == [10, 20]
    assert read_result(tmp_path / "run") is None


def test_a_finished_training_is_not_scored_again(problem: Problem, copied: Path, tmp_path: Path) -> None:
    dataset, splits = small_data(problem, tmp_path)
    dataset.path.unlink()
    found = train_baseline(problem, SHORT, dataset, splits, copied)
    assert found == read_result(copied)
    assert trained_rows([copied]) == (found,)


@pytest.mark.parametrize("split", ["validation", "test"])
def test_samples_that_were_trained_on_are_not_scored(problem: Problem, tmp_path: Path, split: str) -> None:
    dataset, splits = small_data(problem, tmp_path, seed=SHORT.data_seed)
    last = {"validation": HELD_OUT, "test": HELD_OUT + 1}[split]
    if split == "test":
        other, _ = small_data(problem, tmp_path, seed=4)
        with h5py.File(dataset.path, "r+") as file, h5py.File(other.path) as unseen:
            file["tensor"][HELD_OUT:] = unseen["tensor"][HELD_OUT:]
        last = 0
    with pytest.raises(DataError, match=f"sample {last} is among the training samples"):
        train_baseline(problem, SHORT, dataset, splits, tmp_path / "run")


def test_a_folder_keeps_one_training(problem: Problem, copied: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"settings.json: .* with epochs = 20, not epochs = 30"):
        trained(problem, copied, replace(SHORT, epochs=30))


def test_a_damaged_checkpoint_is_named(problem: Problem, copied: Path) -> None:
    (copied / "result.json").unlink()
    whole = (copied / CHECKPOINT).read_bytes()
    (copied / CHECKPOINT).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"checkpoint.npz: expected a checkpoint"):
        trained(problem, copied)


def test_a_damaged_result_is_named_with_its_key(copied: Path) -> None:
    facts = json.loads((copied / "result.json").read_text())
    del facts["test"]["nrmse"]
    (copied / "result.json").write_text(json.dumps(facts))
    with pytest.raises(DataError, match=r"result.json: test.nrmse: Field required"):
        read_result(copied)


def test_without_the_extra_the_message_says_how_to_get_it(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'pde-sharp\[neural\]'"):
        trained(problem, tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "settings", "complaint"),
    [
        ("darcy", SMALL, "one space dimension and time"),
        ("burgers", replace(SMALL, stride=3), "every 3th of 1024 points is no grid"),
        ("burgers", replace(SMALL, stride=128), "at least 18 points"),
        ("burgers", replace(SMALL, samples=9), "at least 10 samples"),
    ],
)
def test_what_cannot_be_trained_is_said_before_any_work(
    name: str, settings: TrainingConfig, complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        check_settings(load_problem(name), settings)


def test_fields_become_channels_and_back() -> None:
    gas = load_problem("navier-stokes")
    draw = np.random.default_rng(0)
    frames = {port.name: draw.normal(size=(2, 4, 8)).astype(np.float32) for port in gas.interface.returns}
    inputs = {port.name: frames[port.field][:, 0] for port in gas.interface.inputs}
    initial, later = initial_states(gas, inputs), later_states(gas, frames)
    assert initial.shape == (2, 3, 8)
    assert later.shape == (2, 9, 8)
    back = solutions(gas, initial, later)
    assert back.keys() == frames.keys()
    assert all(np.array_equal(back[name], frames[name]) for name in frames)


def test_training_samples_are_made_once_and_are_those_of_the_published_scheme(
    problem: Problem, tmp_path: Path
) -> None:
    settings = replace(SMALL, samples=12, stride=2)
    first = training_set(problem, settings)
    told: list[int] = []
    again = training_set(problem, settings, lambda done, _total, _message: told.append(done))
    assert told == []
    assert np.array_equal(first.later, again.later)
    dataset, _ = small_data(problem, tmp_path, seed=settings.data_seed)
    rows = range(12)
    assert np.array_equal(first.initial[:, 0], read_inputs(dataset, problem, rows).arrays["u0_batch"][:, ::2])
    assert np.array_equal(first.later, read_reference(dataset, problem, rows)["u"][:, 1:, ::2])


def test_settings_and_software_are_in_the_result(finished: Path) -> None:
    result = read_result(finished)
    assert result is not None
    assert asdict(result.settings) == asdict(SHORT)
    assert {"jax", "optax", "numpy", "python", "pde-sharp"} <= result.software.keys()
    assert result.training_s > 0
