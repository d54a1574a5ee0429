"""What may be combined with what: the checks made while an expression tree is built.

Every part knows its kind (number, vector or condition), its value if it is constant, and the largest product
of nested constant exponents in it. The last two are how a short text could ask for an endless computation, so
they are bounded: `9**9**9**9` is refused before anything computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from sharp.problems.expressions import (
    COMPARISONS,
    CONSTANTS,
    FUNCTIONS,
    Apply,
    Binary,
    Derivative,
    Name,
    Negative,
    Node,
    Number,
    finite,
    operate,
    walk,
)
from sharp.problems.tokens import GrammarError

MAX_DIGITS = 40
MAX_ORDER = 8
MAX_EXPONENT = 100
MAX_TOTAL_EXPONENT = 1000

Kind = Literal["number", "vector", "condition"]


@dataclass(frozen=True, slots=True)
class TypedExpression:
    """A tree and what the rules need to know of it; `column` is where its text begins."""

    node: Node
    column: int
    kind: Kind = "number"
    constant: float | None = None
    power: float = 1.0


def number(text: str, column: int) -> TypedExpression:
    """Build a literal: an integer where it is written without point and exponent."""
    if len(text) > MAX_DIGITS:
        raise GrammarError(column, f"a number has at most {MAX_DIGITS} digits here")
    value = int(text) if text.isdigit() else float(text)
    return TypedExpression(Number(value), column, constant=_constant(lambda: finite(float(value)), column))


def name(text: str, column: int) -> TypedExpression:
    """Build a name."""
    return TypedExpression(Name(text), column, constant=CONSTANTS.get(text))


def negative(of: TypedExpression, column: int) -> TypedExpression:
    """Change the sign of a number or a vector."""
    if of.kind == "condition":
        require(of, "number")
    constant = None if of.constant is None else -of.constant
    return TypedExpression(Negative(of.node), column, of.kind, constant, of.power)


def binary(op: str, left: TypedExpression, right: TypedExpression, column: int) -> TypedExpression:
    """Combine two parts by an operator at `column`."""
    kind = _kind(op, left, right)
    constant, power = None, max(left.power, right.power)
    if kind == "number" and left.constant is not None and right.constant is not None:
        a, b = left.constant, right.constant
        constant = _constant(lambda: operate(op, a, b), column)
    if op == "**" and right.constant is not None:
        power = _bounded_power(left.power, right.constant, right.column)
    return TypedExpression(Binary(op, left.node, right.node), left.column, kind, constant, power)


def apply(function: str, arguments: Sequence[TypedExpression], column: int) -> TypedExpression:
    """Apply a function or a differential operator."""
    _check_arguments(function, arguments)
    kind: Kind = "vector" if function == "grad" else "number"
    constants = [argument.constant for argument in arguments]
    known = [value for value in constants if value is not None]
    constant = None
    if function in FUNCTIONS and len(known) == len(constants):
        constant = _constant(lambda: finite(FUNCTIONS[function](*known)), column)
    node = Apply(function, tuple(argument.node for argument in arguments))
    return TypedExpression(node, column, kind, constant, max(argument.power for argument in arguments))


def derivative(of: TypedExpression, by: Sequence[str], column: int) -> TypedExpression:
    """Differentiate a number along coordinates; the derivatives of one expression are merged."""
    require(of, "number")
    inner = of.node if isinstance(of.node, Derivative) else Derivative(of.node, ())
    node = Derivative(inner.of, (*inner.by, *by))
    if len(node.by) > MAX_ORDER:
        raise GrammarError(column, f"derivatives of an order above {MAX_ORDER} are not understood")
    return TypedExpression(node, of.column, power=of.power)


def require(part: TypedExpression, kind: Kind) -> None:
    """Raise unless a part is of a kind."""
    if part.kind != kind:
        hint = "; join comparisons with 'and'" if part.kind == "condition" else ""
        raise GrammarError(part.column, f"expected a {kind}, found a {part.kind}{hint}")


def _kind(op: str, left: TypedExpression, right: TypedExpression) -> Kind:
    wanted: Kind = "condition" if op in ("and", "or") else "number"
    if op in "+-" and "vector" in (left.kind, right.kind):
        wanted = "vector"
    elif op in "*/" and left.kind == "vector":
        require(right, "number")
        return "vector"
    elif op == "*" and right.kind == "vector":
        require(left, "number")
        return "vector"
    require(left, wanted)
    require(right, wanted)
    return "condition" if op in COMPARISONS else wanted


def _check_arguments(function: str, arguments: Sequence[TypedExpression]) -> None:
    for index, argument in enumerate(arguments):
        if function == "piecewise" and index % 2 == 1 and index < len(arguments) - 1:
            require(argument, "condition")
            if any(isinstance(part, Apply) and part.function == "piecewise" for part in walk(argument.node)):
                raise GrammarError(argument.column, "expected a condition without another piecewise in it")
        else:
            require(argument, "vector" if function == "div" else "number")


def _bounded_power(inner: float, exponent: float, column: int) -> float:
    if abs(exponent) > MAX_EXPONENT:
        raise GrammarError(column, f"exponents are at most {MAX_EXPONENT} in size here, found {exponent:g}")
    total = inner * max(1.0, abs(exponent))
    if total > MAX_TOTAL_EXPONENT:
        raise GrammarError(column, f"nested exponents multiply to more than {MAX_TOTAL_EXPONENT}")
    return total


def _constant(value: Callable[[], float], column: int) -> float:
    try:
        return value()
    except ZeroDivisionError:
        raise GrammarError(column, "division by zero") from None
    except (ArithmeticError, ValueError):
        raise GrammarError(column, "this constant is not a finite real number in floating point") from None
