"""Times at which given functions jump or bend."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.solvers.discontinuities import jump_times
from sharp.solvers.system import system_of
from tests.helpers.solvers.boxed import boxed


def found(source: str = "0", end: str = "0") -> tuple[float, ...]:
    problem = boxed(
        [f"u_t = u_xx + {source}"],
        {"x": (0, 1)},
        [f"x = 0: dirichlet u = {end}", "x = 1: dirichlet u = 0"],
        time=[0, 2],
        initial={"u": "0"},
        allow=["corner-jump"],
    )
    return jump_times(system_of(problem))


@pytest.mark.parametrize(
    "source",
    [
        "piecewise(1, t < 0.7, 0)",
        "Heaviside(t - 0.7)*x",
        "abs(t - 0.7)",
        "max(t, 0.7)",
        "sign(0.49 - t**2)",
        "u*piecewise(2, t <= 0.7 and t > -1, 3)",
    ],
)
def test_switches_in_the_equation_are_found(source: str) -> None:
    np.testing.assert_allclose(found(source), [0.7], atol=1e-13)


def test_switches_at_the_boundary_are_found_once_and_in_order() -> None:
    times = found("Heaviside(t - 1.5)", "piecewise(t, t < 0.5, 0.5) + Heaviside(t - 1.5)")
    np.testing.assert_allclose(times, [0.5, 1.5], atol=1e-13)


def test_every_change_of_a_periodic_switch_is_found() -> None:
    np.testing.assert_allclose(found("Heaviside(sin(4*pi*t))"), np.arange(0.25, 2, 0.25), atol=1e-12)


def test_smooth_functions_and_switches_in_space_have_no_times() -> None:
    assert found("exp(-t)*Heaviside(x - 0.5) + Heaviside(x - t)") == ()


def test_steady_problems_have_none() -> None:
    assert jump_times(system_of(boxed(["u_xx = abs(x)"], {"x": (0, 1)}, ["all: dirichlet u = 0"]))) == ()
