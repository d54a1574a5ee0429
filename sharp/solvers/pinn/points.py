"""Where a network is trained, quasi-random points of space and time, and how a system is read as one of fields there.

A network has one output for each field; its time derivatives are derivatives of that, like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy
from numpy.typing import NDArray

from sharp.problems.problem import Problem
from sharp.problems.programs import compile_expressions
from sharp.solvers.sample_points import boundary, interior_points, recurrence
from sharp.solvers.system import FirstOrderSystem, SpatialDerivative, StateComponent

Array = NDArray[np.float64]


def coordinates(system: FirstOrderSystem) -> tuple[str, ...]:
    """Return the names of what a network depends on: space, and time unless the problem is steady."""
    return system.space if system.steady else (*system.space, system.time)


def ends(system: FirstOrderSystem, name: str) -> tuple[float, float]:
    """Return the two ends of a coordinate."""
    if name in system.space:
        return system.problem.bounds[name]
    assert system.problem.time is not None
    return system.problem.time


def half_extents(system: FirstOrderSystem) -> Array:
    """Return half the extent of each coordinate, which a network takes for 1."""
    return np.array([(high - low) / 2 for low, high in (ends(system, name) for name in coordinates(system))])


def order_in_time(system: FirstOrderSystem, field: str) -> int:
    """Return how often a field is differentiated by time, 0 in steady problems."""
    return 0 if system.steady else sum(component.field == field for component in system.components)


def field_of(system: FirstOrderSystem, component: int) -> int:
    """Return the number of the field that a component belongs to."""
    return system.problem.fields.index(system.components[component].field)


def derivative_of(system: FirstOrderSystem, jet: SpatialDerivative) -> tuple[int, ...]:
    """Return how often a jet differentiates its field by each coordinate, time included."""
    return jet.by if system.steady else (*jet.by, system.components[jet.component].order)


def equation_rows(system: FirstOrderSystem) -> list[int]:
    """Return which of the rates is the equation of each field: the one that is its highest time derivative."""
    return [
        system.components.index(StateComponent(name, max(0, order_in_time(system, name) - 1)))
        for name in system.problem.fields
    ]


def pinn_interior_points(problem: Problem, count: int) -> Array:
    """Return points [count, d] in the domain, or [count, d + 1] in the domain and the time interval."""
    if problem.time is None:
        return interior_points(problem, count)
    box = np.transpose([*(problem.bounds[axis] for axis in problem.space), problem.time])
    found, start = np.empty((0, box.shape[1])), 0
    while len(found) < count:
        candidates = box[0] + (box[1] - box[0]) * recurrence(count, box.shape[1], start)
        found = np.concatenate([found, candidates[problem.domain.inside(candidates[:, :-1])]])
        start += count
    return found[:count]


def at_start(problem: Problem, count: int) -> Array:
    """Return points [count, d + 1] of the domain at the first time."""
    assert problem.time is not None
    return with_times(interior_points(problem, count), np.array([problem.time[0]]))


def pinn_boundary_points(problem: Problem, part: str, count: int, times: int) -> tuple[Array, Array]:
    """Return points [m, coordinates] of a part of the boundary at equidistant times, and the outward normals [m, d]."""
    edge = boundary(problem.domain, part, count)
    if problem.time is None:
        return edge.points, edge.normals
    return with_times(edge.points, np.linspace(*problem.time, times)), np.tile(edge.normals, (times, 1))


def with_times(points: Array, times: Array) -> Array:
    """Return every point [m, d] at every time [k], as [k * m, d + 1]."""
    return np.column_stack([np.tile(points, (len(times), 1)), np.repeat(times, len(points))])


def values(expressions: Sequence[sympy.Expr], names: Sequence[str], points: Array) -> Array:
    """Return the values [expressions, m] of expressions of coordinates at points [m, coordinates].

    Raises `SpecificationError` for an expression that has no value anywhere.
    """
    with np.errstate(all="ignore"):
        found = compile_expressions(expressions, names)(*points.T)
    return np.array([np.broadcast_to(np.asarray(value, dtype=float), len(points)) for value in found])
