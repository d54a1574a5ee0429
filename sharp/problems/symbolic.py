"""Expression trees as sympy expressions of the same structure.

Nothing is evaluated on the way: sympy would otherwise turn short hostile texts into endless computations
(`exp(10**40*log(9*x))` is `9**10**40*x**10**40` to it). `.doit()` evaluates where the text is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import sympy

from sharp.problems.expressions import (
    Apply,
    Binary,
    Derivative,
    Equation,
    Name,
    Negative,
    Node,
    Number,
)

_CONSTANTS = {"pi": sympy.pi, "E": sympy.E}
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: _joined(sympy.Add, a, b),
    "-": lambda a, b: _joined(sympy.Add, a, _joined(sympy.Mul, sympy.Integer(-1), b)),
    "*": lambda a, b: _joined(sympy.Mul, a, b),
    "/": lambda a, b: _joined(sympy.Mul, a, sympy.Pow(b, sympy.Integer(-1), evaluate=False)),
    "**": lambda a, b: sympy.Pow(a, b, evaluate=False),
    "<": lambda a, b: sympy.Lt(a, b, evaluate=False),
    "<=": lambda a, b: sympy.Le(a, b, evaluate=False),
    ">": lambda a, b: sympy.Gt(a, b, evaluate=False),
    ">=": lambda a, b: sympy.Ge(a, b, evaluate=False),
    "and": lambda a, b: sympy.And(a, b, evaluate=False),
    "or": lambda a, b: sympy.Or(a, b, evaluate=False),
}
_CLASSES: Mapping[str, Any] = {
    **{name: getattr(sympy, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2")},
    **{name: getattr(sympy, name) for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")},
    **{name: getattr(sympy, name) for name in ("exp", "log", "erf", "erfc", "sign", "Heaviside")},
    "abs": sympy.Abs,
    "min": sympy.Min,
    "max": sympy.Max,
}


def to_sympy(
    tree: Node, names: Mapping[str, Any] | None = None, space: Sequence[str] = (), radial_power: int = 0
) -> Any:
    """Return the sympy expression of a tree: names become plain symbols unless `names` says otherwise.

    `grad`, `div` and `lap` run over the coordinates `space`, of which the first is Cartesian, or a distance r from an
    axis (`radial_power` 1) or a centre (2); a vector is a tuple of expressions.
    """
    return _Builder(names or {}, tuple(space), radial_power).build(tree)


def equation_to_sympy(
    equation: Equation, fields: Sequence[str], space: Sequence[str], time: str | None, radial_power: int = 0
) -> sympy.Eq:
    """Return `Eq(left, right)`, where fields are functions of space and time, as in `u(x, t)`."""
    coordinates = [sympy.Symbol(name) for name in (*space, *([time] if time else []))]
    names = {name: sympy.Function(name)(*coordinates) for name in fields}
    left, right = (to_sympy(side, names, space, radial_power) for side in (equation.left, equation.right))
    return sympy.Eq(left, right, evaluate=False)


class _Builder:
    def __init__(self, names: Mapping[str, Any], space: tuple[str, ...], radial_power: int) -> None:
        self.names = names
        self.space = space
        self.power = sympy.Integer(radial_power)

    def build(self, node: Node) -> Any:
        match node:
            case Number(value):
                return sympy.Integer(value) if isinstance(value, int) else sympy.Float(value)
            case Name(name):
                return self.names.get(name) or _CONSTANTS.get(name) or sympy.Symbol(name)
            case Negative(of):
                return _each(lambda part: _joined(sympy.Mul, sympy.Integer(-1), part), self.build(of))
            case Binary(op, left, right):
                return self.binary(op, self.build(left), self.build(right))
            case Derivative(of, by):
                return _derivative(self.build(of), *by)
            case Apply(function, arguments):
                return self.apply(function, [self.build(argument) for argument in arguments])

    def binary(self, op: str, left: Any, right: Any) -> Any:
        if isinstance(left, tuple) and isinstance(right, tuple):
            return tuple(_OPERATORS[op](a, b) for a, b in zip(left, right, strict=True))
        if isinstance(right, tuple):
            return _each(lambda part: _OPERATORS[op](left, part), right)
        return _each(lambda part: _OPERATORS[op](part, right), left)

    def apply(self, function: str, arguments: list[Any]) -> Any:
        first = arguments[0]
        match function:
            case "grad":
                return tuple(_derivative(first, name) for name in self.space)
            case "div":
                return reduce(_OPERATORS["+"], self._divergence(first))
            case "lap":
                return reduce(_OPERATORS["+"], self._laplacian(first))
            case "piecewise":
                *cases, otherwise = arguments
                pairs = [*zip(cases[::2], cases[1::2], strict=True), (otherwise, sympy.true)]
                return sympy.Piecewise(*pairs, evaluate=False)
            case "sqrt":
                return sympy.Pow(first, sympy.Rational(1, 2), evaluate=False)
            case "J0" | "J1":
                return sympy.besselj(int(function[1]), first, evaluate=False)
            case "min" | "max" if len(arguments) == 1:
                return first
            case _:
                return _CLASSES[function](*arguments, evaluate=False)

    def _divergence(self, vector: Any) -> Iterator[Any]:
        """Yield the terms of a divergence: that along r is (r**m F)_r / r**m."""
        along, *others = vector
        if self.power == 0:
            yield _derivative(along, self.space[0])
        else:
            volume = sympy.Pow(sympy.Symbol(self.space[0]), self.power)
            yield _OPERATORS["/"](_derivative(_OPERATORS["*"](volume, along), self.space[0]), volume)
        yield from map(_derivative, others, self.space[1:])

    def _laplacian(self, expression: Any) -> Iterator[Any]:
        """Yield the terms of a Laplacian: those along r are u_rr + m u_r / r."""
        yield from (_derivative(expression, name, name) for name in self.space)
        if self.power != 0:
            slope = _OPERATORS["*"](self.power, _derivative(expression, self.space[0]))
            yield _OPERATORS["/"](slope, sympy.Symbol(self.space[0]))


def _each(change: Callable[[Any], Any], value: Any) -> Any:
    """Change an expression, or every component of a vector."""
    return tuple(map(change, value)) if isinstance(value, tuple) else change(value)


def _joined(operation: Any, left: Any, right: Any) -> Any:
    """Join two operands, the left one's being taken up: long sums and products stay flat.

    A product with the number 0 is that number: now and then sympy contradicts itself over one that is not evaluated.
    """
    if operation is sympy.Mul and right.is_Integer and right == 0:
        return right
    terms = left.args if isinstance(left, operation) else (left,)
    return operation(*terms, right, evaluate=False)


def _derivative(expression: Any, *by: str) -> Any:
    return sympy.Derivative(expression, *(sympy.Symbol(name) for name in by), evaluate=False)
