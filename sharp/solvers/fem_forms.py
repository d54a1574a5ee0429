"""The weak form of a second-order system, from its rates.

A rate `Σ a_kl u_kl + b`, whose factors a_kl depend on place, time and the values of the components, becomes under the
integral with a test function v

    ∫ rate v = ∫ (F_k v_k + S v) + ∮ n_k a_kl u_l v,   F_k = -a_kl u_l,   S = b - (a_kl)_k u_l,

where (a_kl)_k is the whole derivative, along the components too. What remains of `div(a*grad(u))` in S is nothing, and
its jumps are never differentiated (A. Ern and J.-L. Guermond, Theory and Practice of Finite Elements, 2004, ch. 3).
Where conditions give fluxes, and where pressures enforce constraints, the fluxes are those that are written, of which
other fields are a part (`DivergenceForm`); `-nu*lap(u) + p_x` becomes ∫ (nu ∇u·∇v - p v_x) with the flux through
the boundary.
Factors with jumps outside the fluxes are moved to the other side first: of `c*u_t = (k*u_x)_x` as of
`u_t = (k*u_x)_x / c` it is k*u_x that is continuous, and not k*u_x/c.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
import sympy

from sharp.problems import ExpressionProgram, compile_expressions
from sharp.solvers.strong_form import JUMPS, StrongForm
from sharp.solvers.system import (
    BoundaryCondition,
    FirstOrderSystem,
    SpatialDerivative,
    UnsupportedProblem,
    covered,
    real,
)

# A component and its form: 0 is the value, k > 0 the derivative along axis k - 1.
Place = tuple[int, int]
Block = tuple[int, int, int, int]


@dataclass(frozen=True)
class Integrands:
    """What is integrated over the domain or a part of its boundary, by (component, form of the test function)."""

    system: FirstOrderSystem
    terms: Mapping[Place, sympy.Expr]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All arguments of the integrands: space, time, the outward normal, then every component in every form."""
        symbols = (*_normals(self.system), *_symbols(self.system).values())
        return (*self.system.space, self.system.time, *(symbol.name for symbol in symbols))

    @cached_property
    def used(self) -> Mapping[Place, bool]:
        """All components in every form, in the order of the arguments, and whether they occur."""
        symbols = {symbol for term in self.terms.values() for symbol in term.free_symbols}
        return {place: symbol in symbols for place, symbol in _symbols(self.system).items()}

    @cached_property
    def program(self) -> ExpressionProgram:
        """The integrands in the order of `terms`."""
        return compile_expressions(list(self.terms.values()), self.names)

    @cached_property
    def derivatives(self) -> Mapping[Block, sympy.Expr]:
        """The Jacobian where it is not zero, by component and form of the test and of the trial function."""
        partial = {
            (*place, *trial): sympy.diff(term, symbol)
            for place, term in self.terms.items()
            for trial, symbol in _symbols(self.system).items()
        }
        return {block: factor for block, factor in partial.items() if factor != 0}

    @cached_property
    def jacobian(self) -> ExpressionProgram:
        """The factors of the Jacobian in the order of `derivatives`."""
        return compile_expressions(list(self.derivatives.values()), self.names)


@dataclass(frozen=True)
class WeakForm:
    """The integrands inside, and the conormal derivatives on those parts of the boundary where they are not zero."""

    inside: Integrands
    boundary: Mapping[str, Integrands]


@lru_cache(maxsize=16)
def weak_form(system: FirstOrderSystem) -> WeakForm:
    """Return the weak form of a system.

    Raises `UnsupportedProblem` for derivatives above the second, for second derivatives whose factors depend on
    derivatives, for natural conditions that do not fix the conormal derivative, and where `multipliers` does.
    """
    return _weak(system, system.rhs)


@lru_cache(maxsize=16)
def weak_weights(system: FirstOrderSystem) -> WeakForm:
    """Return the weak form of what the eigenvalue multiplies."""
    return _weak(system, system.eigenvalue_terms)


@lru_cache(maxsize=16)
def multipliers(system: FirstOrderSystem) -> tuple[sympy.Expr, ...]:
    """Return what every rate is multiplied by before it is integrated.

    It is 1, or the volume r**m of a cylindrical or spherical system, which makes the weak form one with a weight
    (C. Bernardi, M. Dauge and Y. Maday, Spectral Methods for Axisymmetric Domains, 1999), where equations have no jumps
    outside fluxes. Otherwise that times what was divided by to get the rate, over what stands in front of its fluxes.
    Raises `UnsupportedProblem` where that has jumps and depends on more than the place, mixes equations, or differs
    from one flux to the other; and where something jumps within a flux other than that of diffusion.
    """
    written, problem = StrongForm.of(system.problem), system.problem
    volume = real(system.space[0]) ** problem.radial_power
    numbers = system.rows
    if any(map(written.has_discontinuous_advection, numbers)):
        raise UnsupportedProblem(
            "a factor of what is carried along jumps, and the weak forms here are those of diffusion"
        )
    fronts = [written.discontinuous_factor(index).doit().xreplace(written.numbers) for index in numbers]
    factors = sympy.diag(*(1 / front for front in fronts)) * system.mass_matrix
    if not factors.has(*JUMPS, sympy.nan):
        return (volume,) * len(system.components)
    if (
        not factors.is_diagonal()
        or factors.has(sympy.nan)
        or factors.free_symbols - set(map(real, system.space))
    ):
        raise UnsupportedProblem(
            "a factor in front of a derivative jumps, and depends on more than the place, mixes equations or differs "
            "from one term to the other"
        )
    places = [problem.fields.index(component.field) for component in system.components]
    return tuple(volume * factors[place, place] for place in places)


