"""Expression trees printed as NumPy code, with derivatives as calls of a function of the program."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass

from sharp.problems.expressions import (
    ATOM,
    COMPARISONS,
    PRECEDENCE,
    SIGN,
    Apply,
    Binary,
    Derivative,
    Name,
    Negative,
    Node,
    Number,
    precedence,
    walk,
)

_CONSTANTS = {"pi": "np.pi", "E": "np.e"}
_FUNCTIONS = {
    **{
        name: f"np.{name}"
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "abs", "sign")
    },
    **{name: f"np.arc{name[1:]}" for name in ("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")},
    "erf": "special.erf",
    "erfc": "special.erfc",
    "J0": "special.j0",
    "J1": "special.j1",
}
_EXTREMES = {"min": "np.minimum", "max": "np.maximum"}
_LOGIC = {"and": "&", "or": "|"}


class CodegenError(Exception):
    """An expression has a part that programs of this kind do not know."""


@dataclass(frozen=True)
class Printer:
    """Prints trees. `names` says what names become (an atom each), `axes` numbers the space coordinates.

    `time` is the time coordinate; a derivative by it can only be that of a field, and becomes the name `rates` gives.
    """

    names: Mapping[str, str]
    axes: Mapping[str, int]
    time: str | None = None
    rates: Mapping[str, str] | None = None

    def code(self, node: Node, along: str = "") -> str:
        """Return the code of a tree; within a divergence, `grad` is the derivative `along` an axis.

        Raises `CodegenError` for time derivatives without a name and for vectors outside a divergence.
        """
        match node:
            case Number(value):
                return repr(value)
            case Name(name):
                return _CONSTANTS.get(name) or self.names[name]
            case Negative(of):
                return f"-{self._enclosed(of, SIGN + 1, along)}"
            case Binary():
                return self._binary(node, along)
            case Derivative(of, by):
                return self._derivative(of, by, along)
            case Apply(function, arguments):
                return self._applied(function, arguments, along)

    def _enclosed(self, node: Node, level: int, along: str) -> str:
        text = self.code(node, along)
        return text if precedence(node) >= level else f"({text})"

    def _binary(self, node: Binary, along: str) -> str:
        op, left, right = node.op, node.left, node.right
        level = PRECEDENCE[op]
        if op in _LOGIC:
            return f"({self.code(left, along)}) {_LOGIC[op]} ({self.code(right, along)})"
        if op == "**":
            return f"{self._enclosed(left, ATOM, along)}**{self._enclosed(right, level, along)}"
        if op in "*/":
            return f"{self._enclosed(left, level, along)} {op} {self._enclosed(right, SIGN + 1, along)}"
        low = level + (op in COMPARISONS)
        return f"{self._enclosed(left, low, along)} {op} {self._enclosed(right, level + 1, along)}"

    def _derivative(self, of: Node, by: tuple[str, ...], along: str) -> str:
        space = tuple(axis for axis in by if axis != self.time)
        if len(space) == len(by):
            return self._differentiated(self.code(of, along), space)
        rate = (self.rates or {}).get(of.name) if isinstance(of, Name) else None
        if rate is None or len(by) - len(space) > 1:
            raise CodegenError("a time derivative within the rates")
        return self._differentiated(rate, space)

    def _differentiated(self, inner: str, axes: tuple[str, ...]) -> str:
        return f"diff({', '.join([inner, *(str(self.axes[axis]) for axis in axes)])})" if axes else inner

    def _applied(self, function: str, arguments: tuple[Node, ...], along: str) -> str:
        if function in ("lap", "div", "grad"):
            return self._operator(function, arguments[0], along)
        parts = [self.code(argument, along) for argument in arguments]
        if function == "piecewise":
            return _piecewise(parts)
        if function in _EXTREMES:
            return _nested(_EXTREMES[function], parts)
        if function == "Heaviside":
            return f"np.heaviside({parts[0]}, 0.5)"
        return f"{_FUNCTIONS[function]}({', '.join(parts)})"

    def _operator(self, function: str, argument: Node, along: str) -> str:
        if function == "grad":
            if not along:
                raise CodegenError("a gradient outside a divergence")
            return self._differentiated(self.code(argument, along), (along,))
        if function == "lap":
            inner = self.code(argument, along)
            return _sum([self._differentiated(inner, (axis, axis)) for axis in self.axes])
        return _sum([self._differentiated(self.code(argument, axis), (axis,)) for axis in self.axes])


def _sum(terms: list[str]) -> str:
    return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"


def _piecewise(parts: list[str]) -> str:
    *cases, text = parts
    for value, condition in reversed(list(zip(cases[::2], cases[1::2], strict=True))):
        text = f"np.where({condition}, {value}, {text})"
    return text


def _nested(function: str, parts: list[str]) -> str:
    first, *others = parts
    for other in others:
        first = f"{function}({first}, {other})"
    return first


def free_names(names: list[str], taken: frozenset[str]) -> dict[str, str]:
    """Return names of the program for those of a problem: the same, with `_` behind one that is taken or a keyword."""
    return {name: f"{name}_" if name in taken or keyword.iskeyword(name) else name for name in names}


def isolated(left: Node, right: Node, highest: Derivative) -> Node:
    """Return what a derivative equals by `left = right`, where it is a term of the left side, alone or with a factor.

    Raises `CodegenError` where it is anywhere else.
    """
    own = [(sign, term) for sign, term in _terms(left) if highest in walk(term)]
    if len(own) != 1 or highest in walk(right):
        raise CodegenError("the rate is not a term of the left side alone")
    sign, term = own[0]
    result = right
    for other_sign, other in _terms(left):
        if other is not term:
            result = Binary("-" if other_sign > 0 else "+", result, other)
    if sign < 0:
        result = Negative(result)
    return result if term == highest else Binary("/", result, _factor(term, highest))


def _terms(node: Node, sign: int = 1) -> list[tuple[int, Node]]:
    match node:
        case Binary("+", left, right):
            return [*_terms(left, sign), *_terms(right, sign)]
        case Binary("-", left, right):
            return [*_terms(left, sign), *_terms(right, -sign)]
        case Negative(of):
            return _terms(of, -sign)
        case _:
            return [(sign, node)]


def _factor(term: Node, highest: Derivative) -> Node:
    match term:
        case Binary("*", left, right) if right == highest and highest not in walk(left):
            return left
        case _:
            raise CodegenError("the rate is not a product of a factor and the time derivative")
