"""The expressions of pde-agent-bench, written for sympy: read by our grammar, derived with sympy, written as our text.

No text of a case reaches `sympify` or Python. What the grammar does not know is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import sympy
from sympy.printing.str import StrPrinter

from sharp.agentbench.pab_form import Unfit
from sharp.errors import SpecificationError
from sharp.problems.expressions import Apply, Binary, Negative, Node, Number
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
        return to_sympy(_inexact(parse_tree(text, Scope.of(names)))).doit()
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
        case _:
            return tree


def source(operator: Any, field: Any, exact: Any, inserted: Mapping[Any, Any]) -> Any:
    """Return what an operator on a field, such as `-kappa*lap(u)`, makes of an exact solution: the source term.

    `field` is the function in `operator` that stands for the field; `inserted` are expressions of coefficients.
    """
    derived = operator.subs({field: exact, **inserted}).doit()
    return min((derived, sympy.factor_terms(derived)), key=lambda form: len(write(form)))


def write(expression: Any) -> str:
    """Return a sympy expression as text of the grammar."""
    return str(_Printer().doprint(expression))


class _Printer(StrPrinter):
    """Sympy's text, with floats in as many digits as they need and the grammar's names of functions."""

    def _print_Float(self, expr: Any) -> str:
        value = float(expr)
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)

    def _print_Abs(self, expr: Any) -> str:
        return f"abs({self._print(expr.args[0])})"
