"""A scalar equation read as a balance: u_t + Σ f_k(u)_k = Σ (d_k(u) u_k)_k + s."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy

from sharp.problems.programs import ExpressionProgram, compile_expressions
from sharp.solvers.system import FirstOrderSystem, SpatialDerivative, UnsupportedProblem, real


@dataclass(frozen=True)
class ScalarConservationLaw:
    """The flux, its derivative by u (the speed), and the diffusivity along every axis; and the source.

    All are expressions of space, time and u.
    """

    system: FirstOrderSystem
    fluxes: tuple[sympy.Expr, ...]
    speeds: tuple[sympy.Expr, ...]
    diffusivities: tuple[sympy.Expr, ...]
    source: sympy.Expr

    @cached_property
    def flux(self) -> tuple[ExpressionProgram, ...]:
        """For each axis a program for flux and speed; its arguments are space, time and u."""
        pairs = zip(self.fluxes, self.speeds, strict=True)
        return tuple(compile_expressions(list(pair), self._names) for pair in pairs)

    @cached_property
    def diffusivity(self) -> tuple[ExpressionProgram, ...]:
        """For each axis a program for the diffusivity."""
        return tuple(compile_expressions([factor], self._names) for factor in self.diffusivities)

    @cached_property
    def sources(self) -> ExpressionProgram:
        """A program for the source and its derivative by u."""
        slope = sympy.diff(self.source, _jet(self.system, {}))
        return compile_expressions([self.source, slope], self._names)

    @property
    def _names(self) -> tuple[str, ...]:
        return (*self.system.space, self.system.time, _jet(self.system, {}).name)


def conservation_law_of(system: FirstOrderSystem) -> ScalarConservationLaw:
    """Return the balance that a system of one equation of first order in time expresses.

    What is left of a derivative along an axis when a factor depends on place is a source. Raises `UnsupportedProblem`.
    """
    if system.steady or len(system.components) != 1:
        raise UnsupportedProblem("finite volumes here advance one equation of first order in time")
    if any(jet.order > 2 or (1 in jet.by and jet.order > 1) for jet in system.jets):
        raise UnsupportedProblem("a balance has no mixed derivatives and none above the second")
    axes = range(len(system.space))
    slopes = [_jet(system, {axis: 1}) for axis in axes]
    rest, diffusivities = _without_diffusion(system, slopes)
    speeds = tuple(-sympy.diff(rest, slope) for slope in slopes)
    if any(speed.free_symbols & set(slopes) for speed in speeds):
        raise UnsupportedProblem(
            "the equation is no balance of fluxes: it is not linear in the first derivatives"
        )
    fluxes = tuple(_primitive(speed, _jet(system, {})) for speed in speeds)
    source = rest.xreplace(dict.fromkeys(slopes, sympy.Integer(0)))
    explicit = [sympy.diff(flux, real(name)) for flux, name in zip(fluxes, system.space, strict=True)]
    return ScalarConservationLaw(
        system, fluxes, speeds, diffusivities, sympy.expand_mul(source + sympy.Add(*explicit), deep=False)
    )


def _without_diffusion(system: FirstOrderSystem, slopes: list[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the rate less all diffusion, and the diffusivity along every axis."""
    rest, u = system.rhs[0], _jet(system, {})
    second = [_jet(system, {axis: 2}) for axis in range(len(slopes))]
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


def _jet(system: FirstOrderSystem, orders: dict[int, int]) -> Any:
    return SpatialDerivative(0, tuple(orders.get(axis, 0) for axis in range(len(system.space)))).symbol
