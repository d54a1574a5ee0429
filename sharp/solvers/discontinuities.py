"""Where given functions jump or bend: the arguments of switches change sign, and depend on one coordinate alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from sharp.problems import BoxDomain, PolygonDomain, Problem, compile_expressions
from sharp.solvers.strong_form import JUMPS, StrongForm
from sharp.solvers.system import FirstOrderSystem

# How many equal parts of an interval are searched for a change of sign.
_PARTS = 4096
# How far from an interface its sides are looked at, as a share of the interval, and how nearly equal values are there.
_BESIDE = 1e-9
_EQUAL = 1e-6
# In more dimensions interfaces are sought between so many pairs of places, and the way there is halved so often.
_PAIRS, _HALVINGS = 400, 40


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
    """Whether a given function jumps inside a space derivative: a flux is to be continuous there."""
    jumps = _jumps if len(problem.space) == 1 else _jumps_between
    return any(np.any(jumps(problem, factor)) for factor in _flux_factors(problem))


def _flux_factors(problem: Problem) -> set[Any]:
    """Return the given functions inside space derivatives that are written with jumps."""
    written = StrongForm.of(problem)
    equations = [written.equation(index).xreplace(written.numbers) for index in range(len(problem.equations))]
    return {
        factor
        for equation in equations
        for derivative in equation.atoms(sympy.Derivative)
        if {*map(str, derivative.variables)} & {*problem.space}
        for factor in given_parts(derivative.expr)
        if factor.has(*JUMPS)
    }


@dataclass(frozen=True)
class StraightLine:
    """The points x of the plane with normal · x = offset."""

    normal: tuple[float, float]
    offset: float


@lru_cache(maxsize=64)
def jump_lines(problem: Problem) -> tuple[StraightLine, ...]:
    """Return the straight lines of the plane along which equations may not be smooth."""
    if len(problem.space) != 2:
        return ()
    written = StrongForm.of(problem)
    equations = [written.equation(index).xreplace(written.numbers) for index in range(len(problem.equations))]
    arguments = {part for equation in equations for part in _switches(equation)}
    found = [line for part in arguments for line in _lines_of(problem, part) or ()]
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=64)
def has_curved_flux_jumps(problem: Problem) -> bool:
    """Whether a coefficient of a flux jumps where no edges of elements can lie: not along straight lines of a plane."""
    if len(problem.space) < 2:
        return False
    arguments = [part for factor in _flux_factors(problem) for part in _switches(factor)]
    straight = isinstance(problem.domain, BoxDomain | PolygonDomain) and len(problem.space) == 2
    return any(not straight or _lines_of(problem, part) is None for part in arguments)


def _lines_of(problem: Problem, argument: Any) -> tuple[StraightLine, ...] | None:
    """Return the straight lines on which the argument of a switch vanishes, or None where others may be."""
    found: list[StraightLine] = []
    for signed in _without_abs(argument):
        for factor in sympy.Mul.make_args(sympy.factor_terms(signed)):
            lines = _zero_lines(problem, factor)
            if lines is None:
                return None
            found += lines
    return tuple(found)


def _without_abs(argument: Any) -> Iterator[Any]:
    """Yield an argument with each absolute value replaced by what is in it, and by the opposite."""
    sizes = sorted(argument.atoms(sympy.Abs), key=str)
    for signs in product((1, -1), repeat=len(sizes)):
        yield argument.xreplace({part: sign * part.args[0] for part, sign in zip(sizes, signs, strict=True)})


def _zero_lines(problem: Problem, factor: Any) -> list[StraightLine] | None:
    names = {symbol.name: symbol for symbol in factor.free_symbols}
    if not names:
        return []
    if not names.keys() <= {*problem.space} or factor.has(sympy.core.function.AppliedUndef):
        return None
    if len(names) == 1:
        (name,) = names
        along = (1.0, 0.0) if name == problem.space[0] else (0.0, 1.0)
        return [StraightLine(along, place) for place in _roots(factor, name, problem.bounds[name])]
    slopes = [sympy.diff(factor, names[name]) for name in problem.space]
    if any(slope.free_symbols for slope in slopes):
        return None
    a, b = map(float, slopes)
    size = float(np.hypot(a, b))
    level = float(factor.xreplace(dict.fromkeys(names.values(), sympy.Integer(0))))
    return [StraightLine((a / size, b / size), -level / size)]


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


def _jumps_between(problem: Problem, function: Any) -> NDArray[np.bool_]:
    """Return where a function jumps half-way between places at which its switches stand differently."""
    names = [*problem.space, problem.time_name or "time"]
    low, high = np.transpose([problem.bounds[axis] for axis in problem.space])
    places = np.random.default_rng(0).uniform(low, high, (2 * _PAIRS, len(low)))
    sides, found = compile_expressions([function], names), [np.zeros(0, dtype=bool)]
    for argument in set(_switches(function)):
        sign = compile_expressions([argument], names)
        first, last = places[:_PAIRS].T, places[_PAIRS:].T
        with np.errstate(all="ignore"):
            start = np.sign(sign(*first, _middle(problem))[0])
            apart = start * np.sign(sign(*last, _middle(problem))[0]) < 0
            start, first, last = (
                each[..., apart] for each in (np.broadcast_to(start, apart.shape), first, last)
            )
            for _ in range(_HALVINGS):
                middle = (first + last) / 2
                before = np.sign(sign(*middle, _middle(problem))[0]) == start
                first, last = np.where(before, middle, first), np.where(before, last, middle)
            below, above = (
                sides(*each, _middle(problem))[0] * np.ones(first.shape[1]) for each in (first, last)
            )
            found.append(np.abs(above - below) > _EQUAL * np.maximum(np.abs(above), np.abs(below)))
    return np.concatenate(found)


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
