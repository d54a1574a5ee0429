"""The times of pictures: those at which something is to be seen."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.figures import FLAT, figures, varied_share
from tests.helpers.solvers.solving_fakes import HEAT, PLATE, problem_of


def decaying(rate: float) -> DiscreteSolution:
    return DiscreteSolution(
        "exact", 8, lambda points, t: np.exp(-rate * t)[None, :, None] * np.sin(np.pi * points[:, 0]), 8
    )


@pytest.mark.parametrize("rate", [0.0, 0.5, 20.0])
def test_pictures_end_where_the_solution_has_become_flat(rate: float) -> None:
    problem = problem_of(HEAT)
    last = min(1.0, -np.log(FLAT) / rate) if rate else 1.0
    share = varied_share(problem, decaying(rate))
    assert share == pytest.approx(last, abs=1 / 50)
    lines = next(figures(problem, decaying(rate)))
    assert ("it varies by less than 25%" in lines.caption) == (share < 1)


def test_a_solution_that_is_flat_at_all_times_is_shown_to_the_end() -> None:
    assert varied_share(problem_of(HEAT), decaying(1e9)) < 1
    flat = DiscreteSolution("exact", 8, lambda points, t: np.zeros((1, len(t), len(points))), 8)
    assert varied_share(problem_of(HEAT), flat) == varied_share(problem_of(PLATE), flat) == 1.0
