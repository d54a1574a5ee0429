"""A problem as a system of first order in time, in terms of the derivatives that occur in it.

`u_tt = c**2*u_xx` becomes the two *components* u and u_t, with the rates u_t and c**2 times a *jet*: the value of
a derivative of a component at a point, which is one symbol here. Rates are then plain functions of coordinates and
jets, so that every method of discretisation only has to say what a jet is, and Jacobians follow from the partial
derivatives of the rates (method of lines; W. Schiesser, The Numerical Method of Lines, 1991).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import permutations
from typing import Any

import sympy

from sharp.error_messages import clip
from sharp.errors import SpecificationError
from sharp.problems import (
    Boundary,
    BoxDomain,
    DerivativeSymbol,
    DivergenceForm,
    FunctionSpec,
    Problem,
    divergence_form,
    opens,
    parts_at,
)
from sharp.solvers.strong_form import StrongForm

# Equations are matched with fields by trying all orders, up to so many.
_FEW_FIELDS = 6


class UnsupportedProblem(SpecificationError):
    """No method here can solve problems of this form; the message says what stands in the way."""


@dataclass(frozen=True)
class StateComponent:
    """A field (`order` 0) or its time derivative of some order, as one unknown of the first-order system."""

    field: str
    order: int


@dataclass(frozen=True)
class SpatialDerivative:
    """The derivative of a component, `by[i]` times along space axis i; none at all is the component itself.

    It is the `DerivativeSymbol` of the component's field, with time taken care of by the component.
    """

    component: int
    by: tuple[int, ...]

    @property
    def symbol(self) -> sympy.Symbol:
        """The symbol that stands for it in rates."""
        return real(f"jet {self.component} {' '.join(map(str, self.by))}")

    @property
    def order(self) -> int:
        """How often it is differentiated."""
        return sum(self.by)


@dataclass(frozen=True)
class BoundaryCondition:
    """On a part of the boundary, the sum of `factors[k]` times the outward normal derivative k equals `value`."""

    component: int
    part: str
    factors: Mapping[int, sympy.Expr]
    value: sympy.Expr


@dataclass(frozen=True)
class FluxCondition:
    """On a part of the boundary, the outward component of the flux in the component's equation equals `value`."""

    component: int
    part: str
    value: sympy.Expr


