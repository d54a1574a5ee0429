"""Whether an exact solution that a specification gives solves its equations and satisfies its conditions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Any

import numpy as np
import sympy

from sharp.problems.diagnostics import Diagnostic
from sharp.problems.expressions import names_in
from sharp.problems.fluxes import field_flux
from sharp.problems.linearisation import LinearisedSystem, compiled, exact_state, expression
from sharp.problems.problem import Problem
from sharp.problems.sampling import (
    Array,
    at_start,
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
    for field, text in problem.specification.reference.value.items():
        exact = expression(problem, text)
        yield from _initial_velocity(system, field, exact)
        for axis in sorted(periodic_axes(problem)):
            low, high = (at_times(problem, face(problem.domain, axis + side).points) for side in "-+")
            parts = [
                _at(system, exact, low),
                -_at(system, exact, high),
                *_weight(_inside(system, exact, 0), low),
            ]
            yield from _mismatch(problem, low, np.array(parts), f"the periodic axis {axis}", ("boundary",))
        if field in problem.specification.mean:
            yield from _mean(system, field, exact)


def _random_points(problem: Problem) -> Array:
    """Return the same random points of the domain and times each time, away from kinks at round numbers."""
    random = np.random.default_rng(7)
    low, high = np.transpose(list(problem.bounds.values()))
    points, count = np.empty((0, len(low))), 6 * _POINTS
    # A thin ring fills little of the box around it.
    while not len(points):
        drawn = low + (high - low) * random.random((count, len(low)))
        points, count = np.asarray(drawn[problem.domain.inside(drawn)][:_POINTS]), 2 * count
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
    side = face(problem.domain, part)
    points, normals = (
        at_times(problem, side.points),
        np.repeat(side.normals, max(len(times(problem)), 1), axis=0),
    )
    exact = expression(problem, problem.specification.reference.value[str(condition.field)])
    order = _ORDERS.get(condition.type, condition.order or 0)
    if condition.type == "flux":
        return points, _flux_terms(system, condition, points, normals)
    if condition.type == "robin":
        a, b = (_given(system, text, points) for text in (condition.a, condition.b))
        left = [a * _at(system, exact, points), b * _outward(system, exact, points, normals, 1)]
    else:
        left = [_outward(system, exact, points, normals, order)]
    # What is zero on the boundary is compared with the size of such derivatives inside.
    weight = _weight(_inside(system, exact, order), points)
    return points, np.array([*left, -_given(system, condition.value, points), *weight])


def _flux_terms(system: LinearisedSystem, condition: Boundary, points: Array, normals: Array) -> Array:
    """Return the terms [k, n] of a given flux: the outward component of the exact one, and what is given."""
    problem = system.problem
    form = field_flux(problem, str(condition.field))
    if form is None:
        return np.zeros((1, len(points)))
    exact = {name: expression(problem, text) for name, text in problem.specification.reference.value.items()}
    calls = {call: exact[call.func.__name__] for part in form.flux for call in _calls(part)}
    flux = [part.xreplace(calls).doit() for part in form.flux]
    through = [normal * _at(system, part, points) for normal, part in zip(normals.T, flux, strict=True)]
    # A stress may vanish everywhere because its terms cancel: these have the size that counts.
    addends = [term for part in form.flux for term in sympy.Add.make_args(sympy.expand(part))]
    terms = [term.xreplace(calls).doit() for term in addends]
    inside = np.stack([_at(system, term, _random_points(problem)) for term in terms])
    return np.array([*through, -_given(system, condition.value, points), *_weight(inside, points)])


def _given(system: LinearisedSystem, text: str | None, points: Array) -> Array:
    """Return the values [n] of what a condition gives, which may depend on the exact solution."""
    problem, exact = system.problem, system.problem.specification.reference.value
    if not names_in(problem.tree(str(text))) & set(problem.fields):
        return values(problem, text, points)
    fields = {name: expression(problem, exact[name]) for name in problem.fields}
    written = expression(problem, str(text))
    return _at(
        system,
        written.xreplace({s: fields[s.name] for s in written.free_symbols if s.name in fields}),
        points,
    )


def _calls(expression: Any) -> set[Any]:
    return set(expression.atoms(sympy.core.function.AppliedUndef))


def _weight(inside: Array, points: Array) -> Array:
    """Return two terms [2, n] that cancel: they lend the size of values inside to terms that are small by chance."""
    size = np.full(len(points), largest(inside) / 2)
    return np.array([size, -size])


def _outward(system: LinearisedSystem, exact: Any, points: Array, normals: Array, order: int) -> Array:
    """Return the derivative of that order along the outward normal: (n·∇)^order."""
    space = system.symbols[: len(system.problem.space)]
    found = np.zeros(len(points))
    for factors in combinations_with_replacement(range(len(space)), order):
        counts = [factors.count(axis) for axis in range(len(space))]
        ways = factorial(order) // prod(map(factorial, counts))  # the multinomial coefficient
        weight = np.prod(normals ** np.array(counts), axis=1)
        if weight.any():
            derivative = exact.diff(*(space[axis] for axis in factors)) if factors else exact
            found = found + ways * weight * _at(system, derivative, points)
    return found


def _at(system: LinearisedSystem, exact: Any, points: Array) -> Array:
    return np.asarray(compiled(system.symbols, [exact])(*points.T)[0])


def _inside(system: LinearisedSystem, exact: Any, order: int) -> Array:
    """Return the derivatives of an exact solution of that order along the axes, at points of the domain."""
    space = system.symbols[: len(system.problem.space)]
    points = _random_points(system.problem)
    return compiled(system.symbols, [exact.diff(symbol, order) for symbol in space])(*points.T)


def _initial_velocity(system: LinearisedSystem, field: str, exact: Any) -> Iterator[Diagnostic]:
    """Compare initial velocities; initial states are compared on reading."""
    problem = system.problem
    key = f"{field}_{problem.time_name}"
    given = problem.specification.initial.get(key)
    if given is None or given.expression is None or problem.time is None:
        return
    points, velocity = _random_points(problem), exact.diff(system.symbols[-1])
    weight = _weight(_at(system, velocity, points), points)
    points[:, -1] = problem.time[0]
    terms = np.array([_at(system, velocity, points), -values(problem, given.expression, points), *weight])
    yield from _mismatch(problem, points, terms, f"the initial {key}", ("initial", key))


def _mean(system: LinearisedSystem, field: str, exact: Any) -> Iterator[Diagnostic]:
    problem = system.problem
    points, weights = integration(problem.domain, 24)
    here = at_start(problem, points)
    inside = _at(system, exact, here)
    wanted = values(problem, problem.specification.mean[field], here[:1])
    terms = np.array([[float(weights @ inside) / float(weights.sum())], -wanted, *_weight(inside, wanted)])
    yield from _mismatch(problem, here[:1], terms, f"the mean of '{field}'", ("mean", field))
