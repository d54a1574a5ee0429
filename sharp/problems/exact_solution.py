"""Whether an exact solution that a specification gives solves its equations and satisfies its conditions."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import Any

import numpy as np

from sharp.problems.diagnostics import Diagnostic
from sharp.problems.linearisation import LinearisedSystem, compiled, exact_state, expression
from sharp.problems.problem import Problem
from sharp.problems.sampling import (
    Array,
    BoundaryQuadrature,
    at_times,
    conditions_at,
    face,
    integration,
    largest,
    open_parts,
    part_name,
    periodic_axes,
    shown,
    times,
    values,
)
from sharp.problems.spec import Boundary

# What may be left of an equation, as a share of its terms: by rounding and constants with seven digits, and where an
# infinite domain is cut off.
_ROUNDING, _CUT = 1e-6, 1e-4
_POINTS = 40


def check_exact_solution(system: LinearisedSystem) -> Iterator[Diagnostic]:
    """Yield a concern for each equation and condition that the exact solution does not satisfy, with place and size."""
    problem = system.problem
    if not problem.specification.reference.value:
        return
    points = _random_points(problem)
    for index, terms in enumerate(system.terms(points, exact_state(problem))):
        yield from _mismatch(problem, points, terms, f"equation {index + 1}", ("equations", index))
    for part in open_parts(problem):
        for index, condition in conditions_at(problem, part):
            here, terms = _boundary_terms(system, part, condition)
            name = f"the condition at {part_name(problem, part)}"
            yield from _mismatch(problem, here, terms, name, ("boundary", index))
    yield from _other_conditions(system)


def _random_points(problem: Problem) -> Array:
    """Return the same random points of the domain and times each time, away from kinks at round numbers."""
    random = np.random.default_rng(7)
    low, high = np.transpose(list(problem.bounds.values()))
    points = low + (high - low) * random.random((6 * _POINTS, len(low)))
    points = np.asarray(points[problem.domain.inside(points)][:_POINTS])
    if problem.time is None:
        return points
    start, end = problem.time
    return np.column_stack([points, start + (end - start) * random.random(len(points))])


def _mismatch(
    problem: Problem, points: Array, terms: Array, what: str, path: tuple[str | int, ...]
) -> Iterator[Diagnostic]:
    """Yield a concern where terms [k, n] that ought to cancel do not."""
    left, size = np.abs(terms.sum(axis=0)), np.abs(terms).sum(axis=0)
    worst, scale = int(np.argmax(np.nan_to_num(left, nan=-1.0))), largest(size)
    if left[worst] > _ROUNDING * scale:
        message = (
            f"the exact solution does not satisfy {what}: at {shown(problem, points[worst])} its terms, of size "
            f"{scale:.3g}, leave {left[worst]:.3g}"
        )
        yield Diagnostic("wrong-reference", "reject" if left[worst] > _CUT * scale else "warn", path, message)


# The order of the highest normal derivative in a condition; `derivative` states its own.
_ORDERS = {"dirichlet": 0, "neumann": 1, "robin": 1}


def _boundary_terms(system: LinearisedSystem, part: str, condition: Boundary) -> tuple[Array, Array]:
    """Return points, and the terms [k, n] of a boundary condition there, which cancel where it is satisfied."""
    problem = system.problem
    side = _at_all_times(problem, face(problem.domain, part))
    exact = expression(problem, problem.specification.reference.value[str(condition.field)])
    value = values(problem, problem.tree(str(condition.value)), side.points)
    order = _ORDERS.get(condition.type, condition.order or 0)
    if condition.type == "robin":
        a, b = (values(problem, problem.tree(str(text)), side.points) for text in (condition.a, condition.b))
        left = [a * _outward(system, exact, side, 0), b * _outward(system, exact, side, 1)]
    else:
        left = [_outward(system, exact, side, order)]
    # What is zero on the boundary is compared with the size of such derivatives inside.
    size = largest(_inside(system, exact, order))
    return side.points, np.array([*left, -value, *_weight(size, len(value))])


def _at_all_times(problem: Problem, side: BoundaryQuadrature) -> BoundaryQuadrature:
    """Return the points and normals of a side once for each time."""
    moments = times(problem)
    count = max(len(moments), 1)
    return BoundaryQuadrature(
        at_times(side.points, moments), np.repeat(side.normals, count, axis=0), np.repeat(side.weights, count)
    )


def _weight(size: float, count: int) -> Array:
    """Return two terms [2, n] that cancel: they lend their size to terms that are small by chance."""
    return np.array([np.full(count, size / 2), np.full(count, -size / 2)])


def _outward(system: LinearisedSystem, exact: Any, side: BoundaryQuadrature, order: int) -> Array:
    """Return the derivative of that order along the outward normal: (n·∇)^order."""
    space = system.symbols[: len(system.problem.space)]
    found = np.zeros(len(side.points))
    for counts, ways in _powers(len(space), order):
        factor = np.prod(side.normals ** np.array(counts), axis=1)
        if factor.any():
            found = found + ways * factor * _at(system, _derivative(exact, space, counts), side.points)
    return found


def _powers(dimension: int, order: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the exponents of a sum of `dimension` terms raised to `order`, with their multinomial coefficients."""
    if dimension == 1:
        yield (order,), 1
        return
    for first in range(order + 1):
        for rest, ways in _powers(dimension - 1, order - first):
            yield (first, *rest), comb(order, first) * ways


