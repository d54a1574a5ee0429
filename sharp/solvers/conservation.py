"""Systems of conservation laws as finite volumes need them: fluxes along every axis, sources, speeds of waves.

`u_t + f(u)_x + g(u)_y = (d(u)*u_x)_x + … + s(u)` for a vector u of conserved fields. Jumps move as the fluxes say that
are written behind the derivatives, so that a system is read as it is written and no product is differentiated
(R. J. LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002, ch. 11 and 12).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import sympy

from sharp.problems import ExpressionProgram, Problem, compile_expressions
from sharp.solvers.strong_form import JUMPS, StrongForm
from sharp.solvers.system import FirstOrderSystem, SpatialDerivative, UnsupportedProblem, real, system_of
from sharp.solvers.wave_speeds import exact, radicands, wave_speeds

_KINKS = (*JUMPS, sympy.Max, sympy.Min, sympy.Abs)


@dataclass(frozen=True)
class ConservationLaw:
    """Fluxes and diffusive fluxes by axis and field, and sources by field.

    All are expressions of space, time and fields; those of diffusion hold first derivatives as well. Rates are sources
    less the divergence of the fluxes plus that of the diffusive ones. `potentials` are functions of the fields with
    kinks, such as a temperature that rests while ice melts: derivatives of them along an axis have symbols of their
    own, as the chain rule fails where fields jump.
    """

    system: FirstOrderSystem
    fluxes: tuple[tuple[Any, ...], ...]
    diffusive: tuple[tuple[Any, ...], ...]
    sources: tuple[Any, ...]
    potentials: tuple[Any, ...] = ()

    @property
    def size(self) -> int:
        """The number of conserved fields."""
        return len(self.sources)

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments of all programs but those of diffusion: space, time, fields."""
        return (*self.system.space, self.system.time, *(field.name for field in self.fields))

    @property
    def fields(self) -> tuple[Any, ...]:
        """The symbols of the conserved fields."""
        return tuple(_jet(self.system, index) for index in range(self.size))

    @cached_property
    def slopes(self) -> tuple[Any, ...]:
        """The symbols of the first derivatives of all fields: along the first axis, then along the next."""
        axes = range(len(self.system.space))
        return tuple(_jet(self.system, index, axis) for axis in axes for index in range(self.size))

    @cached_property
    def flux(self) -> tuple[ExpressionProgram, ...]:
        """For each axis a program of the fluxes."""
        return tuple(compile_expressions(own, self.names) for own in self.fluxes)

    @cached_property
    def jacobians(self) -> tuple[Any, ...]:
        """For each axis the matrix of the derivatives of the fluxes by the fields."""
        return tuple(sympy.Matrix(own).jacobian(sympy.Matrix(self.fields)) for own in self.fluxes)

    @cached_property
    def speeds(self) -> tuple[tuple[Any, ...] | None, ...]:
        """For each axis the speeds of all waves, None where there is no formula."""
        return tuple(wave_speeds(matrix) for matrix in self.jacobians)

    @cached_property
    def speed(self) -> tuple[ExpressionProgram | None, ...]:
        """For each axis a program of the speeds of all waves, None where there is no formula."""
        return tuple(None if own is None else compile_expressions(own, self.names) for own in self.speeds)

    @cached_property
    def jacobian(self) -> tuple[ExpressionProgram, ...]:
        """For each axis a program of the entries of the Jacobian, row by row."""
        return tuple(compile_expressions(list(matrix), self.names) for matrix in self.jacobians)

    @cached_property
    def potential(self) -> ExpressionProgram:
        """A program of the potentials by the fields."""
        return compile_expressions(self.potentials, [field.name for field in self.fields])

    @cached_property
    def frozen(self) -> tuple[Any, ...]:
        """What vanishes where nothing diffuses although fields differ: the slopes of all potentials, squared."""
        return tuple(
            sympy.Add(*(sympy.diff(part, field) ** 2 for field in self.fields)) for part in self.potentials
        )

    @cached_property
    def diffusion(self) -> tuple[ExpressionProgram | None, ...]:
        """For each axis a program of the diffusive fluxes; None without any.

        It takes the slopes of fields, and those of potentials along the axis, as well.
        """
        names = (*self.names, *(slope.name for slope in self.slopes))
        return tuple(
            compile_expressions(own, (*names, *(rise.name for rise in self._rises(axis))))
            if any(part != 0 for part in own)
            else None
            for axis, own in enumerate(self.diffusive)
        )

    @cached_property
    def diffusivity(self) -> tuple[ExpressionProgram | None, ...]:
        """For each axis a program of the derivatives of the diffusive fluxes by the slopes along it, row by row."""
        names = (*self.names, *(slope.name for slope in self.slopes))
        found: list[ExpressionProgram | None] = []
        for axis, own in enumerate(self.diffusive):
            along = [_jet(self.system, index, axis) for index in range(self.size)]
            chained = {
                rise: sympy.Add(
                    *(
                        sympy.diff(potential, field) * slope
                        for field, slope in zip(self.fields, along, strict=True)
                    )
                )
                for rise, potential in zip(self._rises(axis), self.potentials, strict=True)
            }
            expanded = [part.xreplace(chained) for part in own]
            entries = list(sympy.Matrix(expanded).jacobian(sympy.Matrix(along)))
            used = any(entry != 0 for entry in entries)
            found.append(compile_expressions(entries, names) if used else None)
        return tuple(found)

    def _rises(self, axis: int) -> list[Any]:
        return [_rise(index, axis) for index in range(len(self.potentials))]

    @cached_property
    def source(self) -> ExpressionProgram | None:
        """A program of the sources, None where there are none."""
        return compile_expressions(self.sources, self.names) if any(self.sources) else None

    @cached_property
    def source_slopes(self) -> ExpressionProgram:
        """A program of the derivatives of the sources by the fields, row by row."""
        return compile_expressions(
            list(sympy.Matrix(self.sources).jacobian(sympy.Matrix(self.fields))), self.names
        )

    @cached_property
    def linear(self) -> bool:
        """Whether the fluxes are linear in the fields."""
        fields = set(self.fields)
        return not any(matrix.free_symbols & fields for matrix in self.jacobians)

    @cached_property
    def signed(self) -> tuple[Any, ...]:
        """What may not change its sign: denominators and arguments of roots and logarithms, radicands of speeds.

        A state beyond has no fluxes, or waves without speeds: density and pressure of a gas, the depth of water.
        """
        fields, found = set(self.fields), set()
        expressions = [part for own in (*self.fluxes, *self.diffusive, self.sources) for part in own]
        for expression in expressions:
            for part in sympy.preorder_traversal(expression):
                if isinstance(part, sympy.Pow) and not (part.exp.is_Integer and part.exp > 0):
                    found.add(part.base)
                elif isinstance(part, sympy.log):
                    found.add(part.args[0])
        for own in self.speeds:
            found |= radicands(own or ())
        parts = {factor for each in found for factor in _odd_factors(each)}
        return tuple(sorted((part for part in parts if part.free_symbols & fields), key=str))

    @cached_property
    def sign(self) -> ExpressionProgram:
        """A program of what may not change its sign."""
        return compile_expressions(self.signed, self.names)


