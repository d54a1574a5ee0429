"""Eigenvalues on tensor grids, against exact and published ones."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.problems import Problem
from sharp.solvers.method import SolverFailed, TimeLimitExceeded
from tests.helpers.solvers.boxed import boxed, solved


def modes(equation: str, bounds: dict[str, tuple[float, float]], condition: str, count: int) -> Problem:
    return boxed([equation], bounds, [condition], eigenvalue={"name": "mu", "count": count})


def test_eigenvalues_of_an_interval_are_squares_and_the_first_mode_is_a_sine() -> None:
    solution = solved(modes("-u_xx = mu*u", {"x": (0, 1)}, "all: dirichlet u = 0", 6), "chebyshev", 30)
    np.testing.assert_allclose(solution.eigenvalues, (np.pi * np.arange(1, 7)) ** 2, rtol=1e-9)
    x = np.linspace(0, 1, 33)
    np.testing.assert_allclose(solution.at(x[:, None])[0], np.sin(np.pi * x), atol=1e-9)


def test_eigenvalues_of_a_square_come_with_their_multiplicity() -> None:
    square = modes("-lap(u) = mu*u", {"x": (0, 1), "y": (0, 1)}, "all: dirichlet u = 0", 6)
    expected = np.pi**2 * np.array([2, 5, 5, 8, 10, 10])
    np.testing.assert_allclose(solved(square, "chebyshev", 16).eigenvalues, expected, rtol=1e-8)


def test_the_many_unknowns_of_a_fine_grid_are_searched_for_the_lowest_only() -> None:
    square = modes("-lap(u) = mu*u", {"x": (0, 1), "y": (0, 1)}, "all: neumann u = 0", 4)
    solution = solved(square, "fd", 33)
    assert solution.unknowns > 900
    np.testing.assert_allclose(solution.eigenvalues, np.pi**2 * np.array([0, 1, 1, 2]), atol=1e-4)


def test_the_quartic_oscillator_has_its_known_levels() -> None:
    """C. M. Bender and S. A. Orszag, Advanced Mathematical Methods, 1978, give 1.060 for -u'' + x**4 u."""
    well = modes("-u_xx + x**4*u = mu*u", {"x": (-5, 5)}, "all: dirichlet u = 0", 3)
    solution = solved(well, "chebyshev", 60)
    np.testing.assert_allclose(solution.eigenvalues, (1.0603620905, 3.7996730298, 7.4556979380), rtol=1e-9)
    assert solution.at(np.array([[0.0]]))[0, 0] == pytest.approx(1.0)


def test_a_clamped_beam_has_no_spurious_modes() -> None:
    """The tones are the roots of cosh(b) cos(b) = 1, as b**4."""
    beam = boxed(
        ["u_xxxx = mu*u"],
        {"x": (0, 1)},
        ["all: dirichlet u = 0", "all: neumann u = 0"],
        eigenvalue={"name": "mu", "count": 3},
    )
    roots = np.array([4.730040744862704, 7.853204624095838, 10.995607838001671])
    np.testing.assert_allclose(solved(beam, "chebyshev", 24).eigenvalues, roots**4, rtol=1e-7)


def test_a_weight_that_varies_counts() -> None:
    """-x u'' = mu u / x on [1, e] turns into Euler's equation, whose eigenvalues are 1/4 + (k pi)**2."""
    weighted = modes("-x**2*u_xx = mu*u", {"x": (1, np.e)}, "all: dirichlet u = 0", 4)
    expected = 0.25 + (np.pi * np.arange(1, 5)) ** 2
    np.testing.assert_allclose(solved(weighted, "chebyshev", 30).eigenvalues, expected, rtol=1e-9)


def test_a_ring_has_the_eigenvalue_zero_and_pairs() -> None:
    ring = modes("-u_xx = mu*u", {"x": (0, 2 * np.pi)}, "periodic x", 5)
    np.testing.assert_allclose(solved(ring, "fourier", 16).eigenvalues, (0, 1, 1, 4, 4), atol=1e-10)


def test_a_field_without_a_weight_is_no_hindrance() -> None:
    plate = boxed(
        ["v = -u_xx", "-v_xx = mu*u"],
        {"x": (0, 1)},
        ["all: dirichlet u = 0", "all: dirichlet v = 0"],
        fields=["u", "v"],
        eigenvalue={"name": "mu", "count": 2},
    )
    np.testing.assert_allclose(
        solved(plate, "chebyshev", 24).eigenvalues, (np.pi**4, (2 * np.pi) ** 4), rtol=1e-8
    )


def test_a_grid_that_is_too_coarse_is_no_ground_for_eigenvalues() -> None:
    interval = modes("-u_xx = mu*u", {"x": (0, 1)}, "all: dirichlet u = 0", 12)
    with pytest.raises(SolverFailed, match=r"agree on \d of 12 eigenvalues only"):
        solved(interval, "chebyshev", 14)


def test_eigenvalues_that_cannot_be_there_in_time_are_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sharp.solvers.matrices._dense_speed", lambda: 1.0)
    string = modes("-u_xx = mu*u", {"x": (0, 1)}, "all: dirichlet u = 0", 2)
    with pytest.raises(TimeLimitExceeded, match="its next step would take about"):
        solved(string, "chebyshev", 30)
