"""Initial and boundary values where they meet: at the ends, at corners, and at the two ends of a periodic axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np

from sharp.problems.diagnostics import Diagnostic, Verdict
from sharp.problems.linearisation import LinearisedSystem, compiled, expression
from sharp.problems.problem import Problem
from sharp.problems.sampling import (
    Array,
    BoundaryQuadrature,
    at_start,
    at_times,
    conditions_at,
    face,
    inner_points,
    meeting_parts,
    open_parts,
    part_name,
    periodic_axes,
    shown,
    values,
)
from sharp.problems.spec import Boundary
from sharp.yaml_source import Path

# Values that differ by less than this share of their range were meant to be equal, as the tails of a bell curve.
_JUMP, _ROUNDING = 1e-3, 1e-8


@dataclass(frozen=True)
class _Difference:
    """The largest difference of two values that ought to be equal, as a share of the range of the data."""

    point: Array
    first: float
    second: float
    size: float

    def concern(self, kind: str, path: Path, message: str, question: str) -> Diagnostic:
        """Return what is to be asked where the difference is a jump, and to be known where it is small."""
        verdict: Verdict = "clarify" if self.size > _JUMP else "warn"
        return Diagnostic(kind, verdict, path, message, question if verdict == "clarify" else "")


def _difference(points: Array, first: Array, second: Array, *data: Array) -> _Difference:
    """Compare values [n] at points [n, d], in the range of the data that they belong to."""
    worst = int(np.argmax(np.nan_to_num(np.abs(first - second), nan=-1.0)))
    known = np.concatenate(data)
    known = known[np.isfinite(known)]
    spread = float(np.ptp(known)) if len(known) else 0.0
    found = abs(float(first[worst] - second[worst]))
    size = found / spread if found > 0 and spread > 0 else 0.0
    return _Difference(points[worst], float(first[worst]), float(second[worst]), size)


def compatibility_concerns(system: LinearisedSystem) -> Iterator[Diagnostic]:
    """Yield a concern for each condition that contradicts what it meets: the first of each kind."""
    found: dict[tuple[str, Path], Diagnostic] = {}
    for concern in _all_concerns(system):
        found.setdefault((concern.kind, concern.path), concern)
    yield from found.values()


@lru_cache(maxsize=64)
def has_accepted_jump(problem: Problem) -> bool:
    """Return whether values differ where initial and boundary conditions meet, and the specification accepts that.

    Where it accepts a jump that is not there, or one as small as the tails of a bell curve, the answer is no; it is yes
    where initial values are no expressions.
    """
    if "corner-jump" not in problem.specification.allow:
        return False
    if any(given.expression is None for given in problem.specification.initial.values()):
        return True
    at_the_start = (
        _initial_jump(problem, face(problem.domain, part), ("boundary", index), condition)
        for part in open_parts(problem)
        for index, condition in conditions_at(problem, part)
        if condition.type == "dirichlet"
    )
    found = chain(*at_the_start, _corner_jumps(problem))
    return any(each.verdict == "clarify" for each in found)


def _all_concerns(system: LinearisedSystem) -> Iterator[Diagnostic]:
    problem = system.problem
    jump_is_meant = "corner-jump" in problem.specification.allow
    for part in open_parts(problem):
        side = face(problem.domain, part)
        for index, condition in conditions_at(problem, part):
            path = ("boundary", index)
            if condition.type == "dirichlet" and not jump_is_meant:
                yield from _initial_jump(problem, side, path, condition)
            if condition.type == "dirichlet":
                yield from _velocity_jump(system, side, path, condition)
            if condition.type == "neumann":
                yield from _slope_jump(system, side, path, condition)
    if not jump_is_meant:
        yield from _corner_jumps(problem)
    for axis in sorted(periodic_axes(problem)):
        yield from _not_periodic(problem, axis)


def _initial(problem: Problem, key: str, *places: Array) -> list[Array] | None:
    """Return an initial value at the points of several places; None where it is sampled or not given."""
    given = problem.specification.initial.get(key)
    if given is None or given.expression is None:
        return None
    return [values(problem, given.expression, points) for points in places]


def _initial_jump(
    problem: Problem, side: BoundaryQuadrature, path: Path, condition: Boundary
) -> Iterator[Diagnostic]:
    field = str(condition.field)
    given = _initial(problem, field, side.points, inner_points(problem.domain))
    if given is None:
        return
    here = at_start(problem, side.points)
    boundary = values(problem, condition.value, here)
    found = _difference(here, given[0], boundary, given[0], boundary, given[1])
    if found.size > _ROUNDING:
        first, second, place = f"{found.first:.6g}", f"{found.second:.6g}", shown(problem, found.point)
        message = f"at {place} the initial value of '{field}' is {first}, the boundary value {second}"
        known = f"{first} as in the domain, {second} as on the boundary"
        question = f"What is {field} at {place}: {known}, or is a jump meant?"
        yield found.concern("corner-jump", path, message, question)


def _velocity_jump(
    system: LinearisedSystem, side: BoundaryQuadrature, path: Path, condition: Boundary
) -> Iterator[Diagnostic]:
    """Compare the initial velocity with that of the boundary value: where they differ, a kink runs into the domain."""
    problem, field = system.problem, condition.field
    given = _initial(problem, f"{field}_{problem.time_name}", side.points, inner_points(problem.domain))
    if given is None:
        return
    here = at_start(problem, side.points)
    velocity = expression(problem, str(condition.value)).diff(system.symbols[-1])
    boundary = compiled(system.symbols, [velocity])(*here.T)[0]
    found = _difference(here, given[0], boundary, given[0], boundary, given[1], np.zeros(1))
    if found.size > _JUMP:
        message = (
            f"at {shown(problem, found.point)} the initial velocity of '{field}' is {found.first:.6g}, "
            f"that of the boundary value {found.second:.6g}: a kink runs into the domain"
        )
        yield Diagnostic("velocity-jump", "warn", path, message)


def _slope_jump(
    system: LinearisedSystem, side: BoundaryQuadrature, path: Path, condition: Boundary
) -> Iterator[Diagnostic]:
    """Compare the outward slope of the initial state with the one prescribed."""
    problem, field = system.problem, condition.field
    given = problem.specification.initial.get(str(field))
    if given is None or given.expression is None:
        return
    here, space = at_start(problem, side.points), system.symbols[: len(problem.space)]
    gradient = compiled(space, [expression(problem, given.expression).diff(symbol) for symbol in space])
    initial = np.sum(gradient(*side.points.T).T * side.normals, axis=1)
    inside = gradient(*inner_points(problem.domain).T).ravel()
    boundary = values(problem, condition.value, here)
    found = _difference(here, initial, boundary, boundary, inside, np.zeros(1))
    if found.size > _JUMP:
        message = (
            f"at {shown(problem, found.point)} the initial slope of '{field}' is {found.first:.6g}, "
            f"the one prescribed {found.second:.6g}: the solution is not smooth there at first"
        )
        yield Diagnostic("slope-jump", "warn", path, message)


def _corner_jumps(problem: Problem) -> Iterator[Diagnostic]:
    for *parts, points in meeting_parts(problem.domain):
        held = [_dirichlet(problem, part) for part in parts]
        for field in sorted(held[0].keys() & held[1].keys()):
            here = at_times(problem, points)
            a, b = (values(problem, conditions[field][1], here) for conditions in held)
            along = (
                values(problem, conditions[field][1], at_times(problem, face(problem.domain, part, 5).points))
                for conditions, part in zip(held, parts, strict=True)
            )
            found = _difference(here, a, b, a, b, *along)
            if found.size > _ROUNDING:
                names = [part_name(problem, part) for part in parts]
                low, high, place = f"{found.first:.6g}", f"{found.second:.6g}", shown(problem, found.point)
                message = f"'{field}' at {place} is {low} on {names[0]} and {high} on {names[1]}"
                question = f"What is {field} at the corner {place}: {low}, {high}, or is a jump meant?"
                yield found.concern("corner-jump", ("boundary", held[1][field][0]), message, question)


def _dirichlet(problem: Problem, part: str) -> dict[str, tuple[int, str]]:
    """Return what holds the value of each field on a part that is not periodic: the number of the condition, and it."""
    return {
        str(condition.field): (index, str(condition.value))
        for index, condition in conditions_at(problem, part)
        if condition.type == "dirichlet" and part in open_parts(problem)
    }


def _not_periodic(problem: Problem, axis: str) -> Iterator[Diagnostic]:
    low, high = (face(problem.domain, axis + side).points for side in "-+")
    for key in problem.specification.initial:
        given = _initial(problem, key, low, high, inner_points(problem.domain))
        if given is None:
            continue
        found = _difference(low, given[0], given[1], *given)
        if found.size > _ROUNDING:
            ends = " and ".join(f"{axis} = {end:g}" for end in problem.bounds[axis])
            apart = f"{found.first:.6g} and {found.second:.6g}"
            message = f"the axis {axis} is periodic, and the initial '{key}' is {apart} at {ends}"
            question = f"Which initial {key} repeats along {axis}: what is it at {ends}, or is a jump meant?"
            yield found.concern("not-periodic", ("initial", key), message, question)
