from __future__ import annotations

import h5py
import numpy as np
import pytest

from sharp.errors import DataError, SpecificationError
from sharp.problems import Problem
from sharp.reference import darcy
from sharp.reference.fast_poisson import solve_dirichlet
from sharp.reference.spectral import relative_l2
from tests.helpers.problems.small_problems import published_file, small

Array = np.ndarray


def flow_problem(points: int = 41, **lines: object) -> Problem:
    return small("darcy", points, **lines)


def series(n: int, terms: int = 199) -> Array:
    """Return the solution of -Laplace u = 1 on the nodes of the unit square (double sine series)."""
    k = np.arange(1, terms + 1, 2)
    sines = np.sin(np.pi * np.outer(np.linspace(0, 1, n), k))
    weights = 16 / (np.pi**4 * np.outer(k, k) * (k[:, None] ** 2 + k**2))
    return sines @ weights @ sines.T


def checkers(n: int, width: int) -> Array:
    """Return a coefficient [n, n] of 3 and 12 in squares of `width` nodes."""
    node = np.arange(n) // width
    return np.where((node[:, None] + node) % 2, 12.0, 3.0)


def test_a_constant_coefficient_has_the_solution_of_its_series() -> None:
    a = np.stack([np.ones((41, 41)), np.full((41, 41), 5.0)])
    truth = darcy.FAMILY.solve_reference(flow_problem(), {"a": a})
    exact = series(41) / a
    assert relative_l2(truth.arrays["u"], exact).max() < truth.error.min() < 1e-4


def test_the_order_of_the_elements_is_two_where_nothing_jumps() -> None:
    off = [
        relative_l2(darcy.finite_elements(np.ones((11, 11)), 1.0, r)[None], series(11)[None])[0]
        for r in (2, 4, 8)
    ]
    assert np.log2(off[0] / off[1]) == pytest.approx(2, abs=0.05)
    assert np.log2(off[1] / off[2]) == pytest.approx(2, abs=0.05)


def test_truth_agrees_with_fine_finite_volumes() -> None:
    a = darcy.sample_initial(flow_problem(21), 1, 8).arrays["a"][0].astype(float)
    truth = darcy.FAMILY.solve_reference(flow_problem(21), {"a": a[None]}, tolerance=1e-6)
    coarse, fine = (finite_volumes(a, refinement) for refinement in (9, 27))
    limit = fine + (fine - coarse) / (3**1.5 - 1)
    assert relative_l2(truth.arrays["u"], limit[None])[0] < 1e-4


def finite_volumes(a: Array, refinement: int) -> Array:
    """Return u at the nodes of `a` on a finer grid whose dual cells divide those of the nodes; harmonic means."""
    n = (len(a) - 1) * refinement
    node = np.rint(np.arange(n + 1) / refinement).astype(int)
    fine = a[np.ix_(node, node)]
    along_x = darcy.harmonic(fine[1:, 1:-1], fine[:-1, 1:-1])
    along_y = darcy.harmonic(fine[1:-1, 1:], fine[1:-1, :-1])
    u = solve_dirichlet(along_x, along_y, np.full((n - 1, n - 1), 1 / n**2))
    return u[::refinement, ::refinement]


def test_the_error_estimate_is_pessimistic_and_the_extrapolation_worth_it() -> None:
    problem, a = (
        flow_problem(),
        {"a": np.stack([checkers(41, 8), darcy.sample_initial(flow_problem(), 1, 3).arrays["a"][0]])},
    )
    usual, best = (darcy.FAMILY.solve_reference(problem, a, tolerance=tolerance) for tolerance in (1.0, 1e-9))
    off = relative_l2(usual.arrays["u"], best.arrays["u"])
    assert (off < usual.error / 2).all()
    assert (best.error < usual.error).all()
    assert (best.error > 1e-9).all()


def test_truth_has_the_symmetries_of_its_coefficient() -> None:
    a = darcy.sample_initial(flow_problem(21), 1, 4).arrays["a"]
    variants = np.concatenate([a, a.swapaxes(1, 2), a[:, ::-1], 2 * a])
    told: list[tuple[int, int, str]] = []
    u = darcy.FAMILY.solve_reference(
        flow_problem(21), {"a": variants}, progress=lambda *news: told.append(news)
    ).arrays["u"]
    for same in (u[1].T, u[2, ::-1], 2 * u[3]):
        np.testing.assert_allclose(same, u[0], rtol=1e-5)
    assert (u[0, 1:-1, 1:-1] > 0).all()
    assert not u[0, 0].any()
    assert told[-1] == (4, 4, "reference solution of darcy")


def test_the_solution_scales_with_source_and_square_of_the_side() -> None:
    a = checkers(21, 5)[None]
    plain = darcy.FAMILY.solve_reference(flow_problem(21), {"a": a}).arrays["u"]
    wide = flow_problem(21, domain="{type: box, bounds: {x: [0, 2], y: [1, 3]}}", beta=3)
    np.testing.assert_allclose(
        darcy.FAMILY.solve_reference(wide, {"a": a}).arrays["u"], 12 * plain, rtol=1e-6
    )
    np.testing.assert_allclose(
        darcy.FAMILY.solve_pdebench(wide, {"a": a})["u"],
        12 * darcy.FAMILY.solve_pdebench(flow_problem(21), {"a": a})["u"],
        rtol=1e-5,
    )


def test_published_procedure_is_half_a_cell_off() -> None:
    a = np.ones((1, 41, 41))
    u = darcy.FAMILY.solve_pdebench(flow_problem(), {"a": a})["u"]
    assert u.dtype == np.float32
    assert (u[0, 0, 1:-1] > 0).all()
    assert 0.01 < relative_l2(u.astype(float), series(41)[None])[0] < 0.06


@pytest.mark.parametrize("solve", [darcy.FAMILY.solve_reference, darcy.FAMILY.solve_pdebench])
def test_impossible_media_are_refused(solve: object) -> None:
    a = np.ones((2, 21, 21))
    with pytest.raises(DataError, match=r"`a` to have the axes \[n, N, N\], found \[2, 21, 20\]"):
        solve(flow_problem(21), {"a": a[..., 1:]})
    a[1, 3, 3] = 0.0
    with pytest.raises(DataError, match="`a` to be positive everywhere, found the minimum 0"):
        solve(flow_problem(21), {"a": a})
    oblong = flow_problem(21, domain="{type: box, bounds: {x: [0, 2], y: [0, 1]}}")
    with pytest.raises(SpecificationError, match="expected a square domain"):
        solve(oblong, {"a": np.ones((1, 21, 21))})


def test_coefficients_have_two_phases() -> None:
    a = darcy.sample_initial(flow_problem(65), 40, 1).arrays["a"]
    assert set(np.unique(a)) == {3.0, 12.0}
    assert 0.4 < np.mean(a == 12) < 0.6
    assert 0.5 * np.ptp((a == 12).mean(axis=(1, 2))) < 0.35


def test_coefficients_are_as_rough_as_the_published_ones() -> None:
    with h5py.File(published_file("darcy.hdf5")) as file:
        published = file["coeff"][:]
    drawn = darcy.sample_initial(flow_problem(421), 32, 0).arrays["a"]
    steps = [np.mean(np.diff(a, axis=1) != 0) for a in (published, drawn)]
    assert steps[1] == pytest.approx(steps[0], rel=0.2)
