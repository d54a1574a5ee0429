"""Cross-check: another method on the same problem, within about ten times the cost of the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

from sharp.solvers.comparison import solution_distance
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.method import Deadline, NumericalMethod
from sharp.solvers.refine import RefinementStudy, ResolutionAttempt, refine
from sharp.solvers.system import FirstOrderSystem

COST = 10.0
# However cheap the first method was, the second may take this long.
LEAST_SECONDS = 3.0
# Agreement to more digits than these would cost much and tell little: digits are the refinement's business.
ENOUGH = 1e-5


@dataclass(frozen=True)
class CrossCheck:
    """How far the solution of another method is from the one in question, and its own estimated error."""

    method: str
    resolution: int
    distance: float
    own: float
    seconds: float


def second_opinion(
    system: FirstOrderSystem,
    methods: Sequence[NumericalMethod],
    seconds: float,
    accuracy: float,
    deadline: Deadline,
    listener: Callable[[ResolutionAttempt], None],
    sound: Callable[[RefinementStudy], bool] = lambda _: True,
) -> RefinementStudy | None:
    """Return what the first of the methods that gives a sound solution in time came to, or None.

    A solution whose own error is not known, as there was time for one resolution alone, tells nothing.
    """
    for method in methods:
        limit = min(max(LEAST_SECONDS, COST * seconds), deadline.remaining_s)
        if limit <= 0:
            return None
        found = refine(method, system, max(accuracy, ENOUGH), Deadline.within(limit), listener=listener)
        if found.solution is not None and isfinite(found.error) and sound(found):
            return found
    return None


def compare_solutions(
    system: FirstOrderSystem, other: RefinementStudy, solution: DiscreteSolution
) -> CrossCheck:
    """Return what a refinement with a solution by another method says of a solution."""
    assert other.solution is not None
    apart = solution_distance(system.problem, other.solution, solution)
    return CrossCheck(other.method, other.solution.resolution, apart, other.error, other.seconds)
