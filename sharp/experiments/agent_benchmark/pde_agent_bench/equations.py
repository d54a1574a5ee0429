"""The equations of pde-agent-bench: what stands on the left in each family, and the expressions of a case.

Expressions are written for sympy: read by our grammar, derived with sympy, written as our text. No text of a case
reaches `sympify` or Python; what the grammar does not know is refused. The right side of an equation is the source
term. Where a case has an exact solution instead, the same left side gives it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
from sympy.printing.str import StrPrinter

from sharp.error_messages import clip
from sharp.errors import SpecificationError
from sharp.experiments.agent_benchmark.metrics.derivatives import rebuilt
from sharp.experiments.agent_benchmark.pde_agent_bench.cases import NO_CASE, CaseEquation, UnsupportedCase
from sharp.problems import Binary, Negative, Node, Number, Scope, parse_tree, to_sympy

_VECTORS = ("linear_elasticity", "navier_stokes", "stokes")


@dataclass(frozen=True)
class EquationTemplate:
    """An equation `left = source` for the field u, with the values of its parameters and its coefficients as text.

    `operator` is the left side in terms of u alone. `further` has equations of further fields, as in {w: -lap(u)}.
    """

    left: str
    parameters: Mapping[str, float] = field(default_factory=dict)
    coefficients: Mapping[str, str] = field(default_factory=dict)
    operator: str = ""
    further: Mapping[str, str] = field(default_factory=dict)


def equation_template(pde: CaseEquation, space: Sequence[str]) -> EquationTemplate:
    """Return the form of an equation; raises `UnsupportedCase` for families that cannot be said."""
    if pde.type in _VECTORS:
        raise UnsupportedCase(f"vector problem ({pde.type})")
    if pde.type not in _TEMPLATES:
        raise UnsupportedCase("an equation of another family", clip(pde.type))
    return _TEMPLATES[pde.type](pde, space)


def time_interval(pde: CaseEquation) -> tuple[float, float] | None:
    """Return the first and last time of an equation, None where it is steady; raises `UnsupportedCase`."""
    if pde.type == "burgers" and pde.time is None:
        return 0.0, pde.t_final
    if pde.type in ("heat", "wave") and pde.time is None:
        raise UnsupportedCase(NO_CASE, "pde.time: expected the time interval, found nothing")
    return (pde.time.t0, pde.time.t_end) if pde.time else None


def _diffusion(pde: CaseEquation, space: Sequence[str], before: str) -> EquationTemplate:
    """Return `before` and the diffusion term, whose coefficient is 1 where the case gives none."""
    kappa = pde.coefficients.get("kappa")
    if kappa is None:
        return EquationTemplate(f"{before}lap(u)")
    if kappa.type == "constant" and kappa.value is not None:
        return EquationTemplate(f"{before}kappa*lap(u)", {"kappa": kappa.value})
    if kappa.type == "expr" and kappa.expr is not None:
        written = write_expression(read_expression(kappa.expr, space, "kappa"))
        return EquationTemplate(f"{before}div(kappa*grad(u))", coefficients={"kappa": written})
    raise UnsupportedCase("a coefficient of another kind", clip(kappa.type))


def _start(pde: CaseEquation) -> str:
    return "u_t - " if pde.time else "-"


def _convection(pde: CaseEquation, space: Sequence[str]) -> EquationTemplate:
    epsilon, beta = _number(pde, "epsilon"), pde.pde_params.get("beta")
    if not isinstance(beta, list) or len(beta) != len(space) or not all(map(_is_number, beta)):
        raise UnsupportedCase(NO_CASE, f"pde_params.beta: expected {len(space)} numbers")
    if epsilon <= 0:
        raise UnsupportedCase(
            "pure advection", "values on the whole boundary are more than an equation of first order takes"
        )
    speeds = {f"b{axis}": float(value) for axis, value in zip(space, beta, strict=True) if value}
    terms = "".join(f" + {name}*u_{name[1:]}" for name in speeds)
    return EquationTemplate(f"{_start(pde)}epsilon*lap(u){terms}", {"epsilon": epsilon, **speeds})


# Types of the reaction term R(u): its text, and its parameters by the names that they have in the text.
_REACTIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "linear": ("alpha*u", {"alpha": "alpha"}),
    "cubic": ("alpha*u + beta*u**3", {"alpha": "alpha", "beta": "beta"}),
    "allen_cahn": ("lam*(u**3 - u)", {"lam": "lambda"}),
    "logistic": ("rho*u*(1 - u)", {"rho": "rho"}),
}


def _reaction(pde: CaseEquation, _: Sequence[str]) -> EquationTemplate:
    given = pde.pde_params.get("reaction")
    kind = str(given.get("type")) if isinstance(given, Mapping) else "missing"
    if not isinstance(given, Mapping) or kind not in _REACTIONS:
        raise UnsupportedCase("a reaction of another kind", clip(kind))
    text, names = _REACTIONS[kind]
    if not all(_is_number(given.get(key)) for key in names.values()):
        raise UnsupportedCase(NO_CASE, f"reaction: expected numbers {', '.join(names.values())}")
    values = {name: float(given[key]) for name, key in names.items()}
    return EquationTemplate(
        f"{_start(pde)}epsilon*lap(u) + {text}", {"epsilon": _number(pde, "epsilon"), **values}
    )


_TEMPLATES: Mapping[str, Callable[[CaseEquation, Sequence[str]], EquationTemplate]] = {
    "poisson": lambda pde, space: _diffusion(pde, space, "-"),
    "heat": lambda pde, space: _diffusion(pde, space, "u_t - "),
    "convection_diffusion": _convection,
    "helmholtz": lambda pde, _: EquationTemplate(
        "-lap(u) - k**2*u", {"k": _number(pde, "k" if "k" in pde.pde_params else "wave_number")}
    ),
    "reaction_diffusion": _reaction,
    "wave": lambda pde, _: EquationTemplate("u_tt - c**2*lap(u)", {"c": _number(pde, "c")}),
    "burgers": lambda pde, space: EquationTemplate(
        f"u_t{''.join(f' + u*u_{axis}' for axis in space)} - nu*lap(u)", {"nu": _number(pde, "nu")}
    ),
    # Two equations of second order, as the benchmark poses them: u and w = -lap(u) are given on the boundary.
    "biharmonic": lambda *_: EquationTemplate("-lap(w)", operator="lap(lap(u))", further={"w": "-lap(u)"}),
}


def _number(pde: CaseEquation, name: str) -> float:
    value: Any = pde.pde_params.get(name)
    if not _is_number(value):
        raise UnsupportedCase(NO_CASE, f"pde_params.{name}: expected a number")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# Sympy's names of functions that the grammar has under others.
_NAMES = {"Abs": "abs", "ln": "log", "Max": "max", "Min": "min"}
_NAME = re.compile(r"\b[A-Za-z]+\b")


def read_expression(value: Any, names: Iterable[str], what: str) -> Any:
    """Return the sympy expression of a text or number in some names; raises `UnsupportedCase` naming `what` it is."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UnsupportedCase(NO_CASE, f"{what}: expected an expression or a number")
    text = _NAME.sub(lambda match: _NAMES.get(match.group(), match.group()), str(value))
    try:
        return _evaluated(to_sympy(_inexact(parse_tree(text, Scope.of(names)))))
    except SpecificationError as error:
        raise UnsupportedCase("an expression that the grammar does not know", f"{what}: {error}") from None


