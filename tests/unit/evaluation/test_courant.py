"""Time steps against explicit limits worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.evaluation.task import courant_note
from sharp.problems import load_problem
from sharp.reference.datasets import Inputs

T = np.linspace(0, 2, 11)
X = (np.arange(100) + 0.5) / 100
ONES = np.ones((2, 100))
LIMITS = {
    "advection": ({"u0_batch": ONES}, "transport limit dx/beta = 0.1"),
    "burgers": ({"u0_batch": 4 * ONES}, "transport limit dx/max|u| = 0.0025"),
    "reaction-diffusion": ({"u0_batch": ONES}, "diffusion limit dx^2/(2 nu) = 0.0001"),
    "navier-stokes": (
        {"Vx0": 3 * ONES, "density0": 5 / 3 * ONES, "pressure0": ONES},
        "diffusion limit dx^2/(2 mu/rho) = 0.000857",
    ),
}


@pytest.mark.parametrize("problem_id", LIMITS)
def test_tightest_limit_is_named(problem_id):
    arrays, limit = LIMITS[problem_id]
    note = courant_note(load_problem(problem_id), Inputs(arrays, T, X), 1.0)
    assert f"explicit {limit} on the output grid." in note, note


def test_ratio_of_step_and_limit():
    inputs = Inputs({"u0_batch": ONES}, T, X)
    assert courant_note(load_problem("advection"), inputs, 0.32) == (
        "Its time step 0.32 is 3.2 times the explicit transport limit dx/beta = 0.1 on the output grid."
    )


def test_step_follows_from_the_number_of_steps():
    inputs = Inputs({"u0_batch": ONES}, T, X)
    assert "Its time step 0.02 is 0.2 times" in courant_note(load_problem("advection"), inputs, None, 100)


def test_nothing_is_said_where_nothing_is_known():
    inputs = Inputs({"u0_batch": ONES}, T, X)
    assert courant_note(load_problem("advection"), inputs, None) == ""
    plane = Inputs({"a": np.ones((1, 5, 5))}, None, np.linspace(0, 1, 5))
    assert courant_note(load_problem("darcy"), plane, 0.1) == ""
