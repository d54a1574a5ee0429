"""Expression trees: what the grammar reads, printed back as text and evaluated with plain floats.

A tree holds numbers, names, derivatives, function calls and operators, nothing that could run code.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True, slots=True)
class Number:
    """A literal, never negative."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Name:
    """A parameter, coordinate, field, coefficient, or one of the constants."""

    name: str


@dataclass(frozen=True, slots=True)
class Negative:
    """The operand with its sign changed."""

    of: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic, a comparison, or `and` and `or` between two conditions."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Apply:
    """A function or one of the differential operators `lap`, `grad`, `div` applied to its arguments."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Derivative:
    """Partial derivative of an expression, once for each coordinate in `by`."""

    of: Node
    by: tuple[str, ...]


Node = Number | Name | Negative | Binary | Apply | Derivative


@dataclass(frozen=True, slots=True)
class Equation:
    """`left = right`."""

    left: Node
    right: Node


CONSTANTS: Mapping[str, float] = {"pi": math.pi, "E": math.e}
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
}


def _bessel(order: int, x: float) -> float:
    from scipy.special import jv

    return float(jv(order, x))


FUNCTIONS: Mapping[str, Callable[..., float]] = {
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2")},
    **{name: getattr(math, name) for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")},
    **{name: getattr(math, name) for name in ("exp", "log", "sqrt", "erf", "erfc")},
    "abs": abs,
    "sign": lambda x: 0.0 if x == 0 else math.copysign(1.0, x),
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
    "Heaviside": lambda x: 0.5 if x == 0 else float(x > 0),
    "J0": partial(_bessel, 0),
    "J1": partial(_bessel, 1),
}

# How tightly operators bind. A sign binds less tightly than a power; names and calls bind tightest.
PRECEDENCE: Mapping[str, int] = {
    "or": 1,
    "and": 2,
    **dict.fromkeys(COMPARISONS, 3),
    **dict.fromkeys("+-", 4),
    **dict.fromkeys("*/", 5),
    "**": 7,
}
SIGN, ATOM = 6, 8


def children(node: Node | Equation) -> tuple[Node, ...]:
    """Return the operands of a node, or the sides of an equation."""
    match node:
        case Negative(of) | Derivative(of, _):
            return (of,)
        case Binary(_, left, right) | Equation(left, right):
            return (left, right)
        case Apply(_, arguments):
            return arguments
        case _:
            return ()


def with_operands(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a node of the same kind with each of its operands changed."""
    match node:
        case Negative(of):
            return Negative(change(of))
        case Binary(op, left, right):
            return Binary(op, change(left), change(right))
        case Apply(function, arguments):
            return Apply(function, tuple(map(change, arguments)))
        case Derivative(of, by):
            return Derivative(change(of), by)
        case _:
            return node


def walk(node: Node | Equation) -> Iterator[Node]:
    """Yield a node and everything below it, parents first; of an equation what is below it."""
    if not isinstance(node, Equation):
        yield node
    for child in children(node):
        yield from walk(child)


def replaced(node: Node, other: Callable[[Node], Node | None]) -> Node:
    """Return a tree in which every part that `other` knows a substitute for is that substitute."""
    return other(node) or with_operands(node, lambda part: replaced(part, other))


def names_in(node: Node | Equation) -> set[str]:
    """Return all names of an expression or equation but the constants'."""
    return {part.name for part in walk(node) if isinstance(part, Name)} - CONSTANTS.keys()


def to_text(node: Node | Equation) -> str:
    """Return grammar text that parses to an equal tree, with no needless parentheses."""
    match node:
        case Equation(left, right):
            return f"{to_text(left)} = {to_text(right)}"
        case Number(value):
            return repr(value)
        case Name(name):
            return name
        case Negative(of):
            return f"-{_enclosed(of, SIGN + 1)}"
        case Binary():
            return _binary_text(node)
        case Apply(function, arguments):
            return f"{function}({', '.join(map(to_text, arguments))})"
        case Derivative():
            return _derivative_text(node)


