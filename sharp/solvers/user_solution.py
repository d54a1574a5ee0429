"""The verdict on a solution that was computed elsewhere: a function, values on a grid, or another `Solution`.

It is judged by the checks of `sharp.solvers.verification`, and compared with a solution that is computed here by
another method. Its error is at most its distance from that one plus the error of that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sharp.errors import InputError
from sharp.problems import Problem
from sharp.solvers.comparison import solution_distance
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.driver import Listener, SolveOptions, solve_problem
from sharp.solvers.exact import exact_values, known_eigenvalues
from sharp.solvers.field_sizes import relative_distance
from sharp.solvers.grid import Array
from sharp.solvers.method import ClockName, all_methods
from sharp.solvers.refine import eigenvalue_distance, norm_of
from sharp.solvers.sample_points import evaluate, interior_points, sample_times
from sharp.solvers.solution import Solution, within_time
from sharp.solvers.system import system_of
from sharp.solvers.traits import aimed_accuracy
from sharp.solvers.verification import (
    COUNT,
    CROSS_CHECK,
    EXACT,
    CheckTolerances,
    Verdict,
    VerificationCheck,
    condition_checks,
    doubts_of,
    equation_checks,
    exact_checks,
    limits_of,
    verdict_of,
)

Function = Callable[..., Any]
Arrays = Mapping[str, Any]
Candidate = Solution | Function | Arrays

# The solution to compare with is computed so much more accurately.
SHARPER = 0.1
GIVEN = "given"
# Within this relative distance of another solution, a candidate is taken to stand for that one.
NEAR = 0.05


@dataclass(frozen=True)
class _Judge:
    """A problem, the limits of its checks, and the solution computed here that a candidate is compared with."""

    problem: Problem
    limits: CheckTolerances
    own: Solution

    def function(self, candidate: DiscreteSolution) -> Iterator[VerificationCheck]:
        """Yield the checks of a solution that can be evaluated anywhere."""
        if self.problem.specification.eigenvalue is None:
            yield from equation_checks(self.problem, candidate, self.limits)
            yield from condition_checks(self.problem, candidate, self.limits)
            yield self._nearest(candidate)
            yield from exact_checks(self.problem, candidate, self.limits)
            return
        yield from self.eigenvalues(candidate.eigenvalues)

    def _nearest(self, candidate: DiscreteSolution) -> VerificationCheck:
        """Return the comparison with the solution computed here, or a doubt where another one is nearer."""
        own = self.own.discrete
        distance = inf if own is None else solution_distance(self.problem, candidate, own)
        nearer = (solution_distance(self.problem, candidate, each) for each in self.own.alternatives)
        if any(each < min(distance, NEAR) for each in nearer):
            note = "it is near another solution of these equations than the one that was computed here"
            return VerificationCheck(CROSS_CHECK, inf, self.limits.accuracy, inf, note)
        return self._second(distance)

    def eigenvalues(self, found: Sequence[float] | Array) -> Iterator[VerificationCheck]:
        """Yield the checks of eigenvalues, ascending; functions are not looked at, as their signs are arbitrary."""
        own, exact = self.own.eigenvalues, known_eigenvalues(self.problem)
        wanted = self.problem.specification.eigenvalue
        assert wanted is not None
        if len(found) < wanted.count:
            note = f"{len(found)} of the {wanted.count} eigenvalues that are asked for are given"
            yield VerificationCheck(COUNT, float(wanted.count - len(found)), 0.0, inf, note)
        yield self._second(eigenvalue_distance(found, own) if own else inf)
        if exact:
            yield VerificationCheck(EXACT, eigenvalue_distance(found, exact), *self.limits.exact())

    def grid(self, values: Array, points: Array, times: Array) -> Iterator[VerificationCheck]:
        """Yield the checks of values [fields, k, m] at points [m, d] and times [k].

        They are compared at their own points: differences of what is interpolated would measure the interpolation.
        """
        yield self._second(self._distance(values, points, times))
        if self.problem.specification.reference.value:
            exact = exact_values(self.problem, points, times)
            error = relative_distance(self.problem, values, exact, norm_of(self.problem))
            yield VerificationCheck(EXACT, error, *self.limits.exact(), "on the grid")

    def _distance(self, values: Array, points: Array, times: Array) -> float:
        if self.own.discrete is None:
            return inf
        return relative_distance(
            self.problem, values, evaluate(self.own.discrete, points, times), norm_of(self.problem)
        )

    def _second(self, distance: float) -> VerificationCheck:
        """Return the bound on the error; a solution that is not verified itself says nothing, right or wrong."""
        own, accuracy = self.own, self.limits.accuracy
        if not own.verdict.verified:
            note = f"no verified solution to compare with: {own.verdict.reason}"
            return VerificationCheck(CROSS_CHECK, inf, accuracy, inf, note)
        note = f"the distance from {own.method}, {distance:.1e}, and the error of that, {own.error:.1e}"
        return VerificationCheck(CROSS_CHECK, distance + own.error, accuracy, max(0.05, 10 * accuracy), note)


def verify_solution(
    problem: Problem,
    candidate: Candidate,
    accuracy: float | None = None,
    time_limit: float | None = None,
    listener: Listener = lambda _: None,
    clock: ClockName = "wall",
) -> Verdict:
    """Return the verdict on a solution, `verified` if its relative L2 error is shown to be at most `accuracy`.

    `candidate` is a `Solution`; a function of the space coordinates and, in problems that depend on time, the time,
    which takes arrays of one shape and returns the field, or a sequence or mapping of all fields; or a mapping of
    names to arrays in the form of solution.npz: coordinates [n], times [k], fields [k, n, …] or [n, …], or the
    eigenvalues under their name. `time_limit` is in seconds of `clock`, as in `SolveOptions`.

    Raises `InputError` for a candidate of another form, and `UnsupportedProblem` for equations that no method here
    can treat.
    """
    accuracy = SolveOptions(accuracy=accuracy).accuracy or aimed_accuracy(problem)
    used = candidate.method if isinstance(candidate, Solution) else None
    others = [method for method in all_methods() if method.name != used]
    prepared = _prepared(problem, candidate)
    # What comes from a method here is compared with another one; a claim, with what two of them agree on.
    options = SolveOptions(
        accuracy=SHARPER * accuracy, time_limit=time_limit, clock=clock, cross_check=used is None
    )
    own = solve_problem(problem, options, listener, methods=others)
    if own.verdict.status in ("rejected", "needs_clarification"):
        return own.verdict
    judge = _Judge(problem, limits_of(system_of(problem), accuracy), own)
    checks = tuple(prepared(judge))
    error = next(check.value for check in checks if check.name == CROSS_CHECK)
    known = f"relative error at most {error:.1e}" if isfinite(error) else "of unknown error"
    if isinstance(candidate, Mapping) and problem.specification.eigenvalue is None:
        known += " at the points that are given"
    return Verdict(verdict_of(checks), known + (doubts_of(checks) or ", and all checks pass"), checks, error)


def _prepared(problem: Problem, candidate: Candidate) -> Callable[[_Judge], Iterator[VerificationCheck]]:
    """Return how a candidate is judged, once its form has been checked."""
    if isinstance(candidate, Solution):
        given = candidate.discrete
        if given is None:
            raise InputError(f"there is no solution to verify: {candidate.verdict.reason}")
        return lambda judge: judge.function(given)
    eigenvalue = problem.specification.eigenvalue
    if eigenvalue is not None:
        if not isinstance(candidate, Mapping) or eigenvalue.name not in candidate:
            raise InputError(f"expected the eigenvalues as {{{eigenvalue.name!r}: [...]}}")
        numbers = np.sort(_numbers(eigenvalue.name, candidate[eigenvalue.name]).ravel())
        if not len(numbers):
            raise InputError(f"{eigenvalue.name}: expected eigenvalues, found none")
        return lambda judge: judge.eigenvalues(numbers)
    if isinstance(candidate, Mapping):
        values, points, times = _on_grid(problem, candidate)
        return lambda judge: judge.grid(values, points, times)
    if not callable(candidate):
        raise InputError(
            f"expected a solution, a function or a mapping of arrays, found {type(candidate).__name__}"
        )
    wrapped = DiscreteSolution(GIVEN, 0, _evaluator(problem, candidate), 0)
    _try_out(problem, wrapped)
    return lambda judge: judge.function(wrapped)


def _evaluator(problem: Problem, function: Function) -> Callable[[Array, Array], Array]:
    """Return a user's function in the form of `DiscreteSolution.evaluate`; that raises `InputError` where it fails."""
    names = ", ".join([*problem.space, *([str(problem.time_name)] if problem.time is not None else [])])

    def evaluate(points: Array, times: Array) -> Array:
        shape = (len(times), len(points))
        space = [np.broadcast_to(coordinate, shape) for coordinate in points.T]
        late = [np.broadcast_to(times[:, None], shape)] if problem.time is not None else []
        try:
            found = _fields(problem, function(*space, *late))
            values = [np.broadcast_to(_real(each), shape) for each in found]
        except Exception as error:
            raise InputError(
                f"the function failed for arrays {names} of shape {list(shape)}: {type(error).__name__}: {error}"
            ) from error
        if len(values) != len(problem.fields):
            raise InputError(
                f"the function gave {len(values)} fields; expected {len(problem.fields)} "
                f"({', '.join(problem.fields)}) for arrays {names}"
            )
        return np.stack(values)

    return evaluate


