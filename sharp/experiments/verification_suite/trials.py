"""The trials of the suite: a generated problem, solved, or a sabotaged solution of it, judged; and the log of rows."""

# ruff: noqa: RUF009 - `column` makes a field

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Literal

import numpy as np

from sharp.errors import SharpError
from sharp.experiments.log import RecordWriter, read_log
from sharp.experiments.run_summary import column
from sharp.experiments.verification_suite.generator import GeneratedProblem, generate
from sharp.experiments.verification_suite.known_solutions import Values, relative_error
from sharp.experiments.verification_suite.sabotage import Sabotage, draw_sabotage
from sharp.solvers import (
    Array,
    ClockName,
    SolveOptions,
    Verdict,
    eigenvalue_distance,
    evaluate,
    solve_problem,
    verify_solution,
    verify_study,
)

Class = Literal["verified, right", "verified, wrong", "unverified, right", "unverified, wrong", "refused"]
# A verdict holds where the true error is at most so many times the accuracy, as for exact solutions elsewhere.
FACTOR = 10.0
# Points along an axis by which true errors are integrated, beside those about features.
_POINTS = {1: 1000, 2: 60, 3: 18}


@dataclass(frozen=True)
class VerificationTrial:
    """One problem of a seed; every second one is sabotaged."""

    seed: int
    index: int
    time_limit: float
    clock: ClockName = "cpu"

    @property
    def key(self) -> str:
        """What identifies the trial in the log."""
        return f"{self.seed}-{self.index}-{self.time_limit:g}-{self.clock}"

    @property
    def sabotaged(self) -> bool:
        """Whether a wrong solution is handed in instead of solving the problem."""
        return self.index % 2 == 1


@dataclass(frozen=True)
class VerificationResult:
    """One row: what was judged, what the verdict said, and what is true."""

    key: str = column("seed, index, limit of time and its clock", ...)
    seed: int = column("seed of the generator", ...)
    index: int = column("number of the problem", ...)
    family: str = column("kind of equation and domain", "")
    feature: str = column("kind of feature", "")
    width: float | None = column("width of the feature, as a share of domain or time", unit="1")
    affordable: bool = column("whether the width can be resolved in seconds", True)
    sabotage: str = column("what was made wrong; empty where nothing was", "")
    route: str = column("how it was handed in: `solve`, `solver output` or `claim`", "solve")
    accuracy: float | None = column("relative error that was asked for", unit="1")
    outcome: str = column("status of the verdict", "")
    estimate: float | None = column("error by the verdict", unit="1")
    error: float | None = column("true relative L2 error", unit="1")
    verdict: Class | Literal["failed"] = column("what the verdict is worth", "failed")
    told: int | None = column("solutions that the answer speaks of, where there are several")
    solutions: int = column("solutions that there are at least", 1)
    seconds: float = column("time", 0.0, "s")
    cpu_seconds: float = column("time of the processor", 0.0, "s")
    sentence: str = column("the verdict in words", "")


def run_trial(trial: VerificationTrial) -> VerificationResult:
    """Run a trial; an error that was not foreseen becomes a failed row, and ends no other."""
    wall, processor = time.perf_counter(), time.process_time()
    row = VerificationResult(trial.key, trial.seed, trial.index)
    try:
        problem = generate(trial.seed, trial.index)
        row = _described(row, problem)
        found = _judged(row, trial, problem)
    except Exception as error:  # noqa: BLE001 - as the docstring says
        found = replace(row, sentence=f"{type(error).__name__}: {error}")
    return replace(
        found,
        seconds=round(time.perf_counter() - wall, 3),
        cpu_seconds=round(time.process_time() - processor, 3),
    )


def _described(row: VerificationResult, problem: GeneratedProblem) -> VerificationResult:
    return replace(
        row,
        family=problem.family,
        feature=problem.feature,
        width=problem.width,
        affordable=problem.affordable,
        accuracy=problem.problem.specification.accuracy,
        solutions=problem.solutions,
    )


