"""How large fields are, which errors are relative to: fields of one problem may differ by many orders of magnitude."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import sympy

from sharp.problems import ExpressionProgram, Problem, compile_expressions
from sharp.solvers.grid import Array
from sharp.solvers.sample_points import interior_points, lengths, sample_times
from sharp.solvers.system import FirstOrderSystem, UnsupportedProblem, real, system_of

Norm = Literal["L1", "L2"]

# A pressure below this share of what else there is in its equation is measured by that.
_SHARE = 0.1
# So is any field below this one of what its equation and its data would make of it: it cancels, or vanishes.
_LEAST = 1e-6
# Data below this share of the largest field may be rounding themselves, as sin(pi) is.
_ROUNDING = 1e-14
_POINTS, _MOMENTS = 60, (0.0, 0.03, 0.31, 0.77)


def relative_distance(
    problem: Problem, values: Array, reference: Array, norm: Norm = "L2", least: Array | float = 0.0
) -> float:
    """Return the largest relative distance of any field [fields, …]; infinite where a value is not finite.

    Each field is measured by its own size (`measured`), `least` [fields] at least.
    """
    if not (np.all(np.isfinite(values)) and np.all(np.isfinite(reference))):
        return float("inf")
    scales = np.maximum(sizes(problem, reference, norm), least)
    return float(np.max(_norms(values - reference, norm) / scales))


def largest_error(problem: Problem, values: Array, exact: Array) -> float:
    """Return the largest error of any field [fields, k, m] relative to its largest value."""
    largest = np.max(np.abs(exact), axis=(1, 2))
    return float(np.max(np.max(np.abs(values - exact), axis=(1, 2)) / measured(problem, largest)))


def sizes(problem: Problem, values: Array, norm: Norm = "L2") -> Array:
    """Return the root mean square of each field [fields], or what it is measured by where it is far smaller."""
    return measured(problem, _norms(values, norm))


def _norms(values: Array, norm: Norm) -> Array:
    """Return the mean [fields] of absolute values, or the root of that of squares."""
    axes = tuple(range(1, values.ndim))
    if norm == "L1":
        return np.asarray(np.mean(np.abs(values), axis=axes))
    return np.asarray(np.sqrt(np.mean(values**2, axis=axes)))


def measured(problem: Problem, own: Array) -> Array:
    """Return what errors of the fields are measured by, from their own sizes [fields].

    A field far below what the terms of its equation, its boundary and its initial values would make of it is measured
    by that: what is left of it is rounding. One of which these say nothing is measured by the largest field.
    """
    largest = float(np.max(own)) or 1.0
    usual = _natural_sizes(problem, own) if len(own) > 1 else np.zeros(1)
    usual = np.where(usual > _ROUNDING * largest, usual, largest)
    return np.where(own > _LEAST * usual, own, usual)


def _natural_sizes(problem: Problem, own: Array) -> Array:
    """Return the size [fields] that equation and data suggest for each field, 0 where they say nothing."""
    balances = _balances(problem)
    if balances is None:
        return np.zeros(len(own))
    with np.errstate(all="ignore"):
        found = [balance(problem, own) for balance in balances.of_fields]
    for group in balances.together:
        for index in group:
            found[index] = max(found[index], *(float(own[other]) for other in group))
    return np.array(found)


@dataclass(frozen=True)
class _Balance:
    """What a field is the answer to: sums that give it, and the factors by which it counts there."""

    system: FirstOrderSystem
    rows: tuple[tuple[ExpressionProgram, int, float], ...]

    def __call__(self, problem: Problem, own: Array) -> float:
        extent = float(np.max(lengths(problem)))
        fields = [problem.fields.index(component.field) for component in self.system.components]
        jets = [own[fields[jet.component]] / extent**jet.order for jet in self.system.jets]
        points, times = interior_points(problem, _POINTS), sample_times(problem, _MOMENTS)[:, None]
        found = [0.0]
        for program, given, weight in self.rows:
            parts = [_largest(value) for value in program(*points.T, times, *jets)]
            factor = max([weight, *parts[given:]])
            found.append(max(parts[:given], default=0.0) / factor if factor > 0 else 0.0)
        return max(found)


def _largest(value: Any) -> float:
    sound = np.abs(np.atleast_1d(value))
    return float(np.max(sound, initial=0.0, where=np.isfinite(sound)))


@dataclass(frozen=True)
class _Balances:
    """The balance of every field, and fields that are components of one vector: a constraint joins them."""

    of_fields: tuple[_Balance, ...]
    together: tuple[tuple[int, ...], ...]


@lru_cache(maxsize=64)
def _balances(problem: Problem) -> _Balances | None:
    try:
        system = system_of(problem)
    except UnsupportedProblem:
        return None
    fields = [problem.fields.index(component.field) for component in system.components]
    together = []
    for index in system.constrained:
        held = {fields[system.jets[j].component] for i, j in system.jacobian if i == index}
        together.append(tuple(sorted(held)))
    found = []
    for field in range(len(problem.fields)):
        components = [index for index, each in enumerate(fields) if each == field]
        found.append(_Balance(system, tuple(_rows(system, components))))
    return _Balances(tuple(found), tuple(together))


def _rows(system: FirstOrderSystem, components: Sequence[int]) -> list[tuple[ExpressionProgram, int, float]]:
    """Return what a field with such components balances: its equation, its boundary values, its initial ones."""
    extent = float(np.max(lengths(system.problem)))
    start, end = system.problem.time or (0.0, np.inf)
    own = [(j, jet) for j, jet in enumerate(system.jets) if jet.component in components]
    symbols = {jet.symbol for _, jet in own}
    found: list[tuple[list[Any], list[Any], float]] = []
    for index in components:
        terms = sympy.Add.make_args(system.rhs[index].expand(deep=False))
        factors = [
            system.jacobian[index, j] / extent**jet.order for j, jet in own if (index, j) in system.jacobian
        ]
        order = system.components[index].order
        rate = (end - start) ** -(order + 1.0)
        if index not in system.constrained:
            found.append(([term for term in terms if not term.free_symbols & symbols], factors, rate))
        if system.initial:
            found.append(([system.initial[index]], [], (end - start) ** -float(order)))
    for condition in system.conditions:
        if condition.component in components:
            factors = [factor / extent**order for order, factor in condition.factors.items()]
            found.append(([condition.value], factors, 0.0))
    known = {real(name) for name in (*system.space, system.time)} | {jet.symbol for jet in system.jets}
    return [
        (compile_expressions([*terms, *factors], system.names), len(terms), weight)
        for terms, factors, weight in found
        if all(sympy.sympify(each).free_symbols <= known for each in (*terms, *factors))
    ]


def usual_sizes(system: FirstOrderSystem, values: Array) -> Array | float:
    """Return the size [fields] below which a pressure is as good as none; zero for other fields.

    It is a tenth of what the other terms of the equation that holds its gradient would balance, from the values
    [fields, k, m] of a solution and the extent of the domain: of viscous stress or of stagnation pressure.
    """
    if not system.constrained:
        return 0.0
    bounds = system.problem.bounds
    extent = max(high - low for low, high in bounds.values())
    spread = np.ptp(values, axis=(1, 2))
    fields = [system.problem.fields.index(component.field) for component in system.components]
    usual = {jet.symbol: spread[fields[jet.component]] / extent**jet.order for jet in system.jets}
    usual |= {real(axis): low + 0.37 * (high - low) for axis, (low, high) in bounds.items()}
    usual[real(system.time)] = system.problem.time[0] if system.problem.time else 0.0
    found = np.zeros(len(spread))
    for index in system.constrained:
        slopes = {jet.symbol for jet in system.jets if jet.component == index}
        for (i, j), factor in system.jacobian.items():
            if system.jets[j].component != index or system.jets[j].order != 1:
                continue
            others = [
                term for term in system.rhs[i].expand(deep=False).args if not term.free_symbols & slopes
            ]
            moved = [term for term in others if any(jet.symbol in term.free_symbols for jet in system.jets)]
            terms = [abs(complex(term.xreplace(usual))) for term in moved]
            size = abs(complex(factor.xreplace(usual)))
            if terms and size and np.isfinite(max(terms)):
                found[fields[index]] = max(found[fields[index]], _SHARE * extent * max(terms) / size)
    return found
