"""The gas that the equations of a compressible Navier-Stokes problem describe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sharp.errors import SpecificationError
from sharp.problems.problem import Problem

FIELDS = ("Vx", "density", "pressure")


@dataclass(frozen=True)
class Gas:
    """An ideal gas: ratio of specific heats, and longitudinal viscosity `mu = viscosity * rho**exponent`.

    mu is that of the stress `mu v_x`: dynamic if the exponent is 0, kinematic if it is 1.
    """

    gamma: float
    viscosity: float
    exponent: float = 0.0

    def mu(self, density: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the viscosity at a density."""
        return self.viscosity * density**self.exponent


def gas_of(problem: Problem) -> Gas:
    """Return the gas of a problem with the fields Vx, density, pressure and the parameter Gamma.

    The viscosity is read off the momentum equation: density times the ratio of the coefficients of Vx_xx
    and Vx_t. Raises `SpecificationError` where that is no positive multiple of a power of the density.
    """
    values = _viscosities(problem, (1.0, 2.0, 3.0))
    exponent = float(np.log2(values[1] / values[0])) if np.min(values) > 0 else float("nan")
    if not np.isclose(values[2], values[0] * 3.0**exponent):
        raise SpecificationError(
            f"{problem.id}: expected the viscosity in the momentum equation to be a positive multiple of a "
            f"power of the density, found {values} at the densities 1, 2 and 3"
        )
    return Gas(problem.parameters["Gamma"], values[0], round(exponent, 9))


def _viscosities(problem: Problem, densities: tuple[float, ...]) -> list[float]:
    """Return the viscosity that the momentum equation has at some densities."""
    import sympy

    from sharp.problems.symbolic import equation_to_sympy

    clock = problem.specification.coordinates.time
    x, t = sympy.Symbol(problem.space[0]), sympy.Symbol(str(clock))
    v, density, pressure = (sympy.Function(field)(x, t) for field in FIELDS)
    for equation in problem.equations:
        sides = equation_to_sympy(equation, problem.fields, problem.space, clock)
        terms = (sides.lhs - sides.rhs).doit().expand()
        inertia = terms.coeff(v.diff(t))
        if inertia != 0 and not terms.has(pressure.diff(t)):
            viscosity = (-density * terms.coeff(v.diff(x, 2)) / inertia).subs(dict(problem.parameters))
            found = [viscosity.subs(density, value) for value in densities]
            return [float(value) if value.is_number else float("nan") for value in found]
    raise SpecificationError(
        f"{problem.id}: expected a momentum equation, with Vx_t and without pressure_t; found none"
    )
