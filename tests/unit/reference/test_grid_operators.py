from __future__ import annotations

import numpy as np
import pytest

from sharp.reference.grid_operators import (
    SpaceDerivative,
    central,
    central_differences,
    compact,
    fourier_derivative,
    shifted,
    smoothed,
)

LENGTH = 2.0


def wave(n: int) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Return spacing, exp(sin(pi x)), and its first and second derivative."""
    x = -1 + (np.arange(n) + 0.5) * LENGTH / n
    u, slope = np.exp(np.sin(np.pi * x)), np.pi * np.cos(np.pi * x)
    return LENGTH / n, u, slope * u, (slope**2 - np.pi**2 * np.sin(np.pi * x)) * u


def errors(derivative: SpaceDerivative, n: int) -> tuple[float, float]:
    _, u, first, second = wave(n)
    return float(np.abs(derivative(u, 1) - first).max()), float(np.abs(derivative(u, 2) - second).max())


@pytest.mark.parametrize("order", [2, 4, 6])
def test_differences_converge_at_their_order(order: int) -> None:
    coarse, fine = (errors(central_differences(LENGTH / n, order), n) for n in (64, 128))
    for one, other in zip(coarse, fine, strict=True):
        assert np.log2(one / other) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("n", [32, 33])
def test_fourier_series_are_exact_for_what_the_grid_resolves(n: int) -> None:
    assert max(errors(fourier_derivative(LENGTH / n, n), n)) < 1e-8


def test_the_highest_mode_has_a_second_derivative_and_no_first() -> None:
    n, sawtooth = 16, np.tile([1.0, -1.0], 8)
    derivative = fourier_derivative(LENGTH / n, n)
    np.testing.assert_allclose(derivative(sawtooth, 1), 0, atol=1e-12)
    np.testing.assert_allclose(derivative(sawtooth, 2), -((np.pi * n / LENGTH) ** 2) * sawtooth)


@pytest.mark.parametrize(
    "derivative", [central_differences(0.1, 2), central_differences(0.1, 4), fourier_derivative(0.1, 12)]
)
def test_leading_axes_are_kept_apart(derivative: SpaceDerivative) -> None:
    rows = np.random.default_rng(0).random((3, 4, 12))
    for order in (1, 2):
        np.testing.assert_allclose(derivative(rows, order)[1, 2], derivative(rows[1, 2], order))


def test_smoothing_damps_a_mode_by_its_factor() -> None:
    x = (np.arange(50) + 0.5) / 50
    u = 3 + np.cos(2 * np.pi * 4 * x)
    expected = 3 + np.cos(2 * np.pi * 4 * x) / (1 + (0.05 * 2 * np.pi * 4) ** 2)
    np.testing.assert_allclose(smoothed(u, 0.05, 1 / 50), expected)


def test_compact_weights_on_equal_steps_are_those_of_lele() -> None:
    operator = compact(np.arange(9) * 0.1, range(2, 7))
    scale = operator.means[0, 2]
    np.testing.assert_allclose(operator.means[0] / scale, [1 / 36, 4 / 9, 1, 4 / 9, 1 / 36])
    np.testing.assert_allclose(
        0.1 * operator.rates[0] / scale, [-25 / 216, -20 / 27, 0, 20 / 27, 25 / 216], atol=1e-10
    )


@pytest.mark.parametrize(("scheme", "degree"), [(central, 2), (compact, 8)])
def test_time_operators_are_exact_for_polynomials_on_any_times(scheme: object, degree: int) -> None:
    t = np.array([0.0, 0.3, 0.5, 0.9, 1.0, 1.4, 1.5])
    operator = scheme(t, range(2, 5))
    for power in range(degree + 1):
        values = np.repeat(t[:, None] ** power, 2, axis=1)
        rates = power * np.repeat(t[:, None], 2, axis=1) ** max(power - 1, 0)
        np.testing.assert_allclose(operator.derivative(values), operator.mean(rates), atol=1e-9)
    beyond = np.repeat(t[:, None] ** (degree + 1), 2, axis=1)
    slopes = (degree + 1) * np.repeat(t[:, None], 2, axis=1) ** degree
    assert np.abs(operator.derivative(beyond) - operator.mean(slopes)).max() > 1e-4


def test_compact_differences_resolve_what_few_frames_show() -> None:
    t = np.arange(12) * 0.1
    operator = compact(t, range(2, 10))
    q, rate = np.sin(20 * t)[:, None], 20 * np.cos(20 * t)[:, None]
    off = np.abs(operator.derivative(q) - operator.mean(rate)).max() / np.abs(operator.mean(rate)).max()
    assert 0.005 < off < 0.02


def test_frames_may_be_skipped() -> None:
    t = np.linspace(0, 1, 21)
    values = np.random.default_rng(1).random((21, 3))
    every, some = compact(t, range(2, 19)), compact(t, range(2, 19, 4))
    np.testing.assert_allclose(some.derivative(values), every.derivative(values)[::4])
    np.testing.assert_allclose(some.mean(values), every.mean(values)[::4])
    np.testing.assert_array_equal(values[shifted(range(2, 19, 4), -1)], values[1:18:4])
