from __future__ import annotations

import numpy as np
import pytest

from sharp.reference.spectral import (
    Etdrk4,
    QuadraticPde,
    coefficients,
    evaluate,
    integrate_to_tolerance,
    relative_l2,
    solve,
    solve_self_converged,
)

BURGERS = QuadraticPde(lambda k: -0.01 * k**2, lambda k: -0.5j * k, length=1.0)


def start(points: int) -> np.ndarray:
    x = np.arange(points) / points
    return np.stack([np.sin(2 * np.pi * x), 0.5 + 0.3 * np.cos(4 * np.pi * x)])


@pytest.mark.parametrize("points", [8, 16, 48])
def test_interpolant_of_a_resolved_function_is_the_function(points: int) -> None:
    spectrum = coefficients(start(32), 20)
    np.testing.assert_allclose(evaluate(spectrum, points), start(points), atol=1e-14)


def test_highest_mode_is_interpolated_as_a_cosine() -> None:
    values = np.array([1.0, -1.0] * 4)
    fine = evaluate(coefficients(values, 9), 16)
    np.testing.assert_allclose(fine, np.cos(np.pi * np.arange(16) / 2), atol=1e-14)


def test_relative_l2_of_a_zero_reference_is_the_absolute_norm() -> None:
    assert relative_l2(np.full((1, 4), 3.0), np.zeros((1, 4))) == pytest.approx([6.0])


def test_time_stepping_is_of_fourth_order() -> None:
    def after(steps: int) -> np.ndarray:
        v = coefficients(start(64), 32)
        scheme = Etdrk4(BURGERS, 32, 0.2 / steps)
        for _ in range(steps):
            v = scheme.step(v)
        return evaluate(v, 64)

    exact = after(512)
    errors = [relative_l2(after(steps), exact).max() for steps in (16, 32, 64)]
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert rates == pytest.approx([4, 4], abs=0.4)


def test_linear_part_alone_is_exact_in_one_step() -> None:
    heat = QuadraticPde(lambda k: -0.5 * k**2, np.zeros_like, length=1.0)
    v = coefficients(start(64), 32)
    waves = 2 * np.pi * np.arange(32)
    np.testing.assert_allclose(Etdrk4(heat, 32, 0.1).step(v), v * np.exp(-0.05 * waves**2), atol=1e-15)


@pytest.mark.parametrize("tolerance", [1e-5, 1e-8])
def test_march_meets_its_tolerance(tolerance: float) -> None:
    t = np.linspace(0, 0.5, 6)
    spectrum = coefficients(start(128), 64)
    exact = solve(BURGERS, spectrum, 128, t, 1e-11)
    found = np.stack(
        [evaluate(v, 128) for v in integrate_to_tolerance(BURGERS, spectrum, t, tolerance)], axis=1
    )
    assert relative_l2(found, exact).max() < tolerance


def test_refinement_in_space_stops_when_solutions_agree() -> None:
    t = np.linspace(0, 0.3, 4)
    exact = solve(BURGERS, coefficients(start(512), 256), 32, t, 1e-11)
    found, error = solve_self_converged(BURGERS, coefficients(start(512), 256), 32, t, 1e-6)
    assert error.max() < 1e-6
    assert relative_l2(found, exact).max() < 1e-6


def test_unresolved_solution_has_a_large_error_estimate() -> None:
    thin = QuadraticPde(lambda k: -1e-4 * k**2, lambda k: -0.5j * k, length=1.0)
    _, error = solve_self_converged(thin, coefficients(start(512), 64), 32, np.linspace(0, 0.3, 4), 1e-4)
    assert error.max() > 1e-3
