from __future__ import annotations

from dataclasses import dataclass, field
from math import log2

import numpy as np
import pytest

from sharp.errors import SpecificationError
from sharp.problems import load_problem
from sharp.reference.lagrangian import Gas, integrate, interpolate, solve_flow, solve_periodic, step
from sharp.reference.navier_stokes import gas_of
from tests.helpers.problems.small_problems import small

GAMMA, BOUNDS = 5 / 3, (-1.0, 1.0)
Array = np.ndarray


def centres(n: int, shift: float = 0.0) -> Array:
    return -1 + (np.arange(n) + 0.5 + shift) * 2 / n


def flow(x: Array) -> Array:
    """Return velocity, density and pressure [3, N] of a smooth flow that steepens."""
    return np.stack(
        [
            0.3 + 0.8 * np.sin(np.pi * x),
            2 + 0.9 * np.cos(np.pi * x + 1),
            4 + 1.5 * np.sin(2 * np.pi * x),
        ]
    )


def solved(gas: Gas, n: int, t: Array, points: int = 64, tolerance: float = 1e-9) -> Array:
    return solve_flow(gas, flow(centres(n, -0.5)), flow(centres(n)), BOUNDS, t, points, tolerance)


def test_periodic_systems_are_solved() -> None:
    rng = np.random.default_rng(0)
    diagonal, coupling, right = 0.1 + rng.random(9), 5 * rng.random(9), rng.random(9)
    matrix = np.diag(diagonal + coupling + np.roll(coupling, 1))
    for i in range(9):
        matrix[i, (i + 1) % 9] -= coupling[i]
        matrix[(i + 1) % 9, i] -= coupling[i]
    np.testing.assert_allclose(matrix @ solve_periodic(diagonal, coupling, right), right, rtol=1e-10)


@pytest.mark.parametrize(("n", "shift"), [(16, 0.0), (24, 0.0), (24, -0.5), (37, 0.5)])
def test_interpolation_is_exact_for_what_the_values_resolve(n: int, shift: float) -> None:
    found = interpolate(flow(centres(16)), n, shift)
    np.testing.assert_allclose(found, flow(centres(n, shift)), atol=1e-12)


@pytest.mark.parametrize("exponent", [0.0, 1.0])
def test_the_order_in_space_is_two(exponent: float) -> None:
    gas, t = Gas(GAMMA, 0.1, exponent), np.array([0.0, 0.2])
    coarse, middle, fine = (solved(gas, n, t)[:, -1] for n in (128, 256, 512))
    rate = np.linalg.norm(coarse - middle) / np.linalg.norm(middle - fine)
    assert np.log2(rate) == pytest.approx(2, abs=0.1)


