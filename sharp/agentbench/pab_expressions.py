"""The expressions of pde-agent-bench, written for sympy: read by our grammar, derived with sympy, written as our text.

No text of a case reaches `sympify` or Python. What the grammar does not know is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy
from sympy.printing.str import StrPrinter

from sharp.agentbench.pab_form import Unfit
from sharp.errors import SpecificationError
from sharp.problems.expressions import Apply, Binary, Derivative, Negative, Node, Number
from sharp.problems.grammar import Scope, parse_tree
from sharp.problems.symbolic import to_sympy

# Sympy's names of functions that the grammar has under others.
_NAMES = {"Abs": "abs", "ln": "log", "Max": "max", "Min": "min"}
_NAME = re.compile(r"\b[A-Za-z]+\b")


def read(value: Any, names: Iterable[str], what: str) -> Any:
    """Return the sympy expression of a text or number in some names; raises `Unfit` naming `what` it is."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Unfit("not of the form of a case", f"{what}: expected an expression or a number")
    text = _NAME.sub(lambda match: _NAMES.get(match.group(), match.group()), str(value))
    try:
        return _evaluated(to_sympy(_inexact(parse_tree(text, Scope.of(names)))))
    except SpecificationError as error:
        raise Unfit("an expression that the grammar does not know", f"{what}: {error}") from None


def _inexact(tree: Node, exponent: bool = False) -> Node:
    """Turn integers into floats but in exponents: exact arithmetic has no bound on what a short text asks for."""
    match tree:
        case Number(value):
            return tree if exponent or value in (0, 1) else Number(float(value))
        case Negative(of):
            return Negative(_inexact(of, exponent))
        case Binary(op, left, right):
            return Binary(op, _inexact(left), _inexact(right, op == "**"))
        case Apply(function, arguments):
            return Apply(function, tuple(_inexact(argument) for argument in arguments))
        case Derivative(of, by):
            return Derivative(_inexact(of), by)
        case _:
            return tree


def derived(tree: Node, known: Mapping[str, Any], space: Sequence[str]) -> Any:
    """Return an operator such as `-kappa*lap(u)` with sympy expressions in place of names, its derivatives carried out.

    Functions stand for coefficients, whose derivatives stay as such. The terms are those of differentiation, or grouped
    by common factors where that is shorter.
    """
    found = _evaluated(to_sympy(_inexact(tree), known, space))
    return min((found, sympy.factor_terms(found)), key=lambda form: len(write(form)))


def _evaluated(expression: Any) -> Any:
    """Carry out derivatives and arithmetic, all names being real: the derivative of abs is then sign."""
    real = {symbol: sympy.Symbol(symbol.name, real=True) for symbol in expression.free_symbols}
    plain = {symbol: name for name, symbol in real.items()}
    return expression.xreplace(real).doit().xreplace(plain)


def write(expression: Any) -> str:
    """Return a sympy expression as text of the grammar."""
    return str(_Printer().doprint(expression))


class _Printer(StrPrinter):  # type: ignore[misc]  # sympy has no types
    """Sympy's text, with floats in as many digits as they need, and names and derivatives as the grammar has them."""

    def _print_Float(self, expr: Any) -> str:  # noqa: N802  sympy's name for it
        value = float(expr)
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)

    def _print_AppliedUndef(self, expr: Any) -> str:  # noqa: N802
        return str(expr.func.__name__)

    def _print_Derivative(self, expr: Any) -> str:  # noqa: N802
        return f"{self._print(expr.expr)}_{''.join(axis.name for axis in expr.variables)}"

    def _print_Abs(self, expr: Any) -> str:  # noqa: N802
        return f"abs({self._print(expr.args[0])})"
