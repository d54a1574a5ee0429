from __future__ import annotations

import numpy as np
import pytest

from sharp.errors import DataError
from sharp.reference.advection import FAMILY
from sharp.reference.spectral import relative_l2
from tests.helpers.problems.small_problems import small

T = np.linspace(0, 2, 21)


def test_truth_of_known_functions_is_their_shift() -> None:
    problem = small("advection", points=64, times=21, end=2.0)
    drawn = FAMILY.sample_initial(problem, 5, 0)
    truth = FAMILY.solve_reference(problem, drawn.arrays, T, evaluate=drawn.evaluate)
    x = (np.arange(64) + 0.5) / 64
    for step, time in enumerate(T):
        np.testing.assert_allclose(
            truth.arrays["u"][:, step], drawn.evaluate(x - 0.1 * time)["u0_batch"], atol=1e-12
        )
    assert truth.error.max() < 1e-7


def test_values_on_a_grid_are_shifted_by_whole_cells_exactly() -> None:
    problem = small("advection", points=64, times=3, end=2.5)
    values = FAMILY.sample_initial(problem, 4, 6).arrays["u0_batch"].astype(float)
    u = FAMILY.solve_reference(problem, {"u0_batch": values}, np.array([0.0, 1.25, 2.5])).arrays["u"]
    assert (u[:, 0] == values).all()
    np.testing.assert_allclose(u[:, 1], np.roll(values, 8, axis=1), atol=1e-13)
    np.testing.assert_allclose(u[:, 2], np.roll(values, 16, axis=1), atol=1e-13)


def test_error_estimate_of_interpolated_values_is_honest() -> None:
    problem = small("advection", points=512, times=21, end=2.0)
    drawn = FAMILY.sample_initial(problem, 40, 3)
    known = FAMILY.solve_reference(problem, drawn.arrays, T, evaluate=drawn.evaluate)
    guessed = FAMILY.solve_reference(problem, drawn.arrays, T)
    off = relative_l2(guessed.arrays["u"], known.arrays["u"])
    rough = guessed.error > 1e-6
    assert 1 <= rough.sum() < 15
    assert (off[rough] < 3 * guessed.error[rough]).all()
    assert (off[~rough] < 1e-6).all()


def test_unequal_times_are_refused_by_the_published_scheme() -> None:
    problem = small("advection")
    drawn = FAMILY.sample_initial(problem, 1, 0)
    with pytest.raises(DataError, match="equally spaced"):
        FAMILY.solve_pdebench(problem, drawn.arrays, np.array([0.0, 0.01, 0.05]))
