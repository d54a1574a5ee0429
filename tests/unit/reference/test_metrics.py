from __future__ import annotations

import numpy as np
import pytest

from sharp.reference.metrics import accumulated, drift, jumps, largest_rise, ratio


def test_integrals_over_time_are_of_order_four() -> None:
    off = []
    for steps in (40, 80):
        t = np.linspace(0, 3, steps + 1)
        off.append(np.abs(accumulated(t, np.sin(2 * t)[:, None])[:, 0] - np.sin(t) ** 2).max())
    assert off[1] < 1e-5
    assert np.log2(off[0] / off[1]) == pytest.approx(4, abs=0.3)


def test_integrals_over_unequal_times_are_exact_for_quadratics() -> None:
    t = np.cumsum(np.random.default_rng(2).uniform(0.1, 0.3, 20))
    found = accumulated(t, np.stack([t**2, 1 - t], axis=1))
    exact = np.stack([t**3 / 3, t - t**2 / 2], axis=1)
    np.testing.assert_allclose(found, exact - exact[0], atol=1e-12)


def test_two_times_are_enough() -> None:
    np.testing.assert_allclose(accumulated(np.array([0.0, 2.0]), np.array([[1.0], [3.0]])), [[0.0], [4.0]])


def test_the_largest_rise_is_above_the_smallest_earlier_value() -> None:
    assert largest_rise(np.array([5.0, 1.0, 4.0, 2.0, 4.5, 0.0])) == 3.5
    assert largest_rise(np.array([3.0, 2.0, 2.0, 1.0])) == 0
    np.testing.assert_array_equal(largest_rise(np.array([[0.0, 1.0], [1.0, 0.0]])), [1.0, 0.0])


def test_jumps_wrap() -> None:
    np.testing.assert_array_equal(jumps(np.array([[1.0, 4.0, 2.0]])), [[3.0, -2.0, -1.0]])


def test_drift_is_undivided_where_there_is_no_scale() -> None:
    zero = np.zeros(4)
    assert drift(np.full((3, 4), 0.5), zero, zero) == 0.5
    assert ratio(0.0, 0.0) == 0.0
