"""How many evaluations a run needs to reach an error, in counts: a percentage depends on what is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BestErrorTrace = Sequence[float | None]
"""The best validation error of a run after each of its evaluations; None as long as nothing has run well."""


@dataclass(frozen=True)
class EvaluationsToTarget:
    """How far one run had to go for the error that another, the baseline, ended with.

    `target` is that error, `needed` the evaluations after which the run had it or less (None: it never had), `used`
    all its evaluations; `baseline_needed` and `baseline_used` are the same of the baseline, which uses most of its
    evaluations to be sure that nothing better comes.
    """

    target: float
    needed: int | None
    used: int
    baseline_needed: int
    baseline_used: int


def evaluations_to_reach(course: BestErrorTrace, target: float) -> int | None:
    """Return the number of evaluations after which a run's best error was `target` or less, None if it never was."""
    reached = (
        number
        for number, best in enumerate(course, start=1)
        if best is not None and best <= target  # a failure (NaN or +inf) reaches nothing
    )
    return next(reached, None)


def evaluations_to_target(course: BestErrorTrace, baseline: BestErrorTrace) -> EvaluationsToTarget | None:
    """Compare a run with the error that a baseline ended with; None where nothing of the baseline ran well."""
    target = baseline[-1] if baseline else None
    needed_there = None if target is None else evaluations_to_reach(baseline, target)
    if target is None or needed_there is None:
        return None
    return EvaluationsToTarget(
        target, evaluations_to_reach(course, target), len(course), needed_there, len(baseline)
    )
