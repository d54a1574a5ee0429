"""Whether a course has solved its case: its solution on the held-out set, whatever it says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sharp.agentbench.truth import TOLERANCE, Truth
from sharp.problems.problem import Problem
from sharp.solving.refine import eigenvalue_distance
from sharp.solving.samples import evaluate, relative_distance
from sharp.solving.solution import Solution

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """The relative L2 error of the worst field, and the largest error relative to that field's largest value.

    Both are None where the solution has no value somewhere on the held-out set, or is of another kind. `by_order` says
    that fields or coordinates bear other names than the case's, and were taken in their order.
    """

    error: float | None = None
    maximum: float | None = None
    by_order: bool = False

    @property
    def solved(self) -> bool:
        """Whether the error is within the tolerance."""
        return self.error is not None and self.error <= TOLERANCE


def score(case: Problem, truth: Truth, found: Problem, solution: Solution) -> Score:
    """Score the solution of the problem as it was understood (`found`) as one of the case's own.

    They are compared as functions of coordinates in the case's units: a solution in centimetres for one in metres
    lies on another domain.
    """
    if truth.eigenvalues or solution.eigenvalues:
        return _of_eigenvalues(truth, solution)
    if len(case.space) != len(found.space) or len(case.fields) != len(found.fields):
        return Score()
    axes, fields = _places(found.space, case.space), _places(case.fields, found.fields)
    by_order = {*case.space, *case.fields} != {*found.space, *found.fields}
    points = truth.points[:, axes]
    if not (np.all(found.domain.inside(points)) and _covered(truth.times, case, found)):
        return Score(by_order=by_order)
    assert truth.values is not None, "a case has a solution or eigenvalues"
    values = evaluate(solution, points, truth.times)[fields]
    if not np.all(np.isfinite(values)):
        return Score(by_order=by_order)
    return Score(relative_distance(values, truth.values), _largest(values, truth.values), by_order)


def _places(wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return where each wanted name stands among others: by name where these are the same, else by order."""
    if set(wanted) == set(names):
        return [names.index(name) for name in wanted]
    return list(range(len(wanted)))


def _covered(times: Array, case: Problem, found: Problem) -> bool:
    """Whether the moments of a case lie in the time interval that was understood, up to rounding."""
    if case.time is None or found.time is None:
        return case.time is found.time
    low, high = found.time
    slack = 1e-9 * (high - low)
    return bool(low - slack <= times[0] and times[-1] <= high + slack)


def _of_eigenvalues(truth: Truth, solution: Solution) -> Score:
    """Compare the lowest eigenvalues; all that the case has are wanted."""
    wanted = len(truth.eigenvalues)
    if not wanted or len(solution.eigenvalues) < wanted:
        return Score()
    found = np.array(solution.eigenvalues[:wanted])
    error = eigenvalue_distance(found, np.array(truth.eigenvalues))
    return Score(error, error)


def _largest(values: Array, exact: Array) -> float:
    sizes = np.max(np.abs(exact), axis=(1, 2))
    largest = float(np.max(sizes)) or 1.0
    scale = np.where(sizes > 1e-6 * largest, sizes, largest)
    return float(np.max(np.max(np.abs(values - exact), axis=(1, 2)) / scale))