def _product(factor: sympy.Expr, rate: sympy.Expr) -> sympy.Expr:
    """Return a rate times what it was divided by, which cancels in every term."""
    return sympy.Add(*(factor * term for term in sympy.Add.make_args(rate)))


def _weak(system: FirstOrderSystem, rates: Sequence[sympy.Expr]) -> WeakForm:
    written = system.flux_conditions or system.constrained or system.inertia is not None
    if written and system.problem.radial_power:
        raise UnsupportedProblem(
            "conditions of type flux, and equations without time derivatives beside others, are for a Cartesian "
            "system of coordinates"
        )
    cartesian = not system.problem.radial_power
    if rates is system.rhs and (written or (cartesian and _quasilinear(system))):
        return _written(system)
    high = next((jet for jet in system.jets if jet.order > 2), None)
    if high is not None:
        raise UnsupportedProblem(f"the equations have derivatives of order {high.order}, elements serve two")
    inside: dict[Place, sympy.Expr] = {}
    boundary: dict[str, dict[Place, sympy.Expr]] = {}
    for i, rate in enumerate(map(_product, multipliers(system), rates)):
        factors = _principal(system, rate)
        inside |= {(i, form): term for form, term in _by_parts(system, rate, factors) if term != 0}
        for part in covered(system.problem, "all"):
            if (term := _conormal(system, i, part, factors)) != 0:
                boundary.setdefault(part, {})[i, 0] = term
    sides = {part: Integrands(system, terms) for part, terms in boundary.items()}
    return WeakForm(Integrands(system, inside), sides)


def _quasilinear(system: FirstOrderSystem) -> bool:
    """Whether factors of second derivatives depend on derivatives, and fluxes can be taken as they are written."""
    second = [jet.symbol for jet in system.jets if jet.order == 2]
    slopes = {jet.symbol for jet in system.jets if jet.order > 0}
    depends = any(sympy.diff(rate, jet).free_symbols & slopes for rate in system.rhs for jet in second)
    return depends and bool(system.divergences) and system.mass_matrix == sympy.eye(system.mass_matrix.rows)


def _written(system: FirstOrderSystem) -> WeakForm:
    """Return the weak form with the fluxes as they are written.

    Second derivatives outside of them, as in `k*u_xx` with a varying k, are taken apart as elsewhere.
    """
    inside: dict[Place, sympy.Expr] = {}
    boundary: dict[str, dict[Place, sympy.Expr]] = {}
    toward = 1 if system.steady else -1
    for i, form in enumerate(system.divergences):
        if form is None or i in system.constrained:
            inside[i, 0] = system.rhs[i]
            continue
        factors = _principal(system, form.rest)
        rates = {name: sympy.Integer(0) for name in form.rest.free_symbols if name.name.startswith("rate ")}
        terms = dict(_by_parts(system, form.rest.xreplace(rates), factors))
        for axis, part in enumerate(form.flux, start=1):
            if any(jet.symbol in part.free_symbols for jet in system.jets if jet.order > 1):
                raise UnsupportedProblem(
                    "a flux holds second derivatives, elements serve those of first order"
                )
            terms[axis] = terms[axis] - form.sign * part
        inside |= {(i, a): toward * term for a, term in terms.items() if term != 0}
        for part in covered(system.problem, "all"):
            if fixed(system, i, part) is not None:
                continue
            term = toward * (
                form.sign * _through(system, i, part, form.flux) + _conormal(system, i, part, factors)
            )
            if term != 0:
                boundary.setdefault(part, {})[i, 0] = term
    sides = {part: Integrands(system, terms) for part, terms in boundary.items()}
    return WeakForm(Integrands(system, inside), sides)


def _through(system: FirstOrderSystem, i: int, part: str, flux: Sequence[sympy.Expr]) -> sympy.Expr:
    """Return the outward component of a flux on a part of the boundary, by the condition there.

    Where that gives a normal derivative, what else the flux holds is taken from the solution.
    """
    for condition in system.flux_conditions:
        if (condition.component, condition.part) == (i, part):
            return condition.value
    if all(term == 0 for term in flux):
        return sympy.Integer(0)
    symbols = _symbols(system)
    slopes = [symbols[i, axis] for axis in range(1, len(flux) + 1)]
    matrix = sympy.Matrix([[sympy.diff(term, slope) for slope in slopes] for term in flux])
    if matrix.free_symbols & {*slopes}:
        raise UnsupportedProblem(
            "a flux is not linear in derivatives, and only its normal component can be given"
        )
    rest = [
        sympy.expand(t - sum(matrix[k, l] * slopes[l] for l in range(len(flux)))) for k, t in enumerate(flux)
    ]
    other = sum(normal * term for normal, term in zip(_normals(system), rest, strict=True))
    return other + _isotropic(matrix, i) * _normal(system, i, part)