def _judged(
    row: VerificationResult, trial: VerificationTrial, problem: GeneratedProblem
) -> VerificationResult:
    options = SolveOptions(time_limit=trial.time_limit, clock=trial.clock)
    try:
        if not trial.sabotaged:
            return _solved(row, problem, options)
        sabotage = draw_sabotage(problem, np.random.default_rng([trial.seed, trial.index, 1]))
        row = replace(row, sabotage=sabotage.kind, route=sabotage.route)
        error = true_error(problem, sabotage.values, sabotage.eigenvalues, sabotage)
        return _with_verdict(row, _verdict_on(sabotage, problem, options), error)
    except SharpError as failure:
        return replace(row, verdict="refused", outcome="rejected", sentence=str(failure))


def _solved(row: VerificationResult, problem: GeneratedProblem, options: SolveOptions) -> VerificationResult:
    solution = solve_problem(problem.problem, options)
    found = solution.discrete
    if found is None:
        return _with_verdict(row, solution.verdict, None)
    told = len(solution.alternatives) + 1 if problem.solutions > 1 else None
    error = true_error(problem, partial(evaluate, found), found.eigenvalues)
    return _with_verdict(replace(row, told=told), solution.verdict, error)


def _verdict_on(sabotage: Sabotage, problem: GeneratedProblem, options: SolveOptions) -> Verdict:
    stated = problem.problem
    if sabotage.route == "solver output":
        return verify_study(stated, sabotage.study(problem), options).verdict
    if sabotage.values is None:
        assert stated.specification.eigenvalue is not None
        claimed = {stated.specification.eigenvalue.name: list(sabotage.eigenvalues)}
        return verify_solution(stated, claimed, time_limit=options.time_limit, clock=options.clock)
    wrong = sabotage.values

    def claim(*coordinates: Array) -> list[Array]:
        # Arguments are of the shape [k, m] of times and points.
        points = np.stack([each[0] for each in coordinates[: len(stated.space)]], axis=1)
        times = coordinates[-1][:, 0] if stated.time is not None else np.zeros(1)
        return list(wrong(points, times))

    return verify_solution(stated, claim, time_limit=options.time_limit, clock=options.clock)


def true_error(
    problem: GeneratedProblem,
    values: Values | None,
    eigenvalues: Sequence[float] = (),
    sabotage: Sabotage | None = None,
) -> float:
    """Return the relative L2 error against the nearest known solution, or the largest one of the eigenvalues."""
    if problem.eigenvalues:
        return eigenvalue_distance(eigenvalues, problem.eigenvalues)
    assert values is not None
    places = (*problem.places, *(sabotage.places if sabotage else ()))
    count = _POINTS[problem.dimension]
    with np.errstate(all="ignore"):
        return min(
            relative_error(problem.problem, known.values(problem.problem), values, places, count)
            for known in problem.known_solutions
        )


def _with_verdict(row: VerificationResult, verdict: Verdict, error: float | None) -> VerificationResult:
    known = error if error is not None and isfinite(error) else None
    estimate = verdict.error if isfinite(verdict.error) else None
    row = replace(row, outcome=verdict.status, estimate=estimate, error=known, sentence=verdict.reason)
    assert row.accuracy is not None
    right = known is not None and known <= FACTOR * row.accuracy
    found: Class
    if verdict.status in ("rejected", "needs_clarification", "unsolved"):
        found = "refused"
    elif verdict.verified:
        found = "verified, right" if right else "verified, wrong"
    else:
        found = "unverified, right" if right else "unverified, wrong"
    return replace(row, verdict=found)


@dataclass(frozen=True)
class SuiteRecord:
    """All rows by key, and what was wrong with the log."""

    rows: Mapping[str, VerificationResult] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def log_file(folder: Path) -> Path:
    """Return the path of the suite's log."""
    return folder / "trials.jsonl"


def read_record(folder: Path) -> SuiteRecord:
    """Read the log of a suite; lines that are damaged or torn are left out with a warning."""
    events, warnings = read_log(log_file(folder))
    rows = [VerificationResult(**event["row"]) for event in events if event["event"] == "row"]
    return SuiteRecord({row.key: row for row in rows}, warnings)


class ResultsWriter(RecordWriter[SuiteRecord]):
    """Appends rows to the log of a suite."""

    def __init__(self, folder: Path) -> None:
        super().__init__(log_file(folder), read_record)

    def add(self, row: VerificationResult) -> None:
        """Keep a row."""
        self._log.append([{"event": "row", "row": asdict(row)}])
