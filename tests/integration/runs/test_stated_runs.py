"""Runs of a problem of no known family, from its specification alone: made data, the real harness, scripted models."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import h5py
import pytest

from sharp.api import continue_run
from sharp.cli.exits import NO_SOLVER
from sharp.cli.run import print_run
from sharp.config import RunConfig
from sharp.errors import ConfigurationError
from sharp.llm.protocol import ChatReply, ChatRequest, TokenUsage
from sharp.problems import Problem, load_problem
from sharp.reference.generation import ensure_dataset
from sharp.report import write_report
from sharp.runs import execution_backend as site
from sharp.runs.configure import load_config
from sharp.runs.creation import create_run
from sharp.runs.directory import RunDirectory
from sharp.runs.execute import finish
from sharp.runs.solver_evaluation import SolverEvaluation, SolverEvaluationOptions, evaluate_solver
from sharp.tournament.state import Tournament
from tests.helpers.problems.specifications import specification

# Heat on a torus, and what has flowed through each point of it: default grid, times, interface and layout of data.
TORUS = specification("warm-torus")
SERIES = """
import numpy as np

def solver(u0_batch, v0_batch, t_coordinate, k):
    n = u0_batch.shape[1] - 1
    waves = np.add.outer(np.fft.fftfreq(n, 1 / n) ** 2, np.fft.rfftfreq(n, 1 / n) ** 2)
    rate = 4 * np.pi**2 * k * waves
    t = (t_coordinate - t_coordinate[0])[:, None, None]
    decay = np.exp(-rate * t)
    share = np.where(rate > 0, (1 - decay) / np.where(rate > 0, rate, 1), t)
    u, v = (np.fft.rfft2(start[:, :-1, :-1])[:, None] for start in (u0_batch, v0_batch))
    fields = (np.fft.irfft2(spectrum, (n, n)) for spectrum in (u * decay, v + u * share))
    return tuple(np.pad(field, ((0, 0), (0, 0), (0, 1), (0, 1)), mode="wrap") for field in fields)
"""
HOLD = """
import numpy as np

def solver(u0_batch, v0_batch, t_coordinate, k):
    return tuple(np.repeat(start[:, None], len(t_coordinate), axis=1) for start in (u0_batch, v0_batch))
"""
CRASH = "def solver(u0_batch, v0_batch, t_coordinate, k):\n    raise RuntimeError('no idea')\n"
SETTINGS = (
    *("method=codepde", "genesis.candidates=1", "synthesis.repairs=0", "evaluation.smoke=1"),
    *("evaluation.validation=1", "evaluation.test=1", "evaluation.cache=off", "evaluation.workers=1"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(autouse=True)
def _data(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data are made once for all tests."""
    monkeypatch.setenv("SHARP_DATA", str(home))


@pytest.fixture
def specification(tmp_path: Path) -> Path:
    path = tmp_path / "torus.yaml"
    path.write_text(TORUS)
    return path


@pytest.fixture
def torus(specification: Path) -> Problem:
    return load_problem(specification)


class Writer:
    """A model that always writes the same program."""

    def __init__(self, code: str) -> None:
        self.code = code

    async def complete(self, request: ChatRequest) -> ChatReply:
        return ChatReply((f"```python\n{self.code}```\n",), ("stop",), TokenUsage(1, 0, 1, 0), request.model)

    async def aclose(self) -> None:
        return None


@pytest.fixture
def played(specification: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Play a run in which a model writes some program; return the run and its final state."""

    def play(code: str, *settings: str) -> tuple[RunDirectory, Tournament]:
        monkeypatch.setattr(site, "make_backend", lambda *_, **__: Writer(code))
        run = create_run(load_config(str(specification), [*SETTINGS, *settings]), tmp_path / "run")
        return run, asyncio.run(finish(run))

    return play


def tried(problem: Problem, code: str, **options: Any) -> SolverEvaluation:
    return evaluate_solver(problem, code, SolverEvaluationOptions(samples=1, **options))


def test_a_series_solves_a_stated_problem_to_the_accuracy_of_its_data(torus: Problem) -> None:
    found = tried(torus, SERIES, measures=("two_grid",)).evaluation
    assert found.scores is not None
    assert found.scores.nrmse == found.scores.nrmse_reference < 1e-4
    assert found.scores.data_error == 0
    assert found.scores.residual < 1e-3
    assert "differences on 9 points along each axis" in found.scores.residual_note
    assert found.scores.measures["two_grid"] < 1e-4


def test_what_ignores_the_equation_scores_badly_but_keeps_its_promises(torus: Problem) -> None:
    smoke = tried(torus, HOLD, split="smoke").evaluation
    assert [(check.name, check.passed) for check in smoke.checks] == [
        ("second grid", True),
        ("non-uniform times", True),
    ]
    held = tried(torus, HOLD).evaluation
    assert held.scores is not None
    assert held.scores.nrmse > 0.1


def test_a_run_ends_with_a_report_that_says_what_was_not_measured(played: Callable[..., Any]) -> None:
    run, state = played(SERIES)
    assert run.manifest["data"]["kind"] == "reference"
    assert state.test is not None
    assert state.test.scores is not None
    assert state.test.scores.nrmse < 1e-4
    files = write_report(run, state)
    text = (run.path / "report.md").read_text()
    for sentence in (
        "It was not measured: no smooth solutions are known for the family other on a grid of nodes.",
        "The data are the self-converged solution itself, whose error is estimated at",
        "Residual: differences on 9 points along each axis of the output grid",
    ):
        assert sentence in text
    assert "u at t = 0.5" in files.html.read_text()
    assert files.solver is not None
    example = [sys.executable, str(files.solver / "example.py")]
    printed = subprocess.run(example, capture_output=True, text=True, check=True, timeout=300).stdout
    assert "v: shape (2, 5, 33, 33)" in printed


def test_a_run_without_a_working_program_ends_with_a_report_and_the_exit_code_that_says_so(
    played: Callable[..., Any],
) -> None:
    run, state = played(CRASH)
    assert state.best is None
    with pytest.raises(click.exceptions.Exit) as left:
        print_run(continue_run(run), as_json=False)
    assert left.value.exit_code == NO_SOLVER
    assert "No winner: no candidate ran successfully" in (run.path / "report.md").read_text()
    assert json.loads((run.path / "audit.json").read_text())["residual"][0] < 1e-3


def test_a_file_of_ones_own_is_scored_against_without_a_truth(
    played: Callable[..., Any], torus: Problem, tmp_path: Path
) -> None:
    made = ensure_dataset(torus, samples=2, seed=None)
    with h5py.File(made.path) as source, h5py.File(tmp_path / "mine.hdf5", "w") as mine:
        for key in ("u0_batch", "v0_batch", "u", "v", "t"):
            mine[key] = source[key][:]
    run, state = played(SERIES, f"evaluation.data={tmp_path / 'mine.hdf5'}")
    scores = state.test.scores
    assert scores.nrmse < 1e-4
    assert (scores.nrmse_reference, scores.data_error) == (None, None)
    write_report(run, state)
    sentence = "The data set has no reference solution stored with it, and none follows from its values."
    assert sentence in (run.path / "report.md").read_text()


def test_feedback_that_a_problem_has_none_of_is_refused_before_anything_is_made(
    specification: Path, tmp_path: Path
) -> None:
    config = RunConfig.model_validate({"problem": str(specification), "feedback": {"metrics": ["cfl"]}})
    with pytest.raises(
        ConfigurationError, match=r"no feedback metric 'cfl' for warm-torus\. Valid: nrmse, residual"
    ):
        create_run(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
