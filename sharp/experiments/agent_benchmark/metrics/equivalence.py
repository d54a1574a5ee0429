"""Are two texts of the expression grammar the same expression, or the same equation?

Both are evaluated at random points with a fixed seed; what agrees at all of them is the same with a probability next to
one (Schwartz, Journal of the ACM 27, 1980, for polynomials). Fields and each of their derivatives are drawn over many
orders of magnitude and of both signs, so that every term of an equation, however small its coefficient, dominates at
some points. Points where one of the two has no value are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from sharp.experiments.agent_benchmark.metrics.derivatives import Calculus, as_variables
from sharp.problems import Binary, Negative, Node, Scope, names_in, parse_equation_tree, parse_tree, value_of

DRAWS = 4
"""Draws of the constants; within a draw an equation may differ by a factor."""
POINTS = 16
"""Points of each draw."""
LEAST_POINTS = 8
"""Points at which both have to have a value, over all draws."""
TOLERANCE = 1e-6
"""Relative difference that is none: coefficients are often written with seven digits or more."""

# Chains are compared in all numberings of repeated uses, and so the same pairs of texts again and again.
_REMEMBERED = 4096
_SEED = 20251218
_FIELD_DECADES, _DERIVATIVE_DECADES = 3, 9
_NOISE = 1e-12  # of the largest value, or beside zero: what rounding leaves of a zero, as of sin(pi)


@dataclass(frozen=True, eq=False)
class Symbols:
    """What may occur in the expressions of a case; one is like itself alone.

    `constants` are parameters with their values, None where any value may be meant. `coordinates` have the range in
    which they are drawn: that of the domain, so that pieces of a function within it count. `time` is the coordinate
    that is not space. `fields` depend on all coordinates, as do functions that are given as data.
    """

    constants: Mapping[str, float | None] = field(default_factory=dict)
    coordinates: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    time: str | None = None

    @cached_property
    def scope(self) -> Scope:
        """All names, for the grammar."""
        return Scope.of(self.constants, self.fields, tuple(self.coordinates))

    @cached_property
    def calculus(self) -> Calculus:
        """Differentiation of the fields."""
        return Calculus(self.fields, [name for name in self.coordinates if name != self.time])


@lru_cache(_REMEMBERED)
def same_expression(first: str, second: str, symbols: Symbols) -> bool:
    """Return whether two expressions agree at random points, up to a relative difference of their largest terms.

    Raises `SpecificationError` for a text that is not of the grammar, or too large to differentiate.
    """
    sides = [symbols.calculus.carried_out(parse_tree(text, symbols.scope)) for text in (first, second)]
    pairs = [pair for draw in _values(sides[0], sides[1], symbols) for pair in draw]
    largest = (max(abs(each.value) for each in values) for values in zip(*pairs, strict=True))
    noise = _NOISE * (min(largest, default=0.0) or 1.0)
    return len(pairs) >= LEAST_POINTS and all(
        abs(one.value - other.value) <= max(noise, TOLERANCE * max(one.size, other.size))
        for one, other in pairs
    )


@lru_cache(_REMEMBERED)
def same_equation(first: str, second: str, symbols: Symbols) -> bool:
    """Return whether two equations say the same: one residual is the other times a constant that is not zero.

    The constant may be made of parameters, as in `rho*c*u_t = k*u_xx` and `u_t = k/(rho*c)*u_xx`. Raises
    `SpecificationError` like `same_expression`.
    """
    one, other = (_residual(text, symbols) for text in (first, second))
    draws = [
        [pair for pair in draw if any(each.value for each in pair)] for draw in _values(one, other, symbols)
    ]
    enough = sum(map(len, draws)) >= LEAST_POINTS
    return enough and all(_proportional(draw) for draw in draws)


def _residual(text: str, symbols: Symbols) -> Node:
    equation = parse_equation_tree(text, symbols.scope)
    return symbols.calculus.carried_out(Binary("-", equation.left, equation.right))


@dataclass(frozen=True)
class _Sum:
    """The value of a sum, and the sum of the sizes of its terms, which tells what rounding can do to it."""

    value: float
    size: float


def _proportional(pairs: list[tuple[_Sum, _Sum]]) -> bool:
    """Return whether all pairs have the ratio of that one whose terms cancel least."""
    if not pairs:
        return True
    one, other = max(pairs, key=lambda pair: min(abs(each.value) / (each.size or 1.0) for each in pair))
    if one.value == 0 or other.value == 0:
        return False
    ratio = one.value / other.value
    return all(
        abs(a.value - ratio * b.value) <= TOLERANCE * max(a.size, abs(ratio) * b.size) for a, b in pairs
    )


def _values(first: Node, second: Node, symbols: Symbols) -> Iterator[list[tuple[_Sum, _Sum]]]:
    """Yield for each draw of the constants the values of both at all points where both have one."""
    one, other = as_variables(first), as_variables(second)
    for points in _points(names_in(one) | names_in(other), symbols):
        pairs = ((_evaluated(one, point), _evaluated(other, point)) for point in points)
        yield [(a, b) for a, b in pairs if a is not None and b is not None]


def _evaluated(node: Node, point: Mapping[str, float]) -> _Sum | None:
    try:
        terms = [value_of(term, point) for term in _terms(node)]
    except (ArithmeticError, ValueError):
        return None
    total, size = math.fsum(terms), math.fsum(map(abs, terms))
    return _Sum(total, size) if math.isfinite(size) else None


def _terms(node: Node) -> Iterator[Node]:
    """Yield the terms of a sum."""
    match node:
        case Binary("+", left, right):
            yield from _terms(left)
            yield from _terms(right)
        case Binary("-", left, right):
            yield from _terms(left)
            yield from map(Negative, _terms(right))
        case Negative(of):
            yield from map(Negative, _terms(of)) if isinstance(of, (Binary, Negative)) else (node,)
        case _:
            yield node


def _points(names: set[str], symbols: Symbols) -> Iterator[list[dict[str, float]]]:
    generator = np.random.default_rng(_SEED)
    for _ in range(DRAWS):
        constants = {
            name: 10 ** generator.uniform(-0.5, 0.5) if value is None else value
            for name, value in symbols.constants.items()
        }
        varying = sorted(names - constants.keys())
        yield [
            {**constants, **{name: _drawn(name, symbols, generator) for name in varying}}
            for _ in range(POINTS)
        ]


def _drawn(name: str, symbols: Symbols, generator: np.random.Generator) -> float:
    if name in symbols.coordinates:
        return float(generator.uniform(*symbols.coordinates[name]))
    decades = _FIELD_DECADES if name in symbols.fields else _DERIVATIVE_DECADES
    return float(generator.choice([-1.0, 1.0]) * 10 ** generator.uniform(-decades, decades))
