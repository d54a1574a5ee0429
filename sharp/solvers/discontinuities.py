"""Where given functions jump or bend: the arguments of switches change sign, and depend on one coordinate alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from sharp.problems import Problem, compile_expressions
from sharp.solvers.strong_form import JUMPS, StrongForm
from sharp.solvers.system import FirstOrderSystem

# How many equal parts of an interval are searched for a change of sign.
_PARTS = 4096
# How far from an interface its sides are looked at, as a share of the interval, and how nearly equal values are there.
_BESIDE = 1e-9
_EQUAL = 1e-6


def jump_times(system: FirstOrderSystem) -> tuple[float, ...]:
    """Return the times inside the interval of a problem at which its rates or boundary values may not be smooth."""
    if system.problem.time is None:
        return ()
    values = [condition.value for condition in system.conditions]
    return _changes((*system.rhs, *values), system.time, system.problem.time)


@lru_cache(maxsize=64)
def interfaces(problem: Problem) -> tuple[float, ...]:
    """Return the places inside an interval at which equations or initial state may not be smooth.

    None are sought in more than one dimension.
    """
    if len(problem.space) > 1:
        return ()
    axis = problem.space[0]
    return _changes(_given(problem), axis, problem.bounds[axis])


@lru_cache(maxsize=64)
def has_discontinuous_flux_coefficient(problem: Problem) -> bool:
    """Whether a given function jumps inside a space derivative on an interval: a flux is to be continuous there."""
    if len(problem.space) > 1:
        return False
    written, (axis,) = StrongForm.of(problem), problem.space
    equations = [written.equation(index).xreplace(written.numbers) for index in range(len(problem.equations))]
    factors = {
        factor
        for equation in equations
        for derivative in equation.atoms(sympy.Derivative)
        if axis in map(str, derivative.variables)
        for factor in given_parts(derivative.expr)
    }
    return any(np.any(_jumps(problem, factor)) for factor in factors if factor.has(*JUMPS))


def given_parts(expression: Any) -> Iterator[Any]:
    """Yield the largest parts of an expression that hold no field."""
    if expression.has(sympy.core.function.AppliedUndef):
        for part in expression.args:
            yield from given_parts(part)
    elif isinstance(expression, sympy.Expr):
        yield expression


@lru_cache(maxsize=64)
def initial_jumps(problem: Problem) -> tuple[float, ...]:
    """Return the interfaces at which an initial state jumps, ascending."""
    written, places = StrongForm.of(problem), np.array(interfaces(problem))
    given = [
        each.expression for each in problem.specification.initial.values() if each.expression is not None
    ]
    sides = [_jumps(problem, written.expression(text)) for text in given] if places.size else []
    return tuple(places[np.any(sides, axis=0)].tolist()) if sides else ()


def _jumps(problem: Problem, function: Any) -> NDArray[np.bool_]:
    """Return at which interfaces a function has different values on both sides, half-way through the time."""
    low, high = problem.bounds[problem.space[0]]
    sides = np.outer([-1.0, 1.0], _BESIDE * (high - low) * np.ones(len(interfaces(problem))))
    program = compile_expressions([function], [*problem.space, problem.time_name or "time"])
    below, above = np.broadcast_to(program(interfaces(problem) + sides, _middle(problem))[0], sides.shape)
    return np.asarray(np.abs(above - below) > _EQUAL * np.maximum(np.abs(above), np.abs(below)))


def _middle(problem: Problem) -> float:
    return sum(problem.time) / 2 if problem.time else 0.0


def _given(problem: Problem) -> Iterator[Any]:
    """Yield equations and initial states with numbers for parameters."""
    written = StrongForm.of(problem)
    for index in range(len(problem.equations)):
        yield written.equation(index).xreplace(written.numbers)
    for given in problem.specification.initial.values():
        if given.expression is not None:
            yield written.expression(given.expression)


def _changes(expressions: Iterable[Any], name: str, interval: tuple[float, float]) -> tuple[float, ...]:
    """Return where switches in expressions turn that depend on a coordinate alone, ascending, each once."""
    arguments = {
        argument
        for expression in expressions
        for argument in _switches(expression)
        if {symbol.name for symbol in argument.free_symbols} == {name}
        and not argument.has(sympy.core.function.AppliedUndef)
    }
    found = {place for argument in arguments for place in _roots(argument, name, interval)}
    apart = 1e-9 * (interval[1] - interval[0])
    kept: list[float] = []
    for place in sorted(found):
        if not kept or place - kept[-1] > apart:
            kept.append(place)
    return tuple(kept)


def _switches(expression: Any) -> Iterator[Any]:
    """Yield what decides between the branches of piecewise functions, steps and absolute values, as a sign."""
    for part in sympy.preorder_traversal(expression):
        match part:
            case sympy.Abs() | sympy.sign() | sympy.Heaviside():
                yield part.args[0]
            case sympy.Max() | sympy.Min():
                yield from (part.args[0] - other for other in part.args[1:])
            case sympy.Rel():
                yield part.lhs - part.rhs


def _roots(argument: Any, name: str, interval: tuple[float, float]) -> Iterator[float]:
    """Yield where a function of one coordinate changes sign, by sampling and bisection."""
    from scipy.optimize import brentq

    program = compile_expressions([argument], [name])

    def value(place: Any) -> Any:
        return program(place)[0]

    places = np.linspace(*interval, _PARTS + 1)
    with np.errstate(all="ignore"):
        signs = np.sign(value(places))
        yield from map(float, places[1:-1][signs[1:-1] == 0])
        for index in np.flatnonzero(signs[:-1] * signs[1:] < 0):
            precise = 1e-15 * abs(interval[1] - interval[0])
            yield float(brentq(value, places[index], places[index + 1], xtol=precise))
