"""The flux of an equation: what it takes the divergence of, as it is written.

`-div(k*grad(u)) = f`, `u_t = (k*u_x)_x + (k*u_y)_y` and `-k*lap(u) = f` have the flux k*grad(u) in common. In
`-nu*lap(u) + p_x = f` the derivative of the other field belongs to it: the flux is (nu*u_x - p, nu*u_y). So does what
is carried along in parentheses, as in `(c*u)_x`; of `c*u_x`, which is no divergence, nothing does. The sign is that of
the field's own normal derivative. A condition on the outward component of the flux is the natural one of the weak form
(A. Ern and J.-L. Guermond, Theory and Practice of Finite Elements, 2004, ch. 3): a heat flux, a traction, an outlet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from sharp.problems.problem import Problem
from sharp.problems.symbolic import equation_to_sympy, to_sympy


@dataclass(frozen=True)
class DivergenceForm:
    """An equation `sign * div(flux) + rest = 0`, with derivatives carried out within flux and rest.

    `sign` is the one with which the field's own normal derivative counts as positive in the flux. `ambiguous` says that
    a mixed derivative such as u_xy is written without parentheses: it may belong to either component of the flux.
    """

    flux: tuple[Any, ...]
    rest: Any
    sign: int
    ambiguous: bool


def divergence_form(written: Any, field: Any, space: Sequence[Any]) -> DivergenceForm:
    """Return the divergence form of left minus right side of an equation whose derivatives are as they were written.

    `field` is the applied function of the field that the equation belongs to, `space` the coordinates' symbols.
    """
    flux = [sympy.Integer(0) for _ in space]
    rest, ambiguous = [], False
    for factor, term in _terms(sympy.Integer(1), written):
        place = _carried(term, field, space)
        if place is None:
            rest.append(factor * term)
            continue
        axis, inner = place
        flux[axis] += factor * inner
        mixed = set(getattr(term, "variables", ())) & set(space)
        ambiguous = ambiguous or len(mixed) > 1
    evaluated = [part.doit() for part in flux]
    sign = _sign(evaluated, field, space)
    return DivergenceForm(
        tuple(sympy.expand_mul(sign * part, deep=False) for part in evaluated),
        sympy.Add(*rest).doit(),
        sign,
        ambiguous,
    )


def field_flux(problem: Problem, field: str) -> DivergenceForm | None:
    """Return the divergence form of the equation that belongs to a field, with numbers for parameters.

    That is one with its own second derivatives, if possible with its time derivative; None where there is none.
    Coordinates are real symbols and fields functions of them.
    """
    plain = [sympy.Symbol(name) for name in problem.coordinates]
    real = {symbol: sympy.Symbol(symbol.name, real=True) for symbol in plain}
    known: dict[Any, Any] = {
        sympy.Symbol(name): to_sympy(problem.tree(given.expression))
        for name, given in problem.specification.coefficients.items()
        if given.expression is not None
    }
    numbers = {sympy.Symbol(name): sympy.Float(value, 17) for name, value in problem.parameters.items()}
    call = sympy.Function(field)(*real.values())
    space = [real[symbol] for symbol in plain[: len(problem.space)]]
    found = []
    for equation in problem.equations:
        written = equation_to_sympy(equation, problem.fields, problem.space, problem.time_name)
        whole = (written.lhs - written.rhs).xreplace(known).xreplace(real).xreplace(numbers)
        form = divergence_form(whole, call, space)
        own = sum(
            sympy.diff(part, sympy.Derivative(call, x)) != 0 for part, x in zip(form.flux, space, strict=True)
        )
        if own:
            moving = [sympy.Derivative(call, symbol) for symbol in list(real.values())[len(space) :]]
            found.append((any(form.rest.has(rate) for rate in moving), own, form))
    return max(found, key=lambda each: each[:2])[2] if found else None


def _terms(factor: Any, written: Any) -> list[tuple[Any, Any]]:
    """Return the terms of nested sums and products with constants, each with its factor."""
    if isinstance(written, sympy.Add):
        return [pair for part in written.args for pair in _terms(factor, part)]
    if isinstance(written, sympy.Mul):
        held = [part for part in written.args if part.has(sympy.core.function.AppliedUndef)]
        others = [part for part in written.args if not part.has(sympy.core.function.AppliedUndef)]
        front = sympy.Mul(*others)
        if len(held) == 1 and not front.free_symbols & _coordinates(held[0]):
            return _terms(factor * front, held[0])
    return [(factor, written)]


def _coordinates(expression: Any) -> set[Any]:
    calls = expression.atoms(sympy.core.function.AppliedUndef)
    return {symbol for call in calls for symbol in call.args}


def _carried(term: Any, field: Any, space: Sequence[Any]) -> tuple[int, Any] | None:
    """Return the axis and what is differentiated along it, None where a term is no part of a divergence."""
    if not isinstance(term, sympy.Derivative) or not set(term.variables) <= set(space):
        return None
    *before, last = term.variables
    inner = sympy.Derivative(term.expr, *before, evaluate=False) if before else term.expr
    bare = not before and isinstance(inner, sympy.core.function.AppliedUndef)
    held = inner.atoms(sympy.core.function.AppliedUndef)
    if not held or (bare and inner.func == field.func):
        return None
    return list(space).index(last), inner


def _sign(flux: Sequence[Any], field: Any, space: Sequence[Any]) -> int:
    """Return the sign of the field's own derivatives in the flux, taken with ones for whatever is not known."""
    for part, symbol in zip(flux, space, strict=True):
        # A real number, as sympy's derivatives of absolute values of functions are no expressions of these.
        slope = sympy.Dummy(real=True)
        own = sympy.diff(part.xreplace({sympy.Derivative(field, symbol): slope}), slope)
        if own == 0:
            continue
        known = own.xreplace({each: sympy.Integer(1) for each in own.atoms(sympy.Derivative)})
        value = known.xreplace(
            {call: sympy.Integer(1) for call in known.atoms(sympy.core.function.AppliedUndef)}
        ).doit()
        value = value.xreplace({name: sympy.Rational(37, 100) for name in value.free_symbols})
        if value.is_real and value != 0:
            return 1 if value > 0 else -1
    return 1
