from __future__ import annotations

import re

import numpy as np
import pytest

from sharp.errors import SpecificationError
from sharp.problems import Problem, list_problems, load_problem, parse_problem
from sharp.reference.lagrangian import Gas
from sharp.reference.navier_stokes import gas_of

VISCOSITY = 0.1 + 4 / 3 * 0.1


def with_momentum(equation: str) -> Problem:
    text = list_problems()["navier-stokes"].read_text()
    return parse_problem(re.sub(r"  - density\*\(Vx_t.*", f"  - {equation}", text), "navier-stokes")


def test_the_shipped_equations_have_the_viscosity_of_their_parameters() -> None:
    gas = gas_of(load_problem("navier-stokes"))
    assert gas.gamma == pytest.approx(5 / 3)
    assert gas.viscosity == pytest.approx(VISCOSITY)


@pytest.mark.parametrize(
    ("equation", "exponent"),
    [
        ("density*(Vx_t + Vx*Vx_x) = -pressure_x + (zeta + 4/3*eta)*Vx_xx", 0),
        ("(density*Vx)_t + (density*Vx**2 + pressure - (zeta + 4/3*eta)*Vx_x)_x = 0", 0),
        ("density*(Vx_t + Vx*Vx_x) = -pressure_x + (zeta + 4/3*eta)*(density*Vx_x)_x", 1),
        ("Vx_t + Vx*Vx_x + pressure_x/density = (zeta + 4/3*eta)*Vx_xx", 1),
        ("(density*Vx)_t + (density*Vx**2 + pressure - (zeta + 4/3*eta)*sqrt(density)*Vx_x)_x = 0", 0.5),
    ],
)
def test_the_law_of_viscosity_is_read_off_the_equations(equation: str, exponent: float) -> None:
    gas = gas_of(with_momentum(equation))
    assert (gas.viscosity, gas.exponent) == (pytest.approx(VISCOSITY), pytest.approx(exponent))


@pytest.mark.parametrize("viscosity", ["-eta", "0*eta", "eta*(1 + density)", "eta*Vx**2", "eta*exp(density)"])
def test_other_laws_are_refused(viscosity: str) -> None:
    problem = with_momentum(f"density*(Vx_t + Vx*Vx_x) = -pressure_x + ({viscosity})*Vx_xx")
    with pytest.raises(SpecificationError, match="multiple of a power of the density"):
        gas_of(problem)


def test_a_problem_without_momentum_equation_is_refused() -> None:
    problem = with_momentum("pressure_t + Vx*pressure_x + Gamma*pressure*Vx_x = 0")
    with pytest.raises(SpecificationError, match="expected a momentum equation"):
        gas_of(problem)


def test_viscosity_is_a_power_of_the_density() -> None:
    density = np.array([1.0, 4.0])
    np.testing.assert_allclose(Gas(1.4, 0.5).mu(density), [0.5, 0.5])
    np.testing.assert_allclose(Gas(1.4, 0.5, 0.5).mu(density), [0.5, 1.0])
