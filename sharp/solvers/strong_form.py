"""The equations of a problem as they are written: derivatives of sums and products are not taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy

from sharp.error_messages import clip
from sharp.errors import SpecificationError
from sharp.problems import Problem, equation_to_sympy, to_sympy

JUMPS = (sympy.Piecewise, sympy.Heaviside, sympy.sign)


@dataclass(frozen=True)
class StrongForm:
    """Real symbols for coordinates, numbers for parameters and expressions for given coefficients."""

    problem: Problem
    coordinates: Mapping[Any, Any]
    numbers: Mapping[Any, Any]

    @classmethod
    def of(cls, problem: Problem, eigenvalues: tuple[float, ...] = ()) -> StrongForm:
        """Return the equations of a problem; its eigenvalue is the first of those found, or a symbol."""
        names = (*problem.space, *([problem.time_name] if problem.time_name else []))
        numbers = {sympy.Symbol(name): sympy.Float(value, 17) for name, value in problem.parameters.items()}
        wanted = problem.specification.eigenvalue
        if wanted is not None and eigenvalues:
            numbers[sympy.Symbol(wanted.name)] = sympy.Float(eigenvalues[0], 17)
        coordinates = {sympy.Symbol(name): sympy.Symbol(name, real=True) for name in names}
        return cls(problem, coordinates, numbers)

    def equation(self, index: int) -> Any:
        """Return left minus right side of an equation, with symbols for parameters."""
        return _without_coefficients(self.problem, index).xreplace(self.coordinates)

    def expression(self, text: str) -> Any:
        """Return a given function with numbers for parameters and all derivatives carried out."""
        written = to_sympy(self.problem.tree(text))
        # Sympy has no word of its own for expressions that it cannot evaluate, such as comparisons of infinities.
        try:
            return written.xreplace(self.coordinates).doit().xreplace(self.numbers)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise SpecificationError(f"'{clip(text)}' cannot be evaluated: {error}") from None

    def constant(self, expression: Any) -> bool:
        """Whether an expression holds neither fields nor coordinates."""
        held = expression.free_symbols & set(self.coordinates.values())
        return not held and not expression.has(sympy.core.function.AppliedUndef)

    def discontinuous_factor(self, index: int) -> Any:
        """Return the factor with jumps in front of the second space derivatives of an equation.

        It is 1 where nothing jumps there, and not a number where terms have different ones. What is behind it is
        continuous: k*u_x of `(k*u_x)_x / c`, and u_x of `k*u_xx`.
        """
        found = {front for front, _ in self._parts(index) if front is not None}
        return sympy.nan if len(found) > 1 else next(iter(found), sympy.Integer(1))

    def without_factor(self, index: int) -> Any:
        """Return an equation divided by that factor, which leaves the second derivatives; as it is without one."""
        front = self.discontinuous_factor(index)
        if front in (1, sympy.nan):
            return self.equation(index)
        return sympy.Add(*(rest / front if own is None else rest for own, rest in self._parts(index)))

    def has_discontinuous_advection(self, index: int) -> bool:
        """Whether an equation has the space derivative of a field, itself no derivative, times what jumps."""
        derivatives = self.equation(index).atoms(sympy.Derivative)
        carried = (
            term
            for derivative in derivatives
            if self._space & set(derivative.variables)
            for term in sympy.Add.make_args(derivative.expr)
            if _order(term, self._space) == 0 and term.has(sympy.core.function.AppliedUndef)
        )
        return any(_jumps(part) for term in carried for part in sympy.preorder_traversal(term))

    def _parts(self, index: int) -> Iterator[tuple[Any, Any]]:
        return _parts(self.equation(index), self._space)

    @property
    def _space(self) -> set[Any]:
        return {sympy.Symbol(name, real=True) for name in self.problem.space}


@lru_cache(maxsize=64)
def _without_coefficients(problem: Problem, index: int) -> Any:
    """Return left minus right side of an equation, with given functions written out."""
    written = equation_to_sympy(
        problem.equations[index],
        problem.fields,
        problem.space,
        problem.time_name,
        problem.radial_power,
    )
    coefficients = {
        sympy.Symbol(name): to_sympy(problem.tree(given.expression))
        for name, given in problem.specification.coefficients.items()
        if given.expression is not None
    }
    return (written.lhs - written.rhs).xreplace(coefficients)


def _parts(expression: Any, space: set[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield for every part of a sum what jumps in front of its second space derivative, and the rest.

    The former is None where there is no such derivative.
    """
    if isinstance(expression, sympy.Add):
        for part in expression.args:
            yield from _parts(part, space)
        return
    factors = sympy.Mul.make_args(expression)
    inner = next((factor for factor in factors if _order(factor, space) >= 2), None)
    if inner is None or len(factors) == 1:
        yield None if inner is None else sympy.Integer(1), expression
        return
    before = sympy.Mul(*(factor for factor in factors if _jumps(factor)))
    others = sympy.Mul(*(factor for factor in factors if factor is not inner and not _jumps(factor)))
    for front, rest in _parts(inner, space):
        yield (None, before * others * rest) if front is None else (before * front, others * rest)


def _jumps(part: Any) -> bool:
    return bool(part.has(*JUMPS)) and not part.has(sympy.core.function.AppliedUndef)


def _order(expression: Any, space: set[Any]) -> int:
    """Return how many space derivatives are taken one within the other."""
    inner = max((_order(part, space) for part in expression.args), default=0)
    return inner + sum(name in space for name in getattr(expression, "variables", ()))
