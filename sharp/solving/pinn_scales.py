"""How large fields, equations and conditions are, by the data alone: a network is trained on numbers near 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import sympy
from numpy.typing import NDArray

from sharp.problems.programs import compile_expressions
from sharp.solving.pinn_points import (
    at_start,
    coordinates,
    derivative_of,
    equation_rows,
    field_of,
    halves,
    on_part,
    order_in_time,
    places,
    values,
)
from sharp.solving.system import Component, Condition, SpaceJet, System

Array = NDArray[np.float64]

_SAMPLES = 200
_ON_A_PART = (12, 9)


@dataclass(frozen=True)
class Scale:
    """The values that a field has about: its mean level, and how far it departs from that."""

    level: float
    size: float


def field_scales(system: System) -> tuple[Scale, ...]:
    """Return the scale of each field, from initial and boundary values, and from what the sources alone would cause."""
    caused = _caused(system)
    found = []
    for name, source in zip(system.problem.fields, caused, strict=True):
        given, flows = _given_values(system, name), _given_flows(system, name)
        spread = float(np.std(given)) if given.size else 0.0
        found.append((float(np.mean(given)) if given.size else 0.0, max(spread, flows, source)))
    largest = max(size for _, size in found) or max(abs(level) for level, _ in found) or 1.0
    return tuple(Scale(level, size or largest) for level, size in found)


def equation_scales(system: System, scales: Sequence[Scale]) -> Array:
    """Return the size of the largest term of each equation of a field [fields]."""
    sizes = np.array([scale.size for scale in scales])
    terms = _terms(system, sizes + [scale.level for scale in scales], sizes)
    found = []
    for number, row in enumerate(equation_rows(system)):
        field = system.problem.fields[number]
        parts = [terms.source[row], *(terms.factors[row] * terms.units * sizes[terms.fields])]
        found.append(max(*parts, sizes[number] * _per_time(system, field)) or 1.0)
    return np.array(found)


def condition_scale(system: System, condition: Condition, scale: Scale) -> float:
    """Return the size of the largest term of a boundary condition of a field."""
    return scale.size * max(_weights(system, condition).values())


@dataclass(frozen=True)
class _Terms:
    """The size of sources [rates], of factors of jets [rates, jets], of jets per unit of their fields [jets]."""

    source: Array
    factors: Array
    units: Array
    fields: NDArray[np.intp]


def _terms(system: System, about: Array, changes: Array) -> _Terms:
    """Return the sizes of all terms of the rates, linearised about values and changes of the fields [fields]."""
    points = places(system.problem, _SAMPLES)
    late = [0.0] if system.steady else []
    fields = np.array([field_of(system, jet.component) for jet in system.jets], dtype=np.intp)
    units = np.array([_unit(system, jet) for jet in system.jets])
    jets = [
        np.full(_SAMPLES, about[field] if _is_value(system, jet) else changes[field] * unit)
        for field, jet, unit in zip(fields, system.jets, units, strict=True)
    ]
    partial = [
        system.jacobian.get((i, j), sympy.Integer(0))
        for i in range(len(system.rates))
        for j in range(len(system.jets))
    ]
    program = compile_expressions([*system.rates, *partial], system.names)
    with np.errstate(all="ignore"):
        source = program(*points.T, *late, *(0.0 * jet for jet in jets))[: len(system.rates)]
        factors = program(*points.T, *late, *jets)[len(system.rates) :]
    shape = (len(system.rates), len(system.jets))
    return _Terms(
        np.array([_size(each) for each in source]),
        np.array([_size(each) for each in factors]).reshape(shape),
        units,
        fields,
    )


def _caused(system: System) -> Array:
    """Return how large the sources alone would make each field: they are balanced by some term of its equation."""
    nothing = np.zeros(len(system.problem.fields))
    terms = _terms(system, nothing, nothing)
    found = []
    for number, row in enumerate(equation_rows(system)):
        own = terms.factors[row] * terms.units * (terms.fields == number)
        balance = float(np.sum(own)) + _per_time(system, system.problem.fields[number])
        found.append(terms.source[row] / balance if balance else 0.0)
    return np.array(found)


def _is_value(system: System, jet: SpaceJet) -> bool:
    return jet.order == 0 and system.components[jet.component].order == 0


def _unit(system: System, jet: SpaceJet) -> float:
    """Return the size of a jet of a field of size 1 that changes over half of the domain and of the time."""
    return float(np.prod(halves(system) ** -np.array(derivative_of(system, jet), dtype=float)))


def _per_time(system: System, field: str) -> float:
    return 0.0 if system.steady else float(halves(system)[-1] ** -order_in_time(system, field))


def _size(value: Array | float) -> float:
    """Return the root mean square of the values that are finite."""
    found = np.atleast_1d(np.asarray(value, dtype=float))
    finite = found[np.isfinite(found)]
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0


def _given_values(system: System, field: str) -> Array:
    """Return what is known of the values of a field: initially, and on the boundary."""
    found = [
        values([condition.value / condition.factors[0]], coordinates(system), points)[0]
        for condition, points in _on_boundary(system, field)
        if condition.factors.get(0, 0) != 0
    ]
    if not system.steady:
        state = system.initial[system.components.index(Component(field, 0))]
        found.append(values([state], coordinates(system), at_start(system.problem, _SAMPLES))[0])
    every = np.concatenate(found) if found else np.empty(0)
    return every[np.isfinite(every)]


def _given_flows(system: System, field: str) -> float:
    """Return the largest change of a field over half of the domain that derivatives on the boundary ask for."""
    return max(
        (
            _size(values([condition.value], coordinates(system), points)[0])
            / max(_weights(system, condition).values())
            for condition, points in _on_boundary(system, field)
            if condition.factors.get(0, 0) == 0
        ),
        default=0.0,
    )


def _on_boundary(system: System, field: str) -> Iterator[tuple[Condition, Array]]:
    for condition in system.conditions:
        if system.components[condition.component] == Component(field, 0):
            yield condition, on_part(system.problem, condition.part, *_ON_A_PART)[0]


def _weights(system: System, condition: Condition) -> dict[int, float]:
    """Return the size of each term of a condition for a field of size 1, by the order of its derivative."""
    points, normals = on_part(system.problem, condition.part, *_ON_A_PART)
    extent = float(np.mean(np.abs(normals) @ halves(system)[: len(system.space)]))
    return {
        order: _size(values([factor], coordinates(system), points)[0]) / extent**order
        for order, factor in condition.factors.items()
    }