def _fields(problem: Problem, found: Any) -> Sequence[ArrayLike]:
    """Return what a user's function gave, a value for each field."""
    if isinstance(found, Mapping):
        return [found[name] for name in problem.fields]
    if len(problem.fields) == 1 and not isinstance(found, list | tuple):
        return [found]
    return found  # type: ignore[no-any-return]


def _try_out(problem: Problem, solution: DiscreteSolution) -> None:
    """Raise `InputError` now, not after a long solve, if a user's function is not of the expected form."""
    solution.evaluate(interior_points(problem, 3), sample_times(problem, (0.25, 0.75)))


def _real(values: ArrayLike) -> Array:
    """Return real numbers; raises `TypeError` or `ValueError` for anything else (NumPy would drop imaginary parts)."""
    if np.iscomplexobj(values):
        raise TypeError("expected real numbers, found complex ones")
    return np.asarray(values, dtype=float)


def _numbers(name: str, values: ArrayLike) -> Array:
    try:
        return _real(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: expected an array of numbers: {error}") from None


def _on_grid(problem: Problem, arrays: Arrays) -> tuple[Array, Array, Array]:
    """Return the values [fields, k, m] of a mapping of arrays, at those points [m, d] that are in the domain."""
    times = [str(problem.time_name)] if problem.time is not None else []
    wanted = [*problem.space, *times, *problem.fields]
    for name in wanted:
        if name not in arrays:
            found = ", ".join(map(str, arrays)) or "none"
            raise InputError(f"expected arrays {', '.join(wanted)}; {name!r} is missing; found {found}")
    axes = [np.atleast_1d(_numbers(name, arrays[name])) for name in problem.space]
    moments = np.atleast_1d(_numbers(times[0], arrays[times[0]])) if times else np.zeros(1)
    grid = tuple(len(axis) for axis in axes)
    shape = (len(moments), *grid) if times else grid
    for name in problem.fields:
        if np.shape(arrays[name]) != shape:
            raise InputError(f"{name}: expected an array {list(shape)}, found {list(np.shape(arrays[name]))}")
    points = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    inside = problem.domain.inside(points)
    if not np.any(inside) or not within_time(problem, moments).all():
        raise InputError("expected points inside the domain and times inside the time interval")
    values = np.stack([_numbers(name, arrays[name]) for name in problem.fields])
    return values.reshape(len(values), len(moments), -1)[:, :, inside], points[inside], moments
