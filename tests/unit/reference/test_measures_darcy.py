from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from sharp.reference import darcy
from sharp.reference.darcy import arithmetic, harmonic
from sharp.reference.datasets import Inputs
from sharp.reference.fast_poisson import solve_dirichlet
from sharp.reference.metrics import MetricInput
from tests.helpers.problems.measured_cases import found, number, shipped

Array = np.ndarray
PROBLEM = shipped("darcy")
N = 61
NAMES = [measure.name for measure in darcy.FAMILY.metrics if not measure.needs_coarse_run]


def layers() -> Array:
    """Return a coefficient of 3 with a layer of 12."""
    a = np.full((1, N, N), 3.0)
    a[:, 20:41] = 12.0
    return a


@cache
def random() -> Array:
    """Return two random coefficients as in the published data."""
    problem = replace(PROBLEM, grid=replace(PROBLEM.grid, points={"x": N, "y": N}))
    return darcy.sample_initial(problem, 2, 6).arrays["a"].astype(float)


@cache
def truth(kind: str) -> Array:
    a = {"layers": layers, "random": random, "one": lambda: np.ones((1, N, N))}[kind]()
    return darcy.FAMILY.solve_reference(PROBLEM, {"a": a}).arrays["u"]


def five_point(a: Array, mean: Callable[[Array, Array], Array] = harmonic) -> Array:
    """Return the solution [N, N] of five-point differences."""
    n = len(a) - 1
    along_x, along_y = mean(a[1:, 1:-1], a[:-1, 1:-1]), mean(a[1:-1, 1:], a[1:-1, :-1])
    return solve_dirichlet(along_x, along_y, np.full((n - 1, n - 1), 1 / n**2))


def case(a: Array, u: Array, coarse: tuple[Array, Array] | None = None) -> MetricInput:
    def inputs(values: Array) -> Inputs:
        return Inputs({"a": values}, None, np.linspace(0, 1, values.shape[-1]))

    return MetricInput(
        PROBLEM, inputs(a), {"u": u}, coarse=None if coarse is None else (inputs(coarse[0]), {"u": coarse[1]})
    )


def smoothed(a: Array) -> Array:
    """Return a coefficient [n, N, N] averaged over some nodes, as a careless interpolation does."""
    from scipy.ndimage import gaussian_filter

    return gaussian_filter(a, (0, 2, 2))


def test_the_exact_solution_for_a_smooth_coefficient_has_none() -> None:
    left = {name: number(name, case(np.ones((1, N, N)), truth("one"))) for name in NAMES}
    assert left.pop("residual_max") < 0.02  # the corners of the square
    assert max(left.values()) < 2e-3


def test_what_the_exact_solution_for_random_coefficients_leaves() -> None:
    limits = {"residual_l2": 1e-2, "residual_max": 0.05, "cell_balance": 4e-3, "compatibility": 2e-3}
    limits["jump_estimator"] = 0.08
    for name in NAMES:
        assert 0 < number(name, case(random(), truth("random"))) < limits[name]


def test_a_conservative_scheme_balances_to_its_tolerance() -> None:
    u = np.stack([five_point(a) for a in random()])
    for name in ("residual_l2", "residual_max", "cell_balance", "compatibility"):
        assert number(name, case(random(), u)) < 1e-6


def test_a_scaled_solution_is_incompatible_by_its_scale() -> None:
    scaled, right = (case(random(), factor * truth("random")) for factor in (1.1, 1.0))
    assert number("compatibility", scaled) == pytest.approx(0.1, rel=0.02)
    assert number("compatibility", right) < 0.002


def test_a_scaled_solution_leaves_its_scale_inside_the_phases() -> None:
    scaled, right = (number("residual_l2", case(layers(), factor * truth("layers"))) for factor in (1.1, 1.0))
    # 0.1 of the source is left; the other two terms together are at least 1.1 times as large as the source.
    assert 0.1 / 3 < scaled <= 0.1 / 2.1
    assert right < scaled / 50


def test_a_source_that_is_missing_somewhere_is_seen() -> None:
    u = np.stack([five_point(a) for a in random()])
    right = number("cell_balance", case(random(), u))
    u[:, 30, 30] += 0.1
    # A spike drains its own cell and floods the four around it: fluxes there are all of the balance or a quarter.
    assert number("cell_balance", case(random(), u)) == pytest.approx((1 + 4) / 59**2, rel=0.2)
    assert right < 1e-6


