"""How large fields, equations and conditions are, by the data alone: a network is trained on numbers near 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import sympy
from numpy.typing import NDArray

from sharp.problems import Problem, compile_expressions
from sharp.solvers.grid import Array, full
from sharp.solvers.sample_points import boundary, interior_points, space_time_points
from sharp.solvers.system import BoundaryCondition, FirstOrderSystem, SpatialDerivative, StateComponent


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


def values(system: FirstOrderSystem, expressions: Sequence[sympy.Expr], points: Array) -> Array:
    """Return the values [expressions, m] of expressions of coordinates at points [m, coordinates].

    Raises `SpecificationError` for an expression that has no value anywhere.
    """
    with np.errstate(all="ignore"):
        found = compile_expressions(expressions, coordinates(system))(*points.T)
    return np.array([full(value, len(points)) for value in found])


_SAMPLES = 200
_ON_A_PART = (12, 9)


@dataclass(frozen=True)
class FieldScale:
    """The values that a field has about: its mean level, and how far it departs from that."""

    level: float
    size: float


def field_scales(system: FirstOrderSystem) -> tuple[FieldScale, ...]:
    """Return the scale of each field, from initial and boundary values, and from what the sources alone would cause."""
    caused = _caused(system)
    found = []
    for name, source in zip(system.problem.fields, caused, strict=True):
        given, flows = _given_values(system, name), _given_flows(system, name)
        spread = float(np.std(given)) if given.size else 0.0
        found.append((float(np.mean(given)) if given.size else 0.0, max(spread, flows, source)))
    largest = max(size for _, size in found) or max(abs(level) for level, _ in found) or 1.0
    return tuple(FieldScale(level, size or largest) for level, size in found)


def equation_scales(system: FirstOrderSystem, scales: Sequence[FieldScale]) -> Array:
    """Return the size of the largest term of each equation of a field [fields]."""
    sizes = np.array([scale.size for scale in scales])
    terms = _terms(system, sizes + [scale.level for scale in scales], sizes)
    found = []
    for number, row in enumerate(equation_rows(system)):
        field = system.problem.fields[number]
        parts = [terms.source[row], *(terms.factors[row] * terms.units * sizes[terms.fields])]
        found.append(max(*parts, sizes[number] * _per_time(system, field)) or 1.0)
    return np.array(found)


def condition_scale(system: FirstOrderSystem, condition: BoundaryCondition, scale: FieldScale) -> float:
    """Return the size of the largest term of a boundary condition of a field."""
    return scale.size * max(_weights(system, condition).values())


@dataclass(frozen=True)
class _Terms:
    """The size of sources [rates], of factors of jets [rates, jets], of jets per unit of their fields [jets]."""

    source: Array
    factors: Array
    units: Array
    fields: NDArray[np.intp]


def _terms(system: FirstOrderSystem, about: Array, changes: Array) -> _Terms:
    """Return the sizes of all terms of the rates, linearised about values and changes of the fields [fields]."""
    points = space_time_points(system.problem, _SAMPLES)
    late = [0.0] if system.steady else []
    fields = np.array([field_of(system, jet.component) for jet in system.jets], dtype=np.intp)
    units = np.array([_unit(system, jet) for jet in system.jets])
    jets = [
        np.full(_SAMPLES, about[field] if _is_value(system, jet) else changes[field] * unit)
        for field, jet, unit in zip(fields, system.jets, units, strict=True)
    ]
    partial = [
        system.jacobian.get((i, j), sympy.Integer(0))
        for i in range(len(system.rhs))
        for j in range(len(system.jets))
    ]
    program = compile_expressions([*system.rhs, *partial], system.names)
    with np.errstate(all="ignore"):
        source = program(*points.T, *late, *(0.0 * jet for jet in jets))[: len(system.rhs)]
        factors = program(*points.T, *late, *jets)[len(system.rhs) :]
    largest = np.reshape([_size(each) for each in factors], (len(system.rhs), len(system.jets)))
    return _Terms(np.array([_size(each) for each in source]), largest, units, fields)


def _caused(system: FirstOrderSystem) -> Array:
    """Return how large the sources alone would make each field: they are balanced by some term of its equation."""
    nothing = np.zeros(len(system.problem.fields))
    terms = _terms(system, nothing, nothing)
    found = []
    for number, row in enumerate(equation_rows(system)):
        own = terms.factors[row] * terms.units * (terms.fields == number)
        balance = float(np.sum(own)) + _per_time(system, system.problem.fields[number])
        found.append(terms.source[row] / balance if balance else 0.0)
    return np.array(found)


def _is_value(system: FirstOrderSystem, jet: SpatialDerivative) -> bool:
    return jet.order == 0 and system.components[jet.component].order == 0


def _unit(system: FirstOrderSystem, jet: SpatialDerivative) -> float:
    """Return the size of a jet of a field of size 1 that changes over half of the domain and of the time."""
    return float(np.prod(half_extents(system) ** -np.array(derivative_of(system, jet), dtype=float)))


def _per_time(system: FirstOrderSystem, field: str) -> float:
    return 0.0 if system.steady else float(half_extents(system)[-1] ** -order_in_time(system, field))


def _size(value: Array | float) -> float:
    found = np.atleast_1d(np.asarray(value, dtype=float))
    finite = found[np.isfinite(found)]
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0


def _given_values(system: FirstOrderSystem, field: str) -> Array:
    found = [
        values(system, [condition.value / condition.factors[0]], points)[0]
        for condition, points in _on_boundary(system, field)
        if condition.factors.get(0, 0) != 0
    ]
    if not system.steady:
        state = system.initial[system.components.index(StateComponent(field, 0))]
        found.append(values(system, [state], at_start(system.problem, _SAMPLES))[0])
    every = np.concatenate(found) if found else np.empty(0)
    return every[np.isfinite(every)]


def _given_flows(system: FirstOrderSystem, field: str) -> float:
    """Return the largest change of a field over half of the domain that derivatives on the boundary ask for."""
    flows = [
        _size(values(system, [condition.value], points)[0]) / max(_weights(system, condition).values())
        for condition, points in _on_boundary(system, field)
        if condition.factors.get(0, 0) == 0
    ]
    return max(flows, default=0.0)


def _on_boundary(system: FirstOrderSystem, field: str) -> Iterator[tuple[BoundaryCondition, Array]]:
    for condition in system.conditions:
        if system.components[condition.component] == StateComponent(field, 0):
            yield condition, pinn_boundary_points(system.problem, condition.part, *_ON_A_PART)[0]


def _weights(system: FirstOrderSystem, condition: BoundaryCondition) -> dict[int, float]:
    """Return the size of each term of a condition for a field of size 1, by the order of its derivative."""
    points, normals = pinn_boundary_points(system.problem, condition.part, *_ON_A_PART)
    extent = float(np.mean(np.abs(normals) @ half_extents(system)[: len(system.space)]))
    return {
        order: _size(values(system, [factor], points)[0]) / extent**order
        for order, factor in condition.factors.items()
    }