def _inexact(tree: Node, exponent: bool = False) -> Node:
    """Turn integers into floats but in exponents: exact arithmetic has no bound on what a short text asks for."""
    match tree:
        case Number(value):
            return tree if exponent or value in (0, 1) else Number(float(value))
        case Negative(of):
            return Negative(_inexact(of, exponent))
        case Binary(op, left, right):
            return Binary(op, _inexact(left), _inexact(right, op == "**"))
        case _:
            return rebuilt(tree, _inexact)


def derived(tree: Node, known: Mapping[str, Any], space: Sequence[str]) -> Any:
    """Return an operator such as `-kappa*lap(u)` with sympy expressions in place of names, its derivatives carried out.

    Functions stand for coefficients, whose derivatives stay as such. The terms are those of differentiation, or grouped
    by common factors where that is shorter.
    """
    found = _evaluated(to_sympy(_inexact(tree), known, space))
    return min((found, sympy.factor_terms(found)), key=lambda form: len(write_expression(form)))


def _evaluated(expression: Any) -> Any:
    """Carry out derivatives and arithmetic, all names being real: the derivative of abs is then sign."""
    real = {symbol: sympy.Symbol(symbol.name, real=True) for symbol in expression.free_symbols}
    plain = {symbol: name for name, symbol in real.items()}
    return expression.xreplace(real).doit().xreplace(plain)


def write_expression(expression: Any) -> str:
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
