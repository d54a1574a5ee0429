"""Initial and boundary values where they meet: at the ends, at corners, and at the two ends of a periodic axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sharp.problems.diagnostics import Diagnostic, Verdict
from sharp.problems.linearisation import LinearisedSystem, compiled, expression
from sharp.problems.problem import Problem
from sharp.problems.sampling import (
    Array,
    BoundaryQuadrature,
    at_times,
    conditions_at,
    face,
    inner_points,
    meeting_parts,
    open_parts,
    part_name,
    periodic_axes,
    shown,
    times,
    values,
)
from sharp.problems.spec import Boundary
from sharp.yaml_source import Path

# Values that differ by less than this share of their range were meant to be equal, as the tails of a bell curve.
_JUMP, _ROUNDING = 1e-3, 1e-8


@dataclass(frozen=True)
class _Difference:
    """Two values [n] that ought to be equal at points [n, d], and the range of the data they belong to."""

    points: Array
    first: Array
    second: Array
    spread: float

    @property
    def worst(self) -> int:
        """The place of the largest difference."""
        return int(np.argmax(np.nan_to_num(np.abs(self.first - self.second), nan=-1.0)))

    @property
    def size(self) -> float:
        """The largest difference as a share of the range."""
        found = float(np.abs(self.first - self.second)[self.worst])
        return found / self.spread if found > 0 and self.spread > 0 else 0.0


def compatibility_concerns(system: LinearisedSystem) -> Iterator[Diagnostic]:
    """Yield a concern for each condition that contradicts what it meets: the first of each kind."""
    found: dict[tuple[str, Path], Diagnostic] = {}
    for concern in _all_concerns(system):
        found.setdefault((concern.kind, concern.path), concern)
    yield from found.values()


def _all_concerns(system: LinearisedSystem) -> Iterator[Diagnostic]:
    problem = system.problem
    jump_is_meant = "corner-jump" in problem.specification.allow
    for part in open_parts(problem):
        for index, condition in conditions_at(problem, part):
            if condition.type == "dirichlet" and not jump_is_meant:
                yield from _initial_jump(system, part, index, condition)
            if condition.type == "dirichlet":
                yield from _velocity_jump(system, part, index, condition)
            if condition.type == "neumann":
                yield from _slope_jump(system, part, index, condition)
    if not jump_is_meant:
        yield from _corner_jumps(problem)
    for axis in sorted(periodic_axes(problem)):
        yield from _not_periodic(problem, axis)


def _initial(problem: Problem, key: str, points: Array) -> Array | None:
    """Return an initial value at points; None where it is sampled or not given."""
    given = problem.specification.initial.get(key)
    if given is None or given.expression is None:
        return None
    return values(problem, problem.tree(given.expression), points)


def _spread(*found: Array) -> float:
    known = np.concatenate(found)
    known = known[np.isfinite(known)]
    return float(np.ptp(known)) if len(known) else 0.0


def _start(problem: Problem, points: Array) -> Array:
    assert problem.time is not None, "only a problem with time has an initial state"
    return at_times(points, np.array(problem.time[:1]))


def _initial_jump(
    system: LinearisedSystem, part: str, index: int, condition: Boundary
) -> Iterator[Diagnostic]:
    problem, field = system.problem, str(condition.field)
    side = face(problem.domain, part)
    initial = _initial(problem, field, side.points)
    if initial is None:
        return
    here = _start(problem, side.points)
    boundary = values(problem, problem.tree(str(condition.value)), here)
    inside = _initial(problem, field, inner_points(problem.domain))
    assert inside is not None, "an initial value is an expression everywhere or nowhere"
    found = _Difference(here, initial, boundary, _spread(initial, boundary, inside))
    if found.size <= _ROUNDING:
        return
    first, second = (f"{part[found.worst]:.6g}" for part in (initial, boundary))
    place = shown(problem, here[found.worst])
    message = f"at {place} the initial value of '{field}' is {first}, the boundary value {second}"
    question = f"What is {field} at {place}: {first} as in the domain, {second} as on the boundary, or is a jump meant?"
    yield _of_size("corner-jump", found.size, ("boundary", index), message, question)


def _of_size(kind: str, size: float, path: Path, message: str, question: str) -> Diagnostic:
    verdict: Verdict = "clarify" if size > _JUMP else "warn"
    return Diagnostic(kind, verdict, path, message, question if verdict == "clarify" else "")


def _velocity_jump(
    system: LinearisedSystem, part: str, index: int, condition: Boundary
) -> Iterator[Diagnostic]:
    """Compare the initial velocity with that of the boundary value: where they differ, a kink runs into the domain."""
    problem, field, time = system.problem, str(condition.field), str(system.problem.time_name)
    points = face(problem.domain, part).points
    initial = _initial(problem, f"{field}_{time}", points)
    if initial is None:
        return
    here = _start(problem, points)
    velocity = expression(problem, str(condition.value)).diff(system.symbols[-1])
    boundary = compiled(system.symbols, [velocity])(*here.T)[0]
    inside = _initial(problem, f"{field}_{time}", inner_points(problem.domain))
    assert inside is not None, "an initial value is an expression everywhere or nowhere"
    found = _Difference(here, initial, boundary, _spread(initial, boundary, inside, np.zeros(1)))
    if found.size > _JUMP:
        message = (
            f"at {shown(problem, here[found.worst])} the initial velocity of '{field}' is {initial[found.worst]:.6g}, "
            f"that of the boundary value {boundary[found.worst]:.6g}: a kink runs into the domain"
        )
        yield Diagnostic("velocity-jump", "warn", ("boundary", index), message)


def _slope_jump(system: LinearisedSystem, part: str, index: int, condition: Boundary) -> Iterator[Diagnostic]:
    """Compare the slope of the initial state with the one prescribed."""
    problem, field = system.problem, str(condition.field)
    given = problem.specification.initial.get(field)
    if given is None or given.expression is None:
        return
    side = face(problem.domain, part)
    here = _start(problem, side.points)
    initial, inside = _slopes(system, given.expression, side)
    boundary = values(problem, problem.tree(str(condition.value)), here)
    found = _Difference(here, initial, boundary, _spread(boundary, inside, np.zeros(1)))
    if found.size > _JUMP:
        message = (
            f"at {shown(problem, here[found.worst])} the initial slope of '{field}' is {initial[found.worst]:.6g}, "
            f"the one prescribed {boundary[found.worst]:.6g}: the solution is not smooth there at first"
        )
        yield Diagnostic("slope-jump", "warn", ("boundary", index), message)


def _slopes(system: LinearisedSystem, text: str, side: BoundaryQuadrature) -> tuple[Array, Array]:
    """Return the outward slope of an initial state on a side, and its derivatives in the domain."""
    problem = system.problem
    space = system.symbols[: len(problem.space)]
    gradient: Callable[..., Array] = compiled(space, [expression(problem, text).diff(s) for s in space])
    outward = np.sum(gradient(*side.points.T).T * side.normals, axis=1)
    return outward, gradient(*inner_points(problem.domain).T).ravel()


def _corner_jumps(problem: Problem) -> Iterator[Diagnostic]:
    for first, second, points in meeting_parts(problem.domain):
        held = [_dirichlet(problem, part) for part in (first, second)]
        for field in sorted(held[0].keys() & held[1].keys()):
            index, _ = held[1][field]
            here = at_times(points, times(problem))
            a, b = (
                values(problem, problem.tree(str(conditions[field][1].value)), here) for conditions in held
            )
            found = _Difference(here, a, b, _spread(a, b, *_along(problem, field, held, (first, second))))
            if found.size <= _ROUNDING:
                continue
            names = [part_name(problem, part) for part in (first, second)]
            low, high = (f"{part[found.worst]:.6g}" for part in (a, b))
            place = shown(problem, here[found.worst])
            message = f"'{field}' at {place} is {low} on {names[0]} and {high} on {names[1]}"
            question = f"What is {field} at the corner {place}: {low}, {high}, or is a jump meant?"
            yield _of_size("corner-jump", found.size, ("boundary", index), message, question)


def _dirichlet(problem: Problem, part: str) -> dict[str, tuple[int, Boundary]]:
    return {
        str(condition.field): (index, condition)
        for index, condition in conditions_at(problem, part)
        if condition.type == "dirichlet" and part in open_parts(problem)
    }


def _along(
    problem: Problem, field: str, held: list[dict[str, tuple[int, Boundary]]], parts: tuple[str, str]
) -> Iterator[Array]:
    """Yield the values of a field along two parts of the boundary."""
    for conditions, part in zip(held, parts, strict=True):
        points = at_times(face(problem.domain, part, 5).points, times(problem))
        yield values(problem, problem.tree(str(conditions[field][1].value)), points)


def _not_periodic(problem: Problem, axis: str) -> Iterator[Diagnostic]:
    low, high = (face(problem.domain, axis + side).points for side in "-+")
    for key in problem.specification.initial:
        first, second = (_initial(problem, key, points) for points in (low, high))
        inside = _initial(problem, key, inner_points(problem.domain))
        if first is None or second is None or inside is None:
            continue
        found = _Difference(low, first, second, _spread(first, second, inside))
        if found.size > _ROUNDING:
            a, b = (f"{part[found.worst]:.6g}" for part in (first, second))
            ends = " and ".join(f"{axis} = {end:g}" for end in problem.bounds[axis])
            message = f"the axis {axis} is periodic, and the initial '{key}' is {a} and {b} at {ends}"
            question = f"Which initial {key} repeats along {axis}: what is it at {ends}, or is a jump meant?"
            yield _of_size("not-periodic", found.size, ("initial", key), message, question)