@dataclass(frozen=True, eq=False)
class FirstOrderSystem:
    """What is to be solved: rates of the components, or residuals that vanish in a steady problem.

    All expressions are in the symbols of space, time and jets; parameters are numbers, given coefficients are
    expressions. `rhs[i]` is the time derivative of component i, or a steady residual. In an eigenvalue problem
    `eigenvalue_terms[i]` is what the eigenvalue multiplies: rhs = eigenvalue * terms. `mass_matrix` has the factors of
    the highest time derivatives, by equation and field, that was divided by; the identity in a steady problem.

    `rows` says which equation belongs to which field. Where `inertia` [c, c] is given, rates are what it times the time
    derivatives of the components equals: it is singular where a field such as a pressure has none. `flux_conditions`
    are those that say nothing of a single normal derivative, and `divergences` the divergence forms of the equations
    in jets, by component; None for a component whose rate is another one.
    """

    problem: Problem
    components: tuple[StateComponent, ...]
    jets: tuple[SpatialDerivative, ...]
    rhs: tuple[sympy.Expr, ...]
    conditions: tuple[BoundaryCondition, ...]
    initial: tuple[sympy.Expr, ...]
    mean: Mapping[int, sympy.Expr]
    eigenvalue_terms: tuple[sympy.Expr, ...]
    mass_matrix: sympy.Matrix
    rows: tuple[int, ...] = ()
    divergences: tuple[DivergenceForm | None, ...] = ()
    flux_conditions: tuple[FluxCondition, ...] = ()
    inertia: sympy.Matrix | None = None

    @cached_property
    def constrained(self) -> tuple[int, ...]:
        """The components that are there for a constraint on others to be met: pressures.

        The equation of such a one has derivatives of other fields and none of its own, and no equation has second ones.
        """
        if self.eigenvalue_terms or len(self.problem.fields) == 1:
            return ()
        return tuple(index for index in range(len(self.components)) if self._is_multiplier(index))

    def _is_multiplier(self, index: int) -> bool:
        if not self.rhs[index].free_symbols or self.components[index].order:
            return False
        if self.inertia is not None and not self.inertia.row(index).is_zero_matrix:
            return False
        if self.inertia is None and not self.steady:
            return False
        own = [(i, self.jets[j].order) for i, j in self.jacobian if self.jets[j].component == index]
        others = [j for i, j in self.jacobian if i == index and self.jets[j].component != index]
        return (
            max((order for _, order in own), default=0) == 1
            and all(order == 0 for i, order in own if i == index)
            and any(self.jets[j].order == 1 for j in others)
        )

    @property
    def space(self) -> tuple[str, ...]:
        """The space coordinates."""
        return self.problem.space

    @property
    def time(self) -> str:
        """The name of the time coordinate; steady problems have one that occurs nowhere."""
        return self.problem.time_name or "time"

    @property
    def steady(self) -> bool:
        """Whether nothing depends on time."""
        return self.problem.time is None

    @property
    def periodic(self) -> frozenset[str]:
        """The axes along which everything repeats."""
        conditions = self.problem.specification.boundary
        return frozenset(str(condition.axis) for condition in conditions if condition.type == "periodic")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all arguments of the rates: space, time, jets."""
        return (*self.space, self.time, *(jet.symbol.name for jet in self.jets))

    @cached_property
    def jacobian(self) -> Mapping[tuple[int, int], sympy.Expr]:
        """The partial derivatives of rate i by jet j that are not zero, by (i, j)."""
        return self._partial(self.rhs)

    @cached_property
    def mass(self) -> Mapping[tuple[int, int], sympy.Expr]:
        """The partial derivatives of weight i by jet j that are not zero, by (i, j)."""
        return self._partial(self.eigenvalue_terms)

    def _partial(self, expressions: Sequence[sympy.Expr]) -> Mapping[tuple[int, int], sympy.Expr]:
        partial = {
            (i, j): sympy.diff(expression, jet.symbol)
            for i, expression in enumerate(expressions)
            for j, jet in enumerate(self.jets)
        }
        return {place: expression for place, expression in partial.items() if expression != 0}

    @cached_property
    def linear(self) -> bool:
        """Whether the rates are affine in the jets, and so are conditions."""
        slopes = (sympy.diff(given, symbol) for given, held in self.fields_in_conditions for symbol in held)
        return not any(map(_jets_of, (*self.jacobian.values(), *slopes)))

    @property
    def fields_in_conditions(self) -> Iterator[tuple[Any, set[Any]]]:
        """Yield what of conditions depends on fields at the boundary, and the jets in it."""
        conditions: tuple[BoundaryCondition | FluxCondition, ...] = (*self.conditions, *self.flux_conditions)
        given = [condition.value for condition in conditions]
        factors = [factor for condition in self.conditions for factor in condition.factors.values()]
        # A factor multiplies the field or its normal derivative, which stand for the jets here.
        products = [sympy.Mul(*_jets_of(factor), factor) for factor in factors if _jets_of(factor)]
        yield from ((each, _jets_of(each)) for each in (*given, *products) if _jets_of(each))

    @cached_property
    def conditions_hold_fields(self) -> bool:
        """Whether the value or a factor of a condition depends on fields at the boundary."""
        return any(True for _ in self.fields_in_conditions)

    @cached_property
    def constant_operator(self) -> bool:
        """Whether the rates are affine in the jets with factors that do not depend on time."""
        time = real(self.time)
        factors = (factor for condition in self.conditions for factor in condition.factors.values())
        held = (given for given, _ in self.fields_in_conditions)
        return self.linear and not any(
            time in expression.free_symbols for expression in (*self.jacobian.values(), *factors, *held)
        )


def _jets_of(expression: Any) -> set[Any]:
    return {symbol for symbol in expression.free_symbols if symbol.name.startswith("jet ")}


def real(name: str) -> sympy.Symbol:
    """Return the symbol of a name in rates and conditions: all values are real, which makes abs(u) differentiable."""
    return sympy.Symbol(name, real=True)


@lru_cache(maxsize=16)
def system_of(problem: Problem) -> FirstOrderSystem:
    """Return the first-order system of a problem; kept for the next step that needs it, as sympy takes its time.

    Raises `UnsupportedProblem` for problems with sampled functions, for equations that cannot be solved for the highest
    time derivatives, and for space derivatives of these.
    """
    return _Builder(problem).system()


class _Builder:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.spec = problem.specification
        self.dimension = len(problem.space)
        self.written = StrongForm.of(problem)
        self.orders = {name: self._time_order(name) for name in problem.fields}
        self.components = tuple(
            StateComponent(name, order)
            for name in problem.fields
            for order in range(max(1, self.orders[name]))
        )
        self.index = {component: index for index, component in enumerate(self.components)}

    def _time_order(self, field: str) -> int:
        if self.problem.time_name is None:
            return 0
        from sharp.problems import order

        found = order(self.problem.equations, field, self.problem.time_name, self.problem.space)
        return found or 0

    def system(self) -> FirstOrderSystem:
        for name, given in self.spec.coefficients.items():
            self._stated(name, given)
        residuals = [self._residual(index) for index in range(len(self.problem.equations))]
        conditions, fluxes = self._conditions()
        implicit = self.problem.time is not None and (bool(fluxes) or not all(self.orders.values()))
        rows = tuple(range(len(residuals)))
        if implicit or self.problem.time is None:
            rows = self._matched(residuals)
            residuals = [residuals[row] for row in rows]
        whole = None
        if implicit:
            rates, whole = self._implicit(residuals)
            weights, inertia = (), sympy.eye(len(residuals))
        else:
            rates, weights, inertia = self._rates(residuals)
        jets = sorted(
            {jet for expression in (*rates, *weights) for jet in self._jets_in(expression)},
            key=lambda jet: (jet.component, jet.by),
        )
        return FirstOrderSystem(
            self.problem,
            self.components,
            tuple(jets),
            rates,
            conditions,
            self._initial(),
            {
                self.index[StateComponent(name, 0)]: self.written.expression(text)
                for name, text in self.spec.mean.items()
            },
            weights,
            inertia,
            rows,
            self._divergences(rows),
            fluxes,
            whole,
        )

    def _matched(self, residuals: Sequence[Any]) -> tuple[int, ...]:
        """Return for each field the equation that belongs to it: the one with its time and pure second derivatives."""
        fields = self.problem.fields
        if not 1 < len(fields) <= _FEW_FIELDS:
            return tuple(range(len(residuals)))
        scores = [[self._belongs(residual, field) for residual in residuals] for field in fields]
        # Of equally good ones the first, which leaves equations as they are written where that will do.
        return max(
            permutations(range(len(residuals))),
            key=lambda rows: sum(scores[field][row] for field, row in enumerate(rows)),
        )

    def _belongs(self, residual: Any, field: str) -> int:
        jets = [jet for jet in self._jets_in(residual) if self.components[jet.component].field == field]
        return 8 * (_rate_symbol(field) in residual.free_symbols) + sum(2 in jet.by for jet in jets)

    def _implicit(self, residuals: Sequence[Any]) -> tuple[tuple[Any, ...], Any]:
        """Return rates and the matrix that multiplies time derivatives, by component."""
        tops = [_rate_symbol(name) for name in self.problem.fields]
        matrix, rest = _affine(residuals, tops)
        if matrix.free_symbols - {real(name) for name in self.problem.space}:
            raise UnsupportedProblem(
                "equations with constraints or flux conditions need factors of the time derivatives that depend on "
                "the place alone"
            )
        count = len(self.components)
        rates, inertia = [sympy.Integer(0)] * count, sympy.zeros(count)
        top = [
            max(i for i, each in enumerate(self.components) if each.field == name)
            for name in self.problem.fields
        ]
        for index, component in enumerate(self.components):
            if index not in top:
                following = SpatialDerivative(index + 1, (0,) * self.dimension)
                rates[index], inertia[index, index] = following.symbol, sympy.Integer(1)
                continue
            row = self.problem.fields.index(component.field)
            rates[index] = _distributed(-rest[row])
            for column, name in enumerate(self.problem.fields):
                if self.orders[name]:
                    inertia[index, top[column]] = matrix[row, column]
        return tuple(rates), inertia

    def _divergences(self, rows: Sequence[int]) -> tuple[DivergenceForm | None, ...]:
        """Return the divergence forms of the equations in jets; those of eigenvalue problems are not asked for."""
        if self.spec.eigenvalue:
            return ()
        found = []
        for component in self.components:
            last = component.order == max(1, self.orders[component.field]) - 1
            row = rows[self.problem.fields.index(component.field)]
            found.append(self._divergence(row, component.field) if last else None)
        return tuple(found)

    def _divergence(self, row: int, field: str) -> DivergenceForm:
        written = self.written.equation(row).xreplace(self.written.numbers)
        space = [real(name) for name in self.problem.space]
        coordinates = [*space, *([real(self.problem.time_name)] if self.problem.time_name else [])]
        form = divergence_form(written, sympy.Function(field)(*coordinates), space)
        return DivergenceForm(
            tuple(self._with_symbols(part) for part in form.flux),
            self._with_symbols(form.rest),
            form.sign,
            form.ambiguous,
        )

    def _residual(self, index: int) -> Any:
        try:
            return self._with_symbols(self.written.equation(index).doit()).xreplace(self.written.numbers)
        except (TypeError, ValueError, ArithmeticError) as error:
            text = clip(self.spec.equations[index])
            raise UnsupportedProblem(f"the equation '{text}' cannot be evaluated: {error}") from None

    def _with_symbols(self, residual: Any) -> Any:
        derivatives = {part: self._symbol(part) for part in residual.atoms(sympy.Derivative)}
        replaced = residual.xreplace(derivatives)
        values = {part: self._symbol(part) for part in replaced.atoms(sympy.core.function.AppliedUndef)}
        return replaced.xreplace(values)

    def _symbol(self, part: Any) -> Any:
        jet = DerivativeSymbol.of(part, tuple(self.written.coordinates.values()))
        by, order = jet.orders[: self.dimension], sum(jet.orders[self.dimension :])
        if order and order == self.orders[jet.field]:
            if any(by):
                raise UnsupportedProblem(
                    f"'{part}' is a space derivative of the highest time derivative of '{jet.field}'"
                )
            return _rate_symbol(jet.field)
        return SpatialDerivative(self.index[StateComponent(jet.field, order)], by).symbol

    def _rates(self, residuals: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
        if self.spec.eigenvalue:
            return *self._pencil(residuals), sympy.eye(len(residuals))
        if self.problem.time is None:
            return tuple(residuals), (), sympy.eye(len(residuals))
        tops = [_rate_symbol(name) for name in self.problem.fields]
        matrix, rest = _affine(residuals, tops)
        solved = dict(zip(self.problem.fields, _solve_small(matrix, rest), strict=True))
        return tuple(self._rate(component, solved) for component in self.components), (), matrix

    def _rate(self, component: StateComponent, solved: Mapping[str, Any]) -> Any:
        if component.order + 1 < self.orders[component.field]:
            following = self.index[StateComponent(component.field, component.order + 1)]
            return SpatialDerivative(following, (0,) * self.dimension).symbol
        return solved[component.field]

    def _pencil(self, residuals: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Split residuals into `operator - eigenvalue * weight`."""
        assert self.spec.eigenvalue is not None
        unknown = sympy.Symbol(self.spec.eigenvalue.name)
        weights = tuple(-sympy.diff(residual, unknown) for residual in residuals)
        if any(unknown in weight.free_symbols for weight in weights):
            raise UnsupportedProblem(f"the equations are not linear in the eigenvalue '{unknown}'")
        return tuple(residual.xreplace({unknown: sympy.Integer(0)}).doit() for residual in residuals), weights

    def _jets_in(self, expression: Any) -> list[SpatialDerivative]:
        found = []
        for symbol in expression.free_symbols:
            if symbol.name.startswith("jet "):
                component, *by = map(int, symbol.name.split()[1:])
                found.append(SpatialDerivative(component, tuple(by)))
        return found

    def _conditions(self) -> tuple[tuple[BoundaryCondition, ...], tuple[FluxCondition, ...]]:
        found: list[BoundaryCondition] = []
        fluxes: list[FluxCondition] = []
        for written in self.spec.boundary:
            if written.type == "periodic":
                continue
            for part in covered(self.problem, str(written.where)):
                if opens(self.problem, written, part):
                    continue
                value = self._given(str(written.value))
                if written.type != "flux":
                    texts = factors_of(written).items()
                    factors = {order: self._given(text) for order, text in texts}
                elif (normal := self._normal_flux(str(written.field), part)) is not None:
                    factors = normal
                else:
                    order = max(1, self.orders[str(written.field)]) - 1
                    place = self.index[StateComponent(str(written.field), order)]
                    fluxes.append(FluxCondition(place, part, value))
                    continue
                found += self._levels(written, part, factors, value)
        return tuple(found), tuple(fluxes)

    def _given(self, text: str) -> Any:
        """Return an expression of a condition; fields in it are their values at the boundary."""
        own = (0,) * self.dimension
        fields = {
            sympy.Symbol(name): SpatialDerivative(self.index[StateComponent(name, 0)], own).symbol
            for name in self.problem.fields
        }
        return self.written.expression(text).xreplace(fields)

    def _normal_flux(self, field: str, part: str) -> dict[int, Any] | None:
        """Return the factors of the field and of its normal derivative in the flux through a part of the boundary.

        None where that holds more: other fields, derivatives along the boundary, factors that depend on the solution.
        """
        form = self._equation_divergence(field)
        index = self.index[StateComponent(field, 0)]
        units = [tuple(int(k == axis) for k in range(self.dimension)) for axis in range(self.dimension)]
        slopes = [SpatialDerivative(index, unit).symbol for unit in units]
        own = SpatialDerivative(index, (0,) * self.dimension).symbol
        if isinstance(self.problem.domain, BoxDomain):
            axes = [self.problem.space.index(part[:-1])]
        else:
            axes = list(range(self.dimension))
        found = []
        for axis in axes:
            through = form.flux[axis]
            factors = {0: sympy.diff(through, own), 1: sympy.diff(through, slopes[axis])}
            left = sympy.expand(through - factors[0] * own - factors[1] * slopes[axis])
            if left != 0 or any(self._jets_in(factor) for factor in factors.values()):
                return None
            found.append(factors)
        if any(factors != found[0] for factors in found) or (len(axes) > 1 and found[0][0] != 0):
            return None
        side = -1 if isinstance(self.problem.domain, BoxDomain) and part[-1] == "-" else 1
        factors = {1: found[0][1]} | ({0: side * found[0][0]} if found[0][0] != 0 else {})
        return None if factors[1] == 0 else factors

    def _equation_divergence(self, field: str) -> DivergenceForm:
        """Return the divergence form of the equation of a field; raises `UnsupportedProblem` where it has no flux."""
        residuals = [self._residual(index) for index in range(len(self.problem.equations))]
        row = self._matched(residuals)[self.problem.fields.index(field)]
        form = self._divergence(row, field)
        if form.ambiguous:
            raise UnsupportedProblem(
                f"the equation of '{field}' has a mixed derivative outside of parentheses, so that its flux is not "
                "known; write it as (…)_x + (…)_y"
            )
        if not any(self._jets_in(part) for part in form.flux):
            raise UnsupportedProblem(
                f"the equation of '{field}' is no divergence, so that there is no flux to give; write it as div(…) or "
                "(…)_x + (…)_y"
            )
        return form

    def _levels(
        self, written: Boundary, part: str, factors: Mapping[int, Any], value: Any
    ) -> list[BoundaryCondition]:
        time = real(self.problem.time_name or "")
        levels = max(1, self.orders[str(written.field)])
        if any(map(_jets_of, (value, *factors.values()))):
            # Only weak forms take such conditions, and these ask for no time derivatives of a flux.
            levels = 1
        if levels > 1 and any(time in factor.free_symbols for factor in factors.values()):
            raise UnsupportedProblem(
                "conditions of second-order problems need factors that do not depend on time"
            )
        return [
            BoundaryCondition(
                self.index[StateComponent(str(written.field), level)],
                part,
                factors,
                sympy.diff(value, time, level) if level else value,
            )
            for level in range(levels)
        ]

    def _initial(self) -> tuple[Any, ...]:
        if self.problem.time is None:
            return ()
        return tuple(self._start(component) for component in self.components)

    def _start(self, component: StateComponent) -> Any:
        if not self.orders[component.field]:
            return sympy.Integer(0)
        marks = str(self.problem.time_name) * component.order
        name = component.field + (f"_{marks}" if marks else "")
        return self.written.expression(self._stated(name, self.spec.initial[name]))

    def _stated(self, name: str, given: FunctionSpec) -> str:
        if given.expression is None:
            raise UnsupportedProblem(
                f"'{name}' is sampled from the family {given.family}; a solution needs one expression"
            )
        return given.expression