def _odd_factors(expression: Any) -> Iterator[Any]:
    """Yield the factors of an expression that decide about its sign."""
    for factor in sympy.Mul.make_args(expression):
        base, power = factor.as_base_exp()
        if not (power.is_Integer and power % 2 == 0):
            yield base


def conservation_law_of(system: FirstOrderSystem) -> ConservationLaw:
    """Return the balance that a system of first order in time expresses.

    Raises `UnsupportedProblem`, which says what to write instead.
    """
    found = _law_of(system.problem)
    if isinstance(found, str):
        raise UnsupportedProblem(found)
    return found


@lru_cache(maxsize=8)
def _law_of(problem: Problem) -> ConservationLaw | str:
    """Return the balance of a problem, or why it has none; kept, as sympy takes its time."""
    try:
        return _read(system_of(problem))
    except UnsupportedProblem as error:
        return str(error)


def _read(system: FirstOrderSystem) -> ConservationLaw:
    if system.steady or any(component.order for component in system.components):
        raise UnsupportedProblem("finite volumes here advance equations of first order in time")
    try:
        return _Reader(system).law()
    except UnsupportedProblem:
        if len(system.components) > 1:
            raise
        return _scalar_law(system)


class _Reader:
    """Reads the equations as they are written, term by term."""

    def __init__(self, system: FirstOrderSystem) -> None:
        self.system = system
        self.written = StrongForm.of(system.problem)
        # Fractions, as 1.4 - 1 is not 0.4 in float arithmetic, and factors of polynomials would not be found.
        self.numbers = {name: exact(number) for name, number in self.written.numbers.items()}
        self.axes = {real(name): index for index, name in enumerate(system.space)}
        self.size = len(system.components)
        self.potentials: list[Any] = []

    def law(self) -> ConservationLaw:
        inertia = self.system.mass_matrix
        if inertia.free_symbols:
            raise UnsupportedProblem(
                "the time derivatives have factors that vary: make what is conserved, such as rho*u, a field"
            )
        parts = [self._equation(index) for index in range(self.size)]
        inverse = inertia.inv()
        axes = range(len(self.axes))

        def combined(columns: list[Any]) -> tuple[Any, ...]:
            return tuple(inverse * sympy.Matrix(columns))

        fluxes = tuple(combined([own[0][axis] for own in parts]) for axis in axes)
        zero = dict.fromkeys(
            (_jet(self.system, index, axis) for index in range(self.size) for axis in axes), sympy.Integer(0)
        )
        for axis, index in product(axes, range(len(self.potentials))):
            zero[_rise(index, axis)] = sympy.Integer(0)
        smooth = [tuple(flux.xreplace(zero) for flux in own) for own in fluxes]
        diffusive = [
            tuple(convected - flux for convected, flux in zip(first, own, strict=True))
            for first, own in zip(smooth, fluxes, strict=True)
        ]
        sources = combined([-own[1] for own in parts])
        for axis, own in enumerate(diffusive):
            held = {symbol for flux in own for symbol in flux.free_symbols}
            others = [other for other in axes if other != axis]
            if any(
                _rise(index, other) in held for other, index in product(others, range(len(self.potentials)))
            ):
                raise UnsupportedProblem("what diffuses along one axis depends on a kink along another")
        return ConservationLaw(self.system, tuple(smooth), tuple(diffusive), sources, tuple(self.potentials))

    def _equation(self, index: int) -> tuple[list[Any], Any]:
        """Return the fluxes along the axes and the rest on the left side of an equation."""
        fluxes, rest = [sympy.Integer(0)] * len(self.axes), sympy.Integer(0)
        for front, part in self._terms(self.written.equation(index)):
            if not part.has(sympy.core.function.AppliedUndef) or not part.has(sympy.Derivative):
                rest += self._plain(front * part)
            elif not part.is_Derivative:
                raise self._no_balance(index, part)
            elif part.variables[-1] in self.axes:
                axis = part.variables[-1]
                inner = self._plain(_without_last(part))
                fluxes[self.axes[axis]] += self._plain(front) * inner
                slope = sympy.diff(self._plain(front), axis)
                if slope != 0:
                    if any(self._is_slope(symbol) for symbol in inner.free_symbols):
                        raise self._no_balance(index, front * part)
                    rest -= slope * inner
        return fluxes, rest

    def _terms(self, expression: Any) -> Iterator[tuple[Any, Any]]:
        """Yield for every summand a factor without fields and the rest."""
        if isinstance(expression, sympy.Add):
            for part in expression.args:
                yield from self._terms(part)
            return
        factors = sympy.Mul.make_args(expression)
        fixed = [part for part in factors if not part.has(sympy.core.function.AppliedUndef)]
        rest = [part for part in factors if part not in fixed]
        if fixed and len(rest) == 1:
            for factor, part in self._terms(rest[0]):
                yield sympy.Mul(*fixed, factor), part
        else:
            yield sympy.Integer(1), expression

    def _plain(self, expression: Any) -> Any:
        """Return an expression of symbols: numbers for parameters, a symbol for each field and slope."""
        expression = expression.xreplace(
            {part: self._kinked(part) for part in expression.atoms(sympy.Derivative) if self._is_kinked(part)}
        )
        expression = exact(expression.doit()).xreplace(self.numbers)
        replaced = {part: self._symbol(part) for part in expression.atoms(sympy.Derivative)}
        expression = expression.xreplace(replaced)
        fields = {part: self._symbol(part) for part in expression.atoms(sympy.core.function.AppliedUndef)}
        return expression.xreplace(fields)

    def _is_kinked(self, part: Any) -> bool:
        """Whether a first derivative is that of a function of the fields alone that has kinks."""
        calls = part.expr.atoms(sympy.core.function.AppliedUndef)
        rest = part.expr.xreplace(dict.fromkeys(calls, sympy.Integer(0)))
        alone = calls and not rest.free_symbols & {*self.axes, real(self.system.time)}
        first = len(part.variables) == 1 and part.variables[0] in self.axes
        return bool(alone and first and part.expr.has(*_KINKS) and not part.expr.has(sympy.Derivative))

    def _kinked(self, part: Any) -> Any:
        potential = self._plain(part.expr)
        if potential not in self.potentials:
            self.potentials.append(potential)
        return _rise(self.potentials.index(potential), self.axes[part.variables[0]])

    def _symbol(self, part: Any) -> Any:
        field = part.expr if part.is_Derivative else part
        by = part.variables if part.is_Derivative else ()
        if len(by) > 1 or any(name not in self.axes for name in by):
            raise UnsupportedProblem(f"'{part}' is no part of a flux: these hold first derivatives in space")
        index = self.system.problem.fields.index(field.func.__name__)
        return _jet(self.system, index, self.axes[by[0]]) if by else _jet(self.system, index)

    def _is_slope(self, symbol: Any) -> bool:
        return symbol.name.startswith("jet ") and "1" in symbol.name.split()[2:]

    def _no_balance(self, index: int, part: Any) -> UnsupportedProblem:
        problem = self.system.problem
        text = problem.specification.equations[index]
        return UnsupportedProblem(
            f"the equation '{text}' is not in conservation form: '{_shown(part)}' is a product with a derivative; "
            "write the flux of a conserved field as a whole behind the derivative, as in '(h*u)_x', and have "
            "conserved fields alone, such as h and q = h*u in the place of h and u"
        )


