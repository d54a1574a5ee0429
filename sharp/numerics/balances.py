"""The equations of the one-dimensional problem families as balances of time and space derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sharp.numerics.gas import Gas, gas_of
from sharp.numerics.stencils import SpaceOperators
from sharp.problems.problem import Problem

Array = NDArray[np.float64]
Fields = Mapping[str, Array]


@dataclass(frozen=True)
class Term:
    """The term `d^order/dx^order of flux`; order 0 is a source with its sign changed."""

    order: int
    flux: Array


@dataclass(frozen=True)
class Equation:
    """`quantity_t + sum of terms = 0`; `diffusivity` is that of the quantity, 0 where it does not diffuse."""

    quantity: Array
    terms: tuple[Term, ...]
    diffusivity: float = 0.0


@dataclass(frozen=True)
class Balance:
    """The equations of one problem for given fields [..., N], by name.

    `speed(fields)` is how fast steep flanks may move; None where none form.
    """

    equations: Callable[[Fields, SpaceOperators], Mapping[str, Equation]]
    speed: Callable[[Fields], float] | None = None


def advection(problem: Problem) -> Balance:
    """u_t + (beta u)_x = 0."""
    beta = problem.parameters["beta"]
    return Balance(lambda fields, _: {"u": Equation(fields["u"], (Term(1, beta * fields["u"]),))})


def burgers(problem: Problem) -> Balance:
    """u_t + (u^2/2)_x - (nu/pi u)_xx = 0."""
    viscosity = problem.parameters["nu"] / np.pi

    def equations(fields: Fields, _: SpaceOperators) -> dict[str, Equation]:
        u = fields["u"]
        return {"u": Equation(u, (Term(1, 0.5 * u**2), Term(2, -viscosity * u)), viscosity)}

    return Balance(equations, lambda fields: float(np.abs(fields["u"]).max()))


def reaction_diffusion(problem: Problem) -> Balance:
    """u_t - (nu u)_xx - rho u (1 - u) = 0."""
    nu, rho = problem.parameters["nu"], problem.parameters["rho"]

    def equations(fields: Fields, _: SpaceOperators) -> dict[str, Equation]:
        u = fields["u"]
        return {"u": Equation(u, (Term(2, -nu * u), Term(0, -rho * u * (1 - u))), nu)}

    return Balance(equations)


def navier_stokes(problem: Problem) -> Balance:
    """Mass, momentum and energy of the gas that the problem describes (see `navier_stokes`)."""
    gas = gas_of(problem)
    return Balance(lambda fields, d: _conservation(gas, fields, d), lambda fields: _fastest(gas, fields))


FAMILIES: Mapping[str, Callable[[Problem], Balance]] = {
    "advection": advection,
    "burgers": burgers,
    "reaction-diffusion": reaction_diffusion,
    "navier-stokes-1d": navier_stokes,
}


def _conservation(gas: Gas, fields: Fields, d: SpaceOperators) -> dict[str, Equation]:
    v, density, p = fields["Vx"], fields["density"], fields["pressure"]
    momentum = density * v
    energy = p / (gas.gamma - 1) + 0.5 * momentum * v
    friction = gas.mu(density) * d.first(v)
    diffusivity = float(gas.mu(density.mean()) / density.mean())
    return {
        "mass": Equation(density, (Term(1, momentum),)),
        "momentum": Equation(momentum, (Term(1, momentum * v), Term(1, p), Term(1, -friction)), diffusivity),
        "energy": Equation(energy, (Term(1, (energy + p) * v), Term(1, -friction * v)), diffusivity),
    }


def _fastest(gas: Gas, fields: Fields) -> float:
    sound = np.sqrt(np.maximum(gas.gamma * fields["pressure"] / fields["density"], 0.0))
    return float(np.max(np.abs(fields["Vx"]) + sound))
