"""Hostile and broken candidates, each through a whole evaluation on every sandbox tier of the machine."""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import pytest

from hpc.sandbox import SandboxPolicy, probe_tiers
from sharp.evaluation.local import LocalEvaluator
from sharp.evaluation.protocol import Evaluation, EvaluationRequest
from sharp.evaluation.task import evaluate
from sharp.evaluation.worker_context import WorkerContext
from sharp.problems import load_problem
from sharp.problems.limits import ResourceLimits
from sharp.reference.datasets import DataSet, make_splits, open_dataset
from tests.helpers.conformance import ground as grounds
from tests.helpers.conformance.candidates import ALL, COLD, ENOUGH, GOOD, HONEST, WORSE, Candidate
from tests.helpers.conformance.conformance_page import TARGET, page

PROBLEM = load_problem("advection")
SPLITS = make_splits(6, n_test=2, n_validation=4)
TIERS = ("bubblewrap", "landlock", "rlimits")
TASK_FILES = {"request.json", "result.json"}


class Station:
    """One way to evaluate on one tier, what the tier `says` of itself, and what an exact solution scores there."""

    def __init__(
        self, tier: str, says: str, data: DataSet, run: Callable[[EvaluationRequest], Evaluation]
    ) -> None:
        self.tier, self.says = tier, says
        self._data, self._run = data, run
        self._numbers = itertools.count(1)
        self.good = self.evaluate(GOOD)
        assert self.good.ok, self.good
        assert self.good.environment["sandbox"] == tier
        assert self.evaluate(f"import jax\n{GOOD}").ok  # a warm interpreter for JAX is another one

    def evaluate(self, code: str, limits: ResourceLimits = ENOUGH) -> Evaluation:
        """Evaluate a program; the same program twice is run twice, as no two requests have the same limits."""
        unique = replace(limits, wall_s=limits.wall_s + 1e-5 * next(self._numbers))
        return self._run(EvaluationRequest(PROBLEM.label, self._data.label, "validation", code, unique))


@contextmanager
def warm(tier: str, says: str, ground: grounds.Ground) -> Iterator[Station]:
    """Evaluate as a run does: by one worker, whose interpreter serves all candidates."""
    data = open_dataset(ground.reference, PROBLEM)
    evaluator = LocalEvaluator(
        ground.run / tier, PROBLEM, data, SPLITS, workers=1, sandbox=SandboxPolicy(tier)
    )
    with asyncio.Runner() as runner:
        try:
            yield Station(tier, says, data, lambda request: runner.run(evaluator.evaluate(request)))
        finally:
            runner.run(evaluator.aclose())


@contextmanager
def cold(tier: str, says: str, ground: grounds.Ground) -> Iterator[Station]:
    """Evaluate in this process, with a fresh interpreter for each candidate."""
    data = open_dataset(ground.reference, PROBLEM)
    evaluator = LocalEvaluator(ground.run / tier, PROBLEM, data, SPLITS, workers=1)
    with WorkerContext(SandboxPolicy(tier), warm=False) as workshop:
        yield Station(
            tier, says, data, lambda request: evaluate(evaluator.task(request), workshop).evaluation
        )


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    """Lay the ground out; secrets are in the environment, and scratch folders lie in a folder of their own."""
    folder = tmp_path_factory.mktemp("conformance")
    (folder / "data").mkdir()
    answer = grounds.write_wave(folder / "data" / "wave.hdf5")
    with pytest.MonkeyPatch.context() as patch, grounds.lay_out(folder, answer) as made:
        patch.setenv("HOME", str(folder / "home"))
        patch.setenv("OPENAI_API_KEY", grounds.CANARY)
        patch.setenv("TMPDIR", str(folder / "scratch"))
        patch.setattr(tempfile, "tempdir", None)
        with grounds.adopted_orphans():
            yield made


@pytest.fixture(scope="module")
def station(request, ground):
    """Yield a station of a kind on a tier, one at a time; at its end nothing of it is left."""
    kind, tier = request.param
    probed = next(probed for probed in probe_tiers() if probed.tier == tier)
    if not probed.usable:
        pytest.skip(f"{tier} cannot be used here: {probed.reason}")
    before, scratch = grounds.running(), ground.scratch()
    with kind(tier, probed.reason, ground) as made:
        yield made
    assert not grounds.left_over(before)
    assert ground.scratch() <= scratch


def on_all_tiers(kind: Callable[..., AbstractContextManager[Station]]) -> pytest.MarkDecorator:
    """Let a test have stations of a kind."""
    return pytest.mark.parametrize("station", [(kind, tier) for tier in TIERS], ids=TIERS, indirect=True)


@pytest.mark.parametrize("candidate", ALL, ids=lambda candidate: candidate.name)
@on_all_tiers(warm)
def test_candidate_and_what_follows(station, ground, candidate) -> None:
    check(candidate, station, ground)
    assert station.evaluate(GOOD).scores == station.good.scores


@pytest.mark.parametrize("candidate", COLD, ids=lambda candidate: candidate.name)
@on_all_tiers(cold)
def test_candidate_in_a_fresh_interpreter(station, ground, candidate) -> None:
    check(candidate, station, ground)


def check(candidate: Candidate, station: Station, ground: grounds.Ground) -> None:
    """Evaluate a candidate; its outcome is right, nothing is told, nothing is left."""
    if candidate.do and candidate.do in station.says:
        pytest.skip(f"{station.tier} says that programs can {candidate.do}")
    code, idle, before = ground.fill_in(candidate.code), grounds.running(), ground.state()
    for _ in range(candidate.runs):
        evaluation = station.evaluate(code, candidate.limits)
        assert outcome(evaluation, station.good) in candidate.outcome, evaluation
        check_nothing_told(evaluation)
        if candidate.seconds and evaluation.ok:
            assert evaluation.run_time_s is not None
            assert evaluation.run_time_s >= candidate.seconds
    assert not grounds.left_over(idle)
    assert ground.state() == before
    check_nothing_left(ground)


def outcome(evaluation: Evaluation, good: Evaluation) -> str:
    """Return the kind of failure, or how the score compares with that of the exact solution."""
    if evaluation.failure is not None:
        assert evaluation.scores is None
        return evaluation.failure.kind
    assert evaluation.scores is not None
    assert good.scores is not None
    if evaluation.scores == good.scores:
        return HONEST
    assert evaluation.scores.nrmse > good.scores.nrmse
    return WORSE


def check_nothing_told(evaluation: Evaluation) -> None:
    """No canary was found, no breach announced, and nothing is longer than it should be."""
    told = json.dumps(evaluation.to_json())
    assert grounds.CANARY not in told
    assert "BREACH" not in told, evaluation.stdout
    assert max(map(len, (evaluation.stdout, evaluation.stderr, str(evaluation.failure)))) < 20_000


def check_nothing_left(ground: grounds.Ground) -> None:
    """No file was written outside, nobody was reached, all neighbours are well."""
    assert grounds.marked_files() == []
    assert ground.visitors() == []
    assert ground.victim.poll() is None
    left = {path.name for path in ground.run.rglob("*") if path.is_file()}
    assert left <= TASK_FILES


def test_page_is_what_the_candidates_say() -> None:
    assert TARGET.read_text() == page(), "run python -m tests.helpers.conformance.conformance_page"


def test_candidates_have_names_and_outcomes_of_their_own() -> None:
    assert len({candidate.name for candidate in ALL}) == len(ALL)
    assert all(candidate.outcome for candidate in ALL)