def _shown(part: Any) -> str:
    calls = {call: sympy.Symbol(call.func.__name__) for call in part.atoms(sympy.core.function.AppliedUndef)}
    marks = {
        mark: sympy.Symbol(f"{_enclosed(mark.expr.xreplace(calls))}_{''.join(map(str, mark.variables))}")
        for mark in part.atoms(sympy.Derivative)
    }
    return str(part.xreplace(marks).xreplace(calls))


def _enclosed(expression: Any) -> str:
    return str(expression) if expression.is_Symbol else f"({expression})"


def _without_last(derivative: Any) -> Any:
    *inner, _ = derivative.variables
    return sympy.Derivative(derivative.expr, *inner, evaluate=False) if inner else derivative.expr


def _jet(system: FirstOrderSystem, index: int, axis: int | None = None) -> Any:
    return SpatialDerivative(index, tuple(int(a == axis) for a in range(len(system.space)))).symbol


def _rise(index: int, axis: int) -> Any:
    """Return the symbol of the derivative of a potential along an axis."""
    return sympy.Symbol(f"rise {index} {axis}")


def _second(system: FirstOrderSystem, axis: int) -> Any:
    return SpatialDerivative(0, tuple(2 * (a == axis) for a in range(len(system.space)))).symbol


def _scalar_law(system: FirstOrderSystem) -> ConservationLaw:
    """Return the balance of one equation whose products are taken apart: `u*u_x` is the derivative of u**2/2."""
    if any(jet.order > 2 or (1 in jet.by and jet.order > 1) for jet in system.jets):
        raise UnsupportedProblem("a balance has no mixed derivatives and none above the second")
    slopes = [_jet(system, 0, axis) for axis in range(len(system.space))]
    rest, diffusivities = _without_diffusion(system, slopes)
    speeds = tuple(-sympy.diff(rest, slope) for slope in slopes)
    if any(speed.free_symbols & set(slopes) for speed in speeds):
        raise UnsupportedProblem(
            "the equation is no balance of fluxes: it is not linear in the first derivatives"
        )
    fluxes = tuple(_primitive(speed, _jet(system, 0)) for speed in speeds)
    source = rest.xreplace(dict.fromkeys(slopes, sympy.Integer(0)))
    explicit = [sympy.diff(flux, real(name)) for flux, name in zip(fluxes, system.space, strict=True)]
    total = sympy.expand_mul(source + sympy.Add(*explicit), deep=False)
    diffusive = tuple((factor * slope,) for factor, slope in zip(diffusivities, slopes, strict=True))
    return ConservationLaw(system, tuple((flux,) for flux in fluxes), diffusive, (total,))


def _without_diffusion(system: FirstOrderSystem, slopes: list[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the rate less all diffusion, and the diffusivity along every axis."""
    rest, u = system.rhs[0], _jet(system, 0)
    second = [_second(system, axis) for axis in range(len(slopes))]
    diffusivities = tuple(sympy.diff(rest, jet) for jet in second)
    if any(factor.free_symbols & {*second, *slopes} for factor in diffusivities):
        raise UnsupportedProblem("the diffusivity depends on derivatives")
    for factor, slope, curvature, name in zip(diffusivities, slopes, second, system.space, strict=True):
        rest -= factor * curvature
        rest -= (sympy.diff(factor, real(name)) + sympy.diff(factor, u) * slope) * slope
    return sympy.expand_mul(rest, deep=False), diffusivities


def _primitive(speed: Any, u: Any) -> Any:
    """Return a flux whose derivative by u is the speed, if there is a formula for one."""
    flux = sympy.integrate(speed, u)
    if flux.has(sympy.Integral):
        raise UnsupportedProblem(f"no formula was found for the flux whose derivative is '{speed}'")
    return flux