def linearised(system: FirstOrderSystem, curvature: float = 0.0) -> FirstOrderSystem | None:
    """Return the system whose steady equations are linearised about zero, None where they have no finite one there.

    With a `curvature` it is about fields that have it along every axis, all else being zero.
    """
    zero = {
        jet.symbol: sympy.Float(curvature)
        if curvature and jet.order == 2 == max(jet.by)
        else sympy.Integer(0)
        for jet in system.jets
    }

    def tangent(expression: Any) -> Any:
        parts = [
            sympy.diff(expression, symbol).xreplace(zero) * (symbol - about) for symbol, about in zero.items()
        ]
        return expression.xreplace(zero) + sympy.Add(*parts)

    def affine(condition: Any) -> Any:
        """A condition is linear in what it holds, and in what its factors multiply."""
        own = SpatialDerivative(condition.component, (0,) * len(system.space)).symbol
        factors = dict(getattr(condition, "factors", {}))
        moved = {order: factor.xreplace(zero) for order, factor in factors.items()}
        value = tangent(condition.value)
        if not factors:
            return replace(condition, value=value)
        if 0 in factors:
            moved[0] = sympy.diff(factors[0] * own, own).xreplace(zero)
        return replace(condition, value=value, factors=moved)

    zero |= {symbol: sympy.Integer(0) for _, held in system.fields_in_conditions for symbol in held}
    try:
        rates = tuple(map(tangent, system.rhs))
        conditions = tuple(map(affine, system.conditions))
        fluxes = tuple(map(affine, system.flux_conditions))
        forms = tuple(
            form and replace(form, flux=tuple(map(tangent, form.flux)), rest=tangent(form.rest))
            for form in system.divergences
        )
    except (ZeroDivisionError, ValueError, TypeError):
        return None
    given = [condition.value for condition in (*conditions, *fluxes)]
    parts = [*rates, *given, *(part for form in forms if form for part in (*form.flux, form.rest))]
    if any(part.has(sympy.nan, sympy.zoo, sympy.oo, sympy.I) for part in parts):
        return None
    return replace(system, rhs=rates, divergences=forms, conditions=conditions, flux_conditions=fluxes)


