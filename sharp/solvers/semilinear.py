"""The linear part with constant factors of a system, which Fourier modes see as one matrix each, and all the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy

from sharp.problems import ExpressionProgram, compile_expressions
from sharp.solvers.grid import Array
from sharp.solvers.sample_points import interior_points
from sharp.solvers.system import FirstOrderSystem, SpatialDerivative, UnsupportedProblem, real

_POINTS = 400
# Up to which degree in the jets products are taken apart exactly; the rest counts as of this degree.
_DEGREE = 3
# How much larger than at the start a factor may become before the part of it that is taken as constant is too small.
_ROOM = 1.05


@dataclass(frozen=True)
class RestTerm:
    """A part of the rest of a row: the sum of derivatives of a value, or where there are none the value itself."""

    row: int
    derivatives: tuple[tuple[int, ...], ...]
    value: sympy.Expr


@dataclass(frozen=True)
class SemilinearSystem:
    """`rhs[i]` is the sum of `factors[i, j]` times jet j, and `rest[i]`.

    `algebraic` are the components without a time derivative, whose `rhs` is what vanishes. `terms` add up to the rests,
    `jets` are those that they contain, and `degree` is that of their products, 1 where they are linear.
    """

    system: FirstOrderSystem
    factors: Array
    rest: tuple[sympy.Expr, ...]
    terms: tuple[RestTerm, ...]
    jets: tuple[SpatialDerivative, ...]
    degree: int
    algebraic: tuple[int, ...] = ()

    @cached_property
    def program(self) -> ExpressionProgram:
        """The values of `terms`, of space, time and `jets`."""
        names = (*self.system.space, self.system.time, *(jet.symbol.name for jet in self.jets))
        return compile_expressions([term.value for term in self.terms], names)


def semilinear(system: FirstOrderSystem) -> SemilinearSystem:
    """Take a system apart.

    A factor of the highest derivatives that varies is replaced by its largest value, and the rest holds the difference.
    Raises `UnsupportedProblem` where that has no sign, or where it stands before an odd derivative.
    """
    system, algebraic = _explicit(system)
    factors = np.zeros((len(system.rhs), len(system.jets)))
    for (row, column), entry in system.jacobian.items():
        factors[row, column] = _constant(system, row, column, entry)
    rests = tuple(
        _expanded(expression - sum(
            sympy.Float(float(factor), 17) * jet.symbol
            for factor, jet in zip(factors[row], system.jets, strict=True)
            if factor
        ))
        for row, expression in enumerate(system.rhs)
    )  # fmt: skip
    terms = tuple(
        term
        for row, rest in enumerate(rests)
        if rest != 0
        for term in (_conserved(system, row, rest) if not algebraic else (RestTerm(row, (), rest),))
    )
    used = tuple(jet for jet in system.jets if any(jet.symbol in term.value.free_symbols for term in terms))
    degree = max(map(_degree, rests)) if any(map(_jets_in, rests)) else 1
    return SemilinearSystem(system, factors, rests, terms, used, degree, algebraic)


def _conserved(system: FirstOrderSystem, row: int, rest: Any) -> tuple[RestTerm, ...]:
    """Return a rest as derivatives of functions of one component where that takes fewer transforms: u*u_x of u**2/2."""
    found: dict[Any, list[tuple[int, ...]]] = {}
    left = rest
    for jet in sorted(system.jets, key=lambda jet: -jet.order):
        own = SpatialDerivative(jet.component, (0,) * len(system.space)).symbol
        factor = sympy.diff(left, jet.symbol) if jet.order else sympy.Integer(0)
        if factor.free_symbols != {own} or not factor.is_polynomial(own):
            continue
        value = sympy.integrate(factor, own)
        left = _expanded(sympy.expand(left - _derivative(value, jet.by)))
        found.setdefault(value, []).append(jet.by)
    terms = [RestTerm(row, tuple(by), value) for value, by in found.items()]
    terms += [RestTerm(row, (), left)] if left != 0 else []
    jets: set[Any] = set().union(*(_jets_in(term.value) for term in terms))
    known = {jet.symbol for jet in system.jets}
    if not jets <= known or len(jets) + len(terms) >= len(_jets_in(rest)) + 1:
        return (RestTerm(row, (), rest),)
    return tuple(terms)


def _derivative(expression: Any, by: tuple[int, ...]) -> Any:
    """Return a derivative of a function of jets, in jets."""
    for axis, times in enumerate(by):
        for _ in range(times):
            parts = []
            for symbol in sorted(_jets_in(expression), key=str):
                component, *orders = map(int, symbol.name.split()[1:])
                orders[axis] += 1
                further = SpatialDerivative(component, tuple(orders)).symbol
                parts.append(sympy.diff(expression, symbol) * further)
            expression = sympy.Add(*parts)
    return expression


def _jets_in(expression: Any) -> set[Any]:
    return {symbol for symbol in expression.free_symbols if symbol.name.startswith("jet ")}


def _explicit(system: FirstOrderSystem) -> tuple[FirstOrderSystem, tuple[int, ...]]:
    """Return a system solved for its time derivatives, and the components that have none."""
    if system.inertia is None:
        return system, ()
    held = tuple(i for i in range(len(system.rhs)) if system.inertia.row(i).is_zero_matrix)
    moving = [i for i in range(len(system.rhs)) if i not in held]
    matrix = system.inertia.extract(moving, moving)
    if matrix.free_symbols or matrix.det() == 0:
        raise UnsupportedProblem("the equations are not solved for time derivatives with constant factors")
    solved = matrix.LUsolve(sympy.Matrix([system.rhs[i] for i in moving]))
    rates = dict(zip(moving, solved, strict=True)) | {i: system.rhs[i] for i in held}
    return replace(system, rhs=tuple(_expanded(rates[i]) for i in range(len(rates))), inertia=None), held


def _constant(system: FirstOrderSystem, row: int, column: int, entry: Any) -> float:
    """Return what of the factor of a jet counts as constant."""
    symbols = {real(name) for name in system.names}
    if not entry.free_symbols & symbols:
        return float(entry)
    jet = system.jets[column]
    top = max(system.jets[j].order for i, j in system.jacobian if i == row)
    if jet.order < 2 or jet.order < top:
        terms = sympy.Add.make_args(sympy.expand(entry))
        return float(sum(term for term in terms if not term.free_symbols & symbols))
    if any(by % 2 for by in jet.by):
        raise UnsupportedProblem("a factor of the highest derivatives is not constant")
    values = _at_the_start(system, entry)
    if not len(values) or values.min() * values.max() < 0 or not np.all(np.isfinite(values)):
        raise UnsupportedProblem("a factor of the highest derivatives is not constant and has no sign")
    return _ROOM * float(values[np.argmax(np.abs(values))])


def _at_the_start(system: FirstOrderSystem, entry: Any) -> Array:
    """Return the values of a factor at points of the initial state, whose derivatives count as zero."""
    points = interior_points(system.problem, _POINTS)
    start = system.problem.time[0] if system.problem.time else 0.0
    names = (*system.space, system.time)
    initial = compile_expressions(system.initial, names)(*points.T, start)
    jets = [initial[jet.component] if jet.order == 0 else 0.0 for jet in system.jets]
    with np.errstate(all="ignore"):
        (found,) = compile_expressions([entry], system.names)(*points.T, start, *jets)
    return np.broadcast_to(np.asarray(found, dtype=float), len(points))


def _expanded(expression: Any) -> Any:
    """Return a sum whose linear terms cancel where they are there twice; coefficients of rounding size are dropped."""
    found = sympy.expand_mul(expression, deep=False)
    if isinstance(found, sympy.Add):
        sizes = [
            abs(float(term.as_coeff_Mul()[0])) for term in sympy.Add.make_args(sympy.expand_mul(expression))
        ]
        least = 1e-14 * max(sizes)
        found = sympy.Add(
            *(term for term in sympy.Add.make_args(found) if abs(float(term.as_coeff_Mul()[0])) > least)
        )
    return found


def _degree(rest: Any) -> int:
    jets = [symbol for symbol in rest.free_symbols if symbol.name.startswith("jet ")]
    if not jets:
        return 1
    # What varies in space multiplies like another jet.
    space = sorted((s for s in rest.free_symbols if s not in jets), key=str)
    return min(_DEGREE, max(_product_degree(term, jets, space) for term in sympy.Add.make_args(rest)))


def _product_degree(term: Any, jets: Sequence[Any], others: Sequence[Any]) -> int:
    if not term.is_polynomial(*jets):
        return _DEGREE
    varying = int(bool(term.free_symbols & set(others)))
    return int(sympy.Poly(term, *jets).total_degree()) + varying
