from __future__ import annotations

import numpy as np
import pytest

from sharp.reference.lagrangian import Gas, interpolate, solve_flow, solve_periodic

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