def test_the_fields_agree_with_fourier_series_on_a_fixed_grid() -> None:
    from scipy.integrate import solve_ivp

    n, viscosity = 96, 0.2
    waves = np.pi * np.arange(n // 2 + 1)

    def d(u: Array) -> Array:
        return np.fft.irfft(1j * waves * np.fft.rfft(u) * (np.arange(n // 2 + 1) < n // 3), n)

    def rates(_: float, state: Array) -> Array:
        density, momentum, energy = state.reshape(3, n)
        v = momentum / density
        p = (GAMMA - 1) * (energy - 0.5 * momentum * v)
        stress = viscosity * d(v) - p
        return -np.concatenate([d(momentum), d(momentum * v - stress), d(energy * v - stress * v)])

    v, density, p = flow(centres(n))
    start = np.concatenate([density, density * v, p / (GAMMA - 1) + 0.5 * density * v**2])
    end = solve_ivp(rates, (0, 0.3), start, method="DOP853", rtol=1e-9, atol=1e-9).y[:, -1].reshape(3, n)
    v = end[1] / end[0]
    expected = np.stack([v, end[0], (GAMMA - 1) * (end[2] - 0.5 * end[1] * v)])
    t, gas = np.array([0.0, 0.3]), Gas(GAMMA, viscosity)
    coarse, fine = (solved(gas, n, t, points=96)[:, -1] for n in (192, 384))
    assert np.linalg.norm((4 * fine - coarse) / 3 - expected) < 1e-5 * np.linalg.norm(expected)


def test_mass_momentum_and_energy_stay() -> None:
    v, density, p = solved(Gas(GAMMA, 0.1), 512, np.linspace(0, 0.4, 5), points=512)
    energy = p / (GAMMA - 1) + 0.5 * density * v**2
    for conserved in (density, density * v, energy):
        np.testing.assert_allclose(conserved.mean(axis=1), conserved[0].mean(), rtol=1e-4)


@dataclass
class Driven:
    """y' = cos(t) y^2 + stiffness (cos(t) - y), the second part stiff, with t as the second component of y."""

    stiffness: float
    limit: float = 1.0
    steps: list[float] = field(default_factory=list)

    def explicit(self, y: Array) -> Array:
        return np.array([np.cos(y[1]) * y[0] ** 2, 1.0])

    def implicit(self, y: Array) -> Array:
        return np.array([self.stiffness * (np.cos(y[1]) - y[0]), 0.0])

    def solve(self, y: Array, a: float) -> Array:
        self.steps.append(a)
        return np.array([(y[0] + a * self.stiffness * np.cos(y[1])) / (1 + a * self.stiffness), y[1]])

    def largest_step(self, y: Array) -> float:
        return self.limit

    def norm(self, error: Array) -> float:
        return float(np.abs(error).max())


def advanced(system: Driven, steps: int) -> float:
    y = np.array([0.3, 0.0])
    for _ in range(steps):
        y, _ = step(system, y, 1.0 / steps)
    return float(y[0])


@pytest.mark.parametrize("stiffness", [0.0, 2.0])
def test_the_order_is_three(stiffness: float) -> None:
    exact = advanced(Driven(stiffness), 2000)
    coarse, fine = (abs(advanced(Driven(stiffness), steps) - exact) for steps in (80, 160))
    assert log2(coarse / fine) == pytest.approx(3, abs=0.25)


def test_the_embedded_estimate_is_of_order_two() -> None:
    y = np.array([0.3, 0.2])
    coarse, fine = (abs(step(Driven(2.0), y, dt)[1][0]) for dt in (0.02, 0.01))
    assert log2(coarse / fine) == pytest.approx(3, abs=0.2)


def test_stiff_parts_do_not_limit_the_step() -> None:
    assert abs(advanced(Driven(1e6), 20) - np.cos(1.0)) < 1e-3


def test_the_solution_keeps_to_the_tolerance_and_to_the_times() -> None:
    exact = advanced(Driven(5.0), 4000)
    times = np.array([0.0, 0.13, 0.7, 1.0])
    for tolerance in (1e-4, 1e-7):
        found = list(integrate(Driven(5.0), np.array([0.3, 0.0]), times, tolerance))
        np.testing.assert_allclose([y[1] for y in found], times, atol=1e-12)
        assert abs(found[-1][0] - exact) < 20 * tolerance


def test_the_stability_limit_bounds_every_step() -> None:
    system = Driven(1.0, limit=0.01)
    list(integrate(system, np.array([0.3, 0.0]), np.array([0.0, 0.5]), 1e-2))
    diagonal = 1767732205903 / 4055673282236
    assert max(system.steps) <= 0.01 * diagonal * (1 + 1e-12)


@pytest.mark.parametrize("damping", [0.0, 0.1, 3.0, 1e3, 1e5])
def test_damped_oscillations_are_stable_up_to_the_bound_for_gas_flow(damping: float) -> None:
    class Oscillator(Driven):
        def explicit(self, y: Array) -> Array:
            return np.array([y[1], -(2.4**2) * y[0]])

        def implicit(self, y: Array) -> Array:
            return np.array([0.0, -self.stiffness * y[1]])

        def solve(self, y: Array, a: float) -> Array:
            return np.array([y[0], y[1] / (1 + a * self.stiffness)])

    matrix = np.stack([step(Oscillator(damping), unit, 1.0)[0] for unit in np.eye(2)], axis=1)
    assert np.abs(np.linalg.eigvals(matrix)).max() < 1


def test_a_blow_up_is_an_error() -> None:
    class Explosive(Driven):
        def explicit(self, y: Array) -> Array:
            return np.array([y[0] ** 2, 1.0])

    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(ArithmeticError, match=r"step size vanishes at t = 3\.3"),
    ):
        list(integrate(Explosive(0.0), np.array([0.3, 0.0]), np.array([0.0, 5.0]), 1e-6))


VISCOSITY = 0.1 + 4 / 3 * 0.1


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
    gas = gas_of(small("navier-stokes", momentum=equation))
    assert (gas.viscosity, gas.exponent) == (pytest.approx(VISCOSITY), pytest.approx(exponent))


@pytest.mark.parametrize("viscosity", ["-eta", "0*eta", "eta*(1 + density)", "eta*Vx**2", "eta*exp(density)"])
def test_other_laws_are_refused(viscosity: str) -> None:
    problem = small("navier-stokes", momentum=f"density*(Vx_t + Vx*Vx_x) = -pressure_x + ({viscosity})*Vx_xx")
    with pytest.raises(SpecificationError, match="multiple of a power of the density"):
        gas_of(problem)


def test_a_problem_without_momentum_equation_is_refused() -> None:
    problem = small("navier-stokes", momentum="pressure_t + Vx*pressure_x + Gamma*pressure*Vx_x = 0")
    with pytest.raises(SpecificationError, match="expected a momentum equation"):
        gas_of(problem)


def test_viscosity_is_a_power_of_the_density() -> None:
    density = np.array([1.0, 4.0])
    np.testing.assert_allclose(Gas(1.4, 0.5).mu(density), [0.5, 0.5])
    np.testing.assert_allclose(Gas(1.4, 0.5, 0.5).mu(density), [0.5, 1.0])
