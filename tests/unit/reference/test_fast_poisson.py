from __future__ import annotations

import numpy as np
import pytest

from sharp.reference.fast_poisson import dual_norm, solve_dirichlet

Array = np.ndarray


def matrix(along_x: Array, along_y: Array) -> Array:
    """Return the five-point system of n - 1 by n - 1 inner nodes as a dense matrix."""
    n = len(along_x)
    dense = np.zeros(((n - 1) ** 2, (n - 1) ** 2))
    for i in range(n - 1):
        for j in range(n - 1):
            row = i * (n - 1) + j
            neighbours = (
                (i - 1, j, along_x[i, j]),
                (i + 1, j, along_x[i + 1, j]),
                (i, j - 1, along_y[i, j]),
                (i, j + 1, along_y[i, j + 1]),
            )
            for k, m, coefficient in neighbours:
                dense[row, row] += coefficient
                if 0 <= k < n - 1 and 0 <= m < n - 1:
                    dense[row, k * (n - 1) + m] -= coefficient
    return dense


def test_solutions_are_those_of_a_direct_solver() -> None:
    rng = np.random.default_rng(0)
    along_x, along_y = (3.0 + 9.0 * rng.integers(0, 2, shape) for shape in ((8, 7), (7, 8)))
    right = rng.standard_normal((7, 7))
    u = solve_dirichlet(along_x, along_y, right, 1e-12)
    np.testing.assert_allclose(
        u[1:-1, 1:-1].ravel(), np.linalg.solve(matrix(along_x, along_y), right.ravel()), rtol=1e-9
    )
    assert not np.any([u[0], u[-1], u[:, 0], u[:, -1]])


def test_iterations_do_not_grow_with_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sharp.reference.fast_poisson._MOST_ITERATIONS", 20)
    for n in (16, 64, 256):
        rng = np.random.default_rng(n)
        along_x, along_y = (3.0 + 9.0 * rng.integers(0, 2, shape) for shape in ((n, n - 1), (n - 1, n)))
        solve_dirichlet(along_x, along_y, np.ones((n - 1, n - 1)), 1e-8)


def test_no_source_gives_zero() -> None:
    assert not solve_dirichlet(np.ones((4, 3)), np.ones((3, 4)), np.zeros((3, 3))).any()


def test_a_contrast_beyond_the_preconditioner_is_an_error() -> None:
    rng = np.random.default_rng(1)
    along_x, along_y = (10 ** (12 * rng.random(shape)) for shape in ((32, 31), (31, 32)))
    with pytest.raises(ArithmeticError, match="did not reach 1e-08 in 200 iterations; is the contrast"):
        solve_dirichlet(along_x, along_y, np.ones((31, 31)))


def test_dual_norm_is_that_of_the_gradient_of_the_solution() -> None:
    values = np.random.default_rng(2).standard_normal((9, 9))
    u = solve_dirichlet(np.ones((10, 9)), np.ones((9, 10)), values, 1e-12)
    gradient = np.sum(np.diff(u, axis=0) ** 2) + np.sum(np.diff(u, axis=1) ** 2)
    assert dual_norm(values) == pytest.approx(np.sqrt(gradient), rel=1e-5)
    assert dual_norm(1e200 * values) == pytest.approx(1e200 * dual_norm(values))
    assert dual_norm(np.zeros((3, 3))) == 0