def _derivative(exact: Any, symbols: tuple[Any, ...], counts: tuple[int, ...]) -> Any:
    for symbol, count in zip(symbols, counts, strict=True):
        exact = exact.diff(symbol, count)
    return exact


def _at(system: LinearisedSystem, exact: Any, points: Array) -> Array:
    return np.asarray(compiled(system.symbols, [exact])(*points.T)[0])


def _inside(system: LinearisedSystem, exact: Any, order: int) -> Array:
    """Return the derivatives of an exact solution of that order along the axes, at points of the domain."""
    space = system.symbols[: len(system.problem.space)]
    points = _random_points(system.problem)
    return compiled(system.symbols, [exact.diff(symbol, order) for symbol in space])(*points.T)


def _other_conditions(system: LinearisedSystem) -> Iterator[Diagnostic]:
    """Yield concerns about initial velocities, periodic axes and means; initial states are compared on reading."""
    problem = system.problem
    for field, text in problem.specification.reference.value.items():
        exact = expression(problem, text)
        yield from _initial_velocity(system, field, exact)
        for axis in sorted(periodic_axes(problem)):
            yield from _repetition(system, axis, exact)
        if field in problem.specification.mean:
            yield from _mean(system, field, exact)


def _initial_velocity(system: LinearisedSystem, field: str, exact: Any) -> Iterator[Diagnostic]:
    problem = system.problem
    key = f"{field}_{problem.time_name}"
    given = problem.specification.initial.get(key)
    if given is None or given.expression is None or problem.time is None:
        return
    points = _random_points(problem)
    points[:, -1] = problem.time[0]
    velocity = exact.diff(system.symbols[-1])
    wanted = values(problem, problem.tree(given.expression), points)
    weight = _weight(largest(_at(system, velocity, _random_points(problem))), len(points))
    terms = np.array([_at(system, velocity, points), -wanted, *weight])
    yield from _mismatch(problem, points, terms, f"the initial {key}", ("initial", key))


def _repetition(system: LinearisedSystem, axis: str, exact: Any) -> Iterator[Diagnostic]:
    problem = system.problem
    low, high = (at_times(face(problem.domain, axis + side).points, times(problem)) for side in "-+")
    weight = _weight(largest(_inside(system, exact, 0)), len(low))
    terms = np.array([_at(system, exact, low), -_at(system, exact, high), *weight])
    yield from _mismatch(problem, low, terms, f"the periodic axis {axis}", ("boundary",))


def _mean(system: LinearisedSystem, field: str, exact: Any) -> Iterator[Diagnostic]:
    problem = system.problem
    points, weights = integration(problem.domain, 24)
    moments = np.array(problem.time[:1]) if problem.time else np.empty(0)
    here = at_times(points, moments)
    found = float(weights @ _at(system, exact, here)) / float(weights.sum())
    wanted = values(problem, problem.tree(problem.specification.mean[field]), here[:1])[0]
    terms = np.array([[found], [-wanted], *_weight(largest(_at(system, exact, here)), 1)])
    yield from _mismatch(problem, here[:1], terms, f"the mean of '{field}'", ("mean", field))