def _normals(system: FirstOrderSystem) -> tuple[sympy.Symbol, ...]:
    return tuple(real(f"normal {axis}") for axis in system.space)


def _symbols(system: FirstOrderSystem) -> dict[Place, sympy.Symbol]:
    dimension = len(system.space)
    forms = [(0,) * dimension, *(tuple(map(int, row)) for row in np.eye(dimension))]
    return {
        (j, b): SpatialDerivative(j, by).symbol
        for j in range(len(system.components))
        for b, by in enumerate(forms)
    }


def _principal(system: FirstOrderSystem, rate: sympy.Expr) -> dict[int, sympy.Matrix]:
    """Return the symmetric matrix a_kl of each component that a rate has second derivatives of."""
    second = {jet: sympy.diff(rate, jet.symbol) for jet in system.jets if jet.order == 2}
    derivatives = {jet.symbol for jet in system.jets if jet.order > 0}
    if any(factor.free_symbols & derivatives for factor in second.values()):
        raise UnsupportedProblem("the factors of the second derivatives depend on derivatives")
    matrices: dict[int, sympy.Matrix] = {}
    for jet, factor in second.items():
        if factor == 0:
            continue
        matrix = matrices.setdefault(jet.component, sympy.zeros(len(system.space)))
        k, l = (axis for axis, times in enumerate(jet.by) for _ in range(times))
        matrix[k, l] += factor / 2
        matrix[l, k] += factor / 2
    return matrices


def _by_parts(
    system: FirstOrderSystem, rate: sympy.Expr, factors: Mapping[int, sympy.Matrix]
) -> Iterator[tuple[int, sympy.Expr]]:
    symbols = _symbols(system)
    second = {jet.symbol: sympy.Integer(0) for jet in system.jets if jet.order == 2}
    axes = range(len(system.space))
    source, flux = rate.xreplace(second), [sympy.Integer(0) for _ in axes]
    for j, matrix in factors.items():
        for k, l in product(axes, repeat=2):
            slope = symbols[j, l + 1]
            source -= _whole_derivative(system, matrix[k, l], k) * slope
            flux[k] -= matrix[k, l] * slope
    yield 0, sympy.expand_mul(source, deep=False)
    yield from enumerate(flux, start=1)


def _whole_derivative(system: FirstOrderSystem, factor: sympy.Expr, axis: int) -> sympy.Expr:
    symbols = _symbols(system)
    inner = [sympy.diff(factor, symbols[j, 0]) * symbols[j, axis + 1] for j in range(len(system.components))]
    return sympy.diff(factor, real(system.space[axis])) + sum(inner)


def _conormal(system: FirstOrderSystem, i: int, part: str, factors: Mapping[int, sympy.Matrix]) -> sympy.Expr:
    """Return n_k a_kl u_l on a part of the boundary from the conditions there, 0 where the test function vanishes."""
    if fixed(system, i, part) is not None:
        return sympy.Integer(0)
    terms = [_isotropic(matrix, j) * _normal(system, j, part) for j, matrix in factors.items()]
    return sympy.Add(*terms)


def fixed(system: FirstOrderSystem, component: int, part: str) -> BoundaryCondition | None:
    """Return the condition that gives a component itself on a part of the boundary, if there is one."""
    return next((found for found in _given(system, component, part) if tuple(found.factors) == (0,)), None)


def _given(system: FirstOrderSystem, component: int, part: str) -> list[BoundaryCondition]:
    return [
        condition
        for condition in system.conditions
        if (condition.component, condition.part) == (component, part)
    ]


def _isotropic(matrix: sympy.Matrix, component: int) -> sympy.Expr:
    if not (matrix - matrix[0, 0] * sympy.eye(matrix.rows)).expand().is_zero_matrix:
        raise UnsupportedProblem(
            f"component {component} is not fixed on the boundary, and its second derivatives along the axes "
            "have different factors: a condition for its normal derivative does not give the flux"
        )
    return matrix[0, 0]


def _normal(system: FirstOrderSystem, component: int, part: str) -> sympy.Expr:
    """Return the outward normal derivative of a component from its condition on a part of the boundary."""
    for condition in _given(system, component, part):
        factors = dict(condition.factors)
        if set(factors) <= {0, 1} and 1 in factors:
            value = _symbols(system)[component, 0]
            return (condition.value - factors.get(0, sympy.Integer(0)) * value) / factors[1]
    raise UnsupportedProblem(f"on '{part}' a condition for the value or the normal derivative is missing")
