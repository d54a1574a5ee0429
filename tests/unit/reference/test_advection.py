from __future__ import annotations

import numpy as np
import pytest

from sharp.errors import DataError
from sharp.problems import load_problem
from sharp.reference import advection
from sharp.reference.datasets import open_dataset, read_inputs, read_reference
from sharp.reference.spectral import relative_l2
from tests.helpers.problems.small_problems import published_file, small

T = np.linspace(0, 2, 21)


def test_truth_of_known_functions_is_their_shift() -> None:
    problem = small("advection", points=64, times=21, end=2.0)
    drawn = advection.FAMILY.sample_initial(problem, 5, 0)
    truth = advection.solve_reference(problem, drawn.arrays, T, evaluate=drawn.evaluate)
    x = (np.arange(64) + 0.5) / 64
    for step, time in enumerate(T):
        np.testing.assert_allclose(
            truth.arrays["u"][:, step], drawn.evaluate(x - 0.1 * time)["u0_batch"], atol=1e-12
        )
    assert truth.error.max() < 1e-7


def test_values_on_a_grid_are_shifted_by_whole_cells_exactly() -> None:
    problem = small("advection", points=64, times=3, end=2.5)
    values = advection.FAMILY.sample_initial(problem, 4, 6).arrays["u0_batch"].astype(float)
    u = advection.solve_reference(problem, {"u0_batch": values}, np.array([0.0, 1.25, 2.5])).arrays["u"]
    assert (u[:, 0] == values).all()
    np.testing.assert_allclose(u[:, 1], np.roll(values, 8, axis=1), atol=1e-13)
    np.testing.assert_allclose(u[:, 2], np.roll(values, 16, axis=1), atol=1e-13)


def test_error_estimate_of_interpolated_values_is_honest() -> None:
    problem = small("advection", points=512, times=21, end=2.0)
    drawn = advection.FAMILY.sample_initial(problem, 40, 3)
    known = advection.solve_reference(problem, drawn.arrays, T, evaluate=drawn.evaluate)
    guessed = advection.solve_reference(problem, drawn.arrays, T)
    off = relative_l2(guessed.arrays["u"], known.arrays["u"])
    rough = guessed.error > 1e-6
    assert 1 <= rough.sum() < 15
    assert (off[rough] < 3 * guessed.error[rough]).all()
    assert (off[~rough] < 1e-6).all()


def test_published_scheme_is_of_second_order_and_either_direction_is_upwind() -> None:
    for beta in (0.1, -0.1):
        errors = []
        for points in (64, 128, 256):
            problem = small("advection", points=points, times=6, end=0.5, beta=beta)
            x = (np.arange(points) + 0.5) / points
            t = np.linspace(0, 0.5, 6)
            initial = {"u0_batch": np.sin(2 * np.pi * x)[None]}
            u = advection.solve_pdebench(problem, initial, t)["u"]
            errors.append(relative_l2(u, np.sin(2 * np.pi * (x - beta * t[:, None]))[None])[0])
        assert np.log2(errors[0] / errors[2]) / 2 > 1.6


def test_published_data_are_reproduced_far_below_their_own_error() -> None:
    problem = load_problem("advection")
    dataset = open_dataset(published_file("advection.hdf5"), problem)
    samples = range(dataset.n_samples)
    inputs, reference = read_inputs(dataset, problem, samples), read_reference(dataset, problem, samples)["u"]
    u = advection.solve_pdebench(problem, inputs.arrays, inputs.t)["u"]
    assert relative_l2(u.astype(float), reference.astype(float)).max() < 1e-5
    truth = advection.solve_reference(problem, inputs.arrays, inputs.t)
    floor = relative_l2(reference.astype(float), truth.arrays["u"])
    assert 0.8e-3 < floor.mean() < 1.6e-3
    assert truth.error.mean() < 0.2 * floor.mean()


def test_unequal_times_are_refused_by_the_published_scheme() -> None:
    problem = small("advection")
    drawn = advection.FAMILY.sample_initial(problem, 1, 0)
    with pytest.raises(DataError, match="equally spaced"):
        advection.solve_pdebench(problem, drawn.arrays, np.array([0.0, 0.01, 0.05]))
