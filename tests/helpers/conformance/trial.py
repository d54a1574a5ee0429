"""Trying candidates: each through a whole evaluation on a sandbox, and what is to be seen of it before and after."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from hpc.sandbox import SandboxPolicy
from sharp.evaluation.local import LocalEvaluator
from sharp.evaluation.machine import Runner
from sharp.evaluation.protocol import Evaluation, EvaluationRequest
from sharp.evaluation.task import evaluate
from sharp.evaluation.worker_context import WorkerContext
from sharp.problems import load_problem
from sharp.problems.limits import ResourceLimits
from sharp.reference.datasets import DataSet, make_splits, open_dataset
from tests.helpers.conformance import ground as grounds
from tests.helpers.conformance.candidates import ENOUGH, GOOD, HONEST, WORSE, Candidate

PROBLEM = load_problem("advection")
SPLITS = make_splits(6, n_test=2, n_validation=4)
TIERS = ("bubblewrap", "landlock", "rlimits")
TASK_FILES = {"request.json", "result.json"}
BETTER = "better than the exact solution"
_MOST_TEXT = 20_000


class Sandbox(Runner):
    """What another sandbox has to offer to be tried: `run`, and what it says that programs can do, if anything."""

    tier: str
    note: str


# Of all stations of a process: a request that was made before would be answered by its result, without a worker.
_NUMBERS = itertools.count(1)


class Station:
    """One way to evaluate, what its sandbox `says` of itself, and what an exact solution scores there."""

    def __init__(self, says: str, data: DataSet, run: Callable[[EvaluationRequest], Evaluation]) -> None:
        self.says = says
        self._data, self._run = data, run
        self.good = self.evaluate(GOOD)
        assert self.good.ok, self.good
        for libraries in (
            "jax",
            "scipy",
        ):  # each has a warm interpreter of its own, as have other numbers of threads
            assert self.evaluate(f"import {libraries}\n{GOOD}").ok
        assert self.evaluate(GOOD, replace(ENOUGH, threads=2)).ok

    def evaluate(self, code: str, limits: ResourceLimits = ENOUGH) -> Evaluation:
        """Evaluate a program; the same program twice is run twice, as no two requests have the same limits."""
        unique = replace(limits, wall_s=limits.wall_s + 1e-5 * next(_NUMBERS))
        return self._run(EvaluationRequest(PROBLEM.label, self._data.label, "validation", code, unique))

    def admits(self, candidate: Candidate) -> bool:
        """Whether the sandbox does not say itself that programs can do what a candidate tries."""
        return not (candidate.do and candidate.do in self.says)


@contextmanager
def warm(tier: str, says: str, ground: grounds.Ground) -> Iterator[Station]:
    """Evaluate as a run does: by one worker, whose interpreter serves all candidates."""
    data = open_dataset(ground.reference, PROBLEM)
    evaluator = LocalEvaluator(
        ground.run / tier, PROBLEM, data, SPLITS, workers=1, sandbox=SandboxPolicy(tier)
    )
    with asyncio.Runner() as runner:
        try:
            yield Station(says, data, lambda request: runner.run(evaluator.evaluate(request)))
        finally:
            runner.run(evaluator.aclose())


@contextmanager
def cold(tier: str, says: str, ground: grounds.Ground, sandbox: Sandbox | None = None) -> Iterator[Station]:
    """Evaluate in this process, with a fresh interpreter for each candidate, or in a sandbox that is handed in."""
    data = open_dataset(ground.reference, PROBLEM)
    evaluator = LocalEvaluator(ground.run / tier, PROBLEM, data, SPLITS, workers=1)
    with WorkerContext(SandboxPolicy("rlimits" if sandbox else tier), warm=False) as workshop:
        if sandbox:
            workshop.interpreter = sandbox
        yield Station(says, data, lambda request: evaluate(evaluator.task(request), workshop).evaluation)


@contextmanager
def conformance_ground(folder: Path) -> Iterator[grounds.Ground]:
    """Lay the ground out; secrets are in the environment, and scratch folders lie in a folder of their own."""
    (folder / "data").mkdir()
    answer = grounds.write_wave(folder / "data" / "wave.hdf5")
    own = {
        "HOME": str(folder / "home"),
        "OPENAI_API_KEY": grounds.CANARY,
        "TMPDIR": str(folder / "scratch"),
    }
    with (
        patch.dict(os.environ, own),
        patch.object(tempfile, "tempdir", None),
        grounds.lay_out(folder, answer) as made,
        grounds.adopted_orphans(),
    ):
        yield made


@contextmanager
def checked_for_remains(ground: grounds.Ground) -> Iterator[None]:
    """Check that nothing is left of what runs meanwhile."""
    before, scratch = grounds.running(), ground.scratch()
    yield
    assert not grounds.left_over(before)
    assert ground.scratch() <= scratch


def try_candidate(
    candidate: Candidate, station: Station, ground: grounds.Ground
) -> tuple[list[str], list[str]]:
    """Evaluate a candidate as often as it asks for; return its outcomes, and what was wrong with them."""
    code, idle, before = ground.fill_in(candidate.code), grounds.running(), ground.state()
    outcomes, wrong = [], []
    for _ in range(candidate.runs):
        evaluation = station.evaluate(code, candidate.limits)
        outcomes.append(outcome(evaluation, station.good))
        if outcomes[-1] not in candidate.outcome:
            wrong.append(f"the outcome is {outcomes[-1]}: {evaluation.failure}")
        wrong += told(evaluation)
        measured = evaluation.run_time_s or 0.0
        if candidate.seconds and evaluation.ok and measured < candidate.seconds:
            wrong.append(f"it is said to have taken {measured} s")
    wrong += [f"left running: {command!r}" for command in grounds.left_over(idle)]
    if ground.state() != before:
        wrong.append("files have changed")
    return outcomes, [*wrong, *left(ground)]


def outcome(evaluation: Evaluation, good: Evaluation) -> str:
    """Return the kind of failure, or how the score compares with that of the exact solution."""
    if evaluation.failure is not None:
        return evaluation.failure.kind
    assert evaluation.scores is not None
    assert good.scores is not None
    if evaluation.scores == good.scores:
        return HONEST
    assert evaluation.scores.nrmse is not None
    assert good.scores.nrmse is not None
    return WORSE if evaluation.scores.nrmse > good.scores.nrmse else BETTER


def told(evaluation: Evaluation) -> Iterator[str]:
    """Yield what a result tells that it should not."""
    text = json.dumps(evaluation.to_json())
    if grounds.CANARY in text:
        yield "a secret is in the result"
    if "BREACH" in text:
        yield f"it got where it should not: {evaluation.stdout}"
    if max(map(len, (evaluation.stdout, evaluation.stderr, str(evaluation.failure)))) >= _MOST_TEXT:
        yield "its texts are too long"


def left(ground: grounds.Ground) -> Iterator[str]:
    """Yield what was written outside, who was reached, and which neighbours are not well."""
    yield from (f"left behind: {path}" for path in grounds.marked_files())
    yield from (f"reached: {name}" for name in ground.visitors())
    if ground.victim.poll() is not None:
        yield "a neighbour has been ended"
    files = {path.name for path in ground.run.rglob("*") if path.is_file()}
    yield from (f"left in the run's folder: {name}" for name in files - TASK_FILES)
