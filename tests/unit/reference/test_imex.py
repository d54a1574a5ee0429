from __future__ import annotations

from dataclasses import dataclass, field
from math import log2

import numpy as np
import pytest

from sharp.reference.imex import integrate, step

Array = np.ndarray


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