def _binary_text(node: Binary) -> str:
    level = PRECEDENCE[node.op]
    if node.op == "**":
        return f"{_enclosed(node.left, ATOM)}**{_enclosed(node.right, level)}"
    if node.op in "*/":
        return f"{_enclosed(node.left, level)}{node.op}{_enclosed(node.right, SIGN + 1)}"
    left = level + 1 if node.op in COMPARISONS else level
    return f"{_enclosed(node.left, left)} {node.op} {_enclosed(node.right, level + 1)}"


def _derivative_text(node: Derivative) -> str:
    if any(len(name) > 1 for name in node.by):
        return f"D({', '.join([to_text(node.of), *node.by])})"
    inner = to_text(node.of) if isinstance(node.of, Name) else f"({to_text(node.of)})"
    return f"{inner}_{''.join(node.by)}"


def _enclosed(node: Node, level: int) -> str:
    text = to_text(node)
    return text if precedence(node) >= level else f"({text})"


def precedence(node: Node) -> int:
    """Return how tightly the outermost operation of a node binds; atoms bind tightest."""
    match node:
        case Binary(op, _, _):
            return PRECEDENCE[op]
        case Negative():
            return SIGN
        case _:
            return ATOM


def value_of(node: Node, values: Mapping[str, float]) -> float:
    """Return the value of an expression without derivatives, in float arithmetic.

    Raises `ArithmeticError` or `ValueError` where it has none (overflow, division by zero, no real value) and
    `KeyError` for a name without a value.
    """
    match node:
        case Number(number):
            return float(number)
        case Name(name):
            return CONSTANTS[name] if name in CONSTANTS else float(values[name])
        case Negative(of):
            return -value_of(of, values)
        case Binary(op, left, right):
            return operate(op, value_of(left, values), value_of(right, values))
        case Apply("piecewise", arguments):
            return _piecewise(arguments, values)
        case Apply(function, arguments) if function in FUNCTIONS:
            return finite(FUNCTIONS[function](*(value_of(argument, values) for argument in arguments)))
        case _:
            raise ValueError(f"'{to_text(node)}' has no value by itself")


def _piecewise(arguments: tuple[Node, ...], values: Mapping[str, float]) -> float:
    *cases, otherwise = arguments
    for value, condition in zip(cases[::2], cases[1::2], strict=True):
        if _holds(condition, values):
            return value_of(value, values)
    return value_of(otherwise, values)


def _holds(condition: Node, values: Mapping[str, float]) -> bool:
    match condition:
        case Binary("and" | "or" as op, left, right):
            return _decided(op, (partial(_holds, left, values), partial(_holds, right, values)))
        case Binary(op, left, right):
            return COMPARISONS[op](value_of(left, values), value_of(right, values))
        case _:
            raise ValueError(f"'{to_text(condition)}' is not a condition")


def _decided(op: str, parts: Iterable[Callable[[], bool]]) -> bool:
    """Join conditions by `and` or `or`, in any order: one without a value counts only if no other decides."""
    failure = None
    for part in parts:
        try:
            if part() == (op == "or"):
                return op == "or"
        except (ArithmeticError, ValueError) as error:
            failure = error
    if failure is not None:
        raise failure
    return op == "and"


def operate(op: str, left: float, right: float) -> float:
    """Apply an arithmetic operator; raises `ArithmeticError` or `ValueError` without a finite real value."""
    return finite(_ARITHMETIC[op](left, right))


def finite(value: float | complex) -> float:
    """Return a real and finite value; raises `ValueError` or `OverflowError` otherwise."""
    if isinstance(value, complex):
        raise ValueError("not a real number")  # noqa: TRY004  a value out of the real numbers, not a wrong type
    if not math.isfinite(value):
        raise OverflowError("not a finite number")
    return value