def test_one_wrong_node_shows_in_the_maximum() -> None:
    u = np.stack([five_point(a) for a in layers()])
    u[0, 10, 30] *= 1.02
    assert number("residual_max", case(layers(), u)) > 0.4
    assert number("residual_l2", case(layers(), u)) < 0.4
    assert number("residual_max", case(layers(), truth("layers"))) < 0.01


def test_wrong_means_of_the_coefficient_unbalance_the_cells() -> None:
    u = np.stack([five_point(a, arithmetic) for a in layers()])
    # 4 of 59 rows of cells end at the layer, where a mean of 7.5 instead of 4.8 lets 2.7 of at least 12.3 vanish.
    wrong = number("cell_balance", case(layers(), u))
    assert 0.1 * 4 / 59 * 2.7 / 12.3 < wrong < 4 / 59 * 2.7 / 12.3
    assert number("cell_balance", case(layers(), np.stack([five_point(a) for a in layers()]))) < wrong / 1e3


def test_a_smeared_coefficient_shows_in_the_jumps_of_the_flux() -> None:
    u = five_point(smoothed(layers())[0])[None]
    smeared = number("jump_estimator", case(layers(), u))
    assert smeared > 10 * number("jump_estimator", case(layers(), truth("layers")))
    rough = number("jump_estimator", case(random(), np.stack([five_point(a) for a in smoothed(random())])))
    assert rough > 1.2 * number("jump_estimator", case(random(), truth("random")))


def test_a_kink_is_estimated_by_its_jump() -> None:
    steep = 1e6  # so that the source does not matter
    u = np.tile(steep * np.abs(np.arange(N) - 30.5)[:, None] / (N - 1), (1, 1, N))
    # In units of a (h u_x)^2: 2 at each of N faces on the kink, 1/2 at those two to either side, whose slopes
    # reach over it, and 1 in the cells beside it. Energy: N - 2 of N - 1 differences are not 0.
    expected = np.sqrt((3 * N + 2 * (N - 4)) / (N * (N - 2)))
    assert number("jump_estimator", case(np.full((1, N, N), 3.0), u)) == pytest.approx(expected, rel=1e-4)


def test_the_estimate_follows_the_error_of_the_gradient() -> None:
    noise = np.zeros((1, N, N))
    noise[:, 1:-1, 1:-1] = np.random.default_rng(0).standard_normal((N - 2, N - 2))
    a, u = layers(), truth("layers")
    energy = [_energy(a[0], v[0]) for v in (u, noise)]
    for size in (0.1, 0.2):
        off = u + size * np.sqrt(energy[0] / energy[1]) * noise
        # An estimator is the error up to a constant factor.
        assert 1 < number("jump_estimator", case(a, off)) / size < 10


def _energy(a: Array, u: Array) -> float:
    along_x = (harmonic(a[1:], a[:-1]) * np.diff(u, axis=0) ** 2).sum()
    return float(along_x + (harmonic(a[:, 1:], a[:, :-1]) * np.diff(u, axis=1) ** 2).sum())


def test_the_energy_converges_with_the_grid() -> None:
    a, u = np.ones((1, N, N)), truth("one")
    coarse = a[:, ::2, ::2]
    change = number("energy_change", case(a, u, (coarse, u[:, ::2, ::2])))
    # The trapezoidal rule for a function whose second derivatives add up to -1 is off by h^2/12 of it.
    assert change == pytest.approx(3 * (1 / 60) ** 2 / 12 / u.mean(), rel=0.1)
    assert change < 0.02
    wrong = number("energy_change", case(a, u, (coarse, 1.3 * u[:, ::2, ::2])))
    assert wrong == pytest.approx(0.3, abs=0.01)


def test_a_coefficient_that_is_constant_nowhere_has_no_residual_inside() -> None:
    a = np.random.default_rng(1).uniform(1, 2, (1, N, N))
    for name in ("residual_l2", "residual_max", "jump_estimator"):
        value = found(name, case(a, five_point(a[0])[None]))
        assert value.value is None
        assert "nowhere constant" in value.note
    assert number("compatibility", case(a, five_point(a[0])[None])) < 1e-6


def test_directions_are_treated_alike() -> None:
    a, u = layers(), truth("layers") + np.linspace(0, 1e-3, N)[:, None] ** 2
    for name in NAMES:
        turned = case(a.swapaxes(1, 2), u.swapaxes(1, 2))
        assert number(name, turned) == pytest.approx(number(name, case(a, u)), rel=1e-9)