def covered(problem: Problem, where: str) -> tuple[str, ...]:
    """Return the parts of the boundary that the `where` of a checked condition covers."""
    return parts_at(problem, where)


def symmetry_axis(problem: Problem) -> tuple[str, ...]:
    """Return the parts of the boundary that lie on the axis or in the centre of a cylindrical or spherical system."""
    from sharp.problems import axis_parts

    return axis_parts(problem.specification.coordinates, problem.domain)


SINGULAR_AXIS = "the equations divide by a distance that is 0 on the axis of symmetry"


def factors_of(written: Boundary) -> dict[int, str]:
    """Return the factors of the outward normal derivatives, by their order, on the left side of a condition."""
    match written.type:
        case "dirichlet":
            return {0: "1"}
        case "neumann":
            return {1: "1"}
        case "robin":
            return {0: str(written.a), 1: str(written.b)}
        case _:
            return {int(written.order or 0): "1"}


def _rate_symbol(field: str) -> sympy.Symbol:
    return real(f"rate {field}")


def _affine(residuals: Sequence[Any], unknowns: Sequence[Any]) -> tuple[Any, Any]:
    """Return A and b of `A unknowns + b`; raises `UnsupportedProblem` where the unknowns do not enter linearly."""
    matrix = sympy.Matrix([[sympy.diff(residual, name) for name in unknowns] for residual in residuals])
    if set(unknowns) & matrix.free_symbols:
        raise UnsupportedProblem("the equations are not linear in their highest time derivatives")
    zero = dict.fromkeys(unknowns, sympy.Integer(0))
    return matrix, sympy.Matrix([residual.xreplace(zero).doit() for residual in residuals])


def _solve_small(matrix: Any, rest: Any) -> list[Any]:
    if sympy.simplify(matrix.det()) == 0:
        raise UnsupportedProblem("the equations cannot be solved for the highest time derivatives")
    if matrix.is_diagonal():
        return [_distributed(-rest[i] / matrix[i, i]) for i in range(len(rest))]
    return [_distributed(-entry) for entry in matrix.LUsolve(rest)]


def _distributed(expression: Any) -> Any:
    """Return a sum of terms, with functions as they are: `exp((x - t)**2)` taken apart would overflow."""
    return sympy.expand_mul(expression, deep=False)
