"""The second integrator on its own: exact solutions, stiffness, and methods that are asked for it."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.solvers import all_methods
from sharp.solvers.method import (
    NEVER,
    Deadline,
    SolverFailed,
    Stepping,
    TimeLimitExceeded,
    with_other_integrator,
)
from sharp.solvers.refine import distance
from sharp.solvers.runge_kutta import NODES, STAGES, WEIGHTS, integrate
from sharp.solvers.system import system_of
from sharp.solvers.tensor_methods import Chebyshev
from tests.helpers.solvers.solving_fakes import HEAT, problem_of
from tests.unit.solvers.test_radau import Equations, linear

IN_TIME = NEVER


def test_the_implicit_method_is_of_order_four() -> None:
    """The eight conditions of Hairer, Nørsett and Wanner, table II.2.1, and rows that sum to the nodes."""
    b, c, a = WEIGHTS, NODES, STAGES
    found = [b.sum(), b @ c, b @ c**2, b @ a @ c, b @ c**3, (b * c) @ a @ c, b @ a @ c**2, b @ a @ a @ c]
    assert found == pytest.approx([1, 1 / 2, 1 / 3, 1 / 6, 1 / 4, 1 / 8, 1 / 12, 1 / 24])
    assert a.sum(axis=1) == pytest.approx(c)


@pytest.mark.parametrize("speed", [1.0, 1e6], ids=["explicit", "implicit"])
def test_a_driven_decay_is_followed(speed: float) -> None:
    """z' = -speed (z - cos t) - sin t has the solution cos t, however stiff it is."""
    drive = linear(np.array([[-speed]]), lambda t: np.array([speed * np.cos(t) - np.sin(t)]))
    found = integrate(drive, np.array([1.0]), (0.0, 3.0), 1e-8, IN_TIME)
    times = np.linspace(0, 3, 50)
    assert np.abs(found.at(times)[:, 0] - np.cos(times)).max() < 3e-7


def test_nonlinear_stiff_equations_are_followed() -> None:
    """z' = -2000 (z**3 - c**3) with z(0) = 2 tends to c; the slow part c(t) = 1 + t is held by a second equation."""

    def rates(_: float, z: np.ndarray) -> np.ndarray:
        return np.array([-2e4 * (z[0] ** 3 - z[1] ** 3) + 1.0, 1.0])

    def jacobian(_: float, z: np.ndarray) -> np.ndarray:
        return np.array([[-6e4 * z[0] ** 2, 6e4 * z[1] ** 2], [0.0, 0.0]])

    found = integrate(Equations(rates, jacobian), np.array([1.0, 1.0]), (0.0, 2.0), 1e-7, IN_TIME)
    assert found.at(np.array([0.5, 2.0]))[:, 0] == pytest.approx([1.5, 3.0], abs=1e-6)


def test_a_speed_that_is_next_to_nothing_at_the_start_is_no_scale() -> None:
    """A pendulum let go at rest but for rounding, beside a component that makes the system stiff."""
    swing = linear(np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, -1e6]]), lambda _: np.zeros(3))
    found = integrate(swing, np.array([1.0, 1e-230, 0.0]), (0.0, 3.0), 1e-8, IN_TIME)
    assert found.at(np.array([3.0]))[0, :2] == pytest.approx([np.cos(3), -np.sin(3)], abs=1e-6)


def test_steps_end_where_rates_jump() -> None:
    steps = linear(np.array([[0.0]]), lambda t: np.array([float(t > 0.3)]))
    found = integrate(steps, np.array([0.0]), (0.0, 1.0), 1e-9, IN_TIME, [0.3])
    assert found.at(np.array([0.3, 1.0]))[:, 0] == pytest.approx([0.0, 0.7], abs=1e-10)


@pytest.mark.parametrize("stiff", [False, True])
def test_a_blow_up_is_told(stiff: bool) -> None:
    factor = 1e5 if stiff else 0.0
    growth = Equations(
        lambda _, z: np.array([z[0] ** 2, -factor * z[1]]),
        lambda _, z: np.diag([2 * z[0], -factor]),
    )
    with pytest.raises(SolverFailed, match=r"could not be followed beyond the time (0\.99|1)"):
        integrate(growth, np.array([1.0, 1.0]), (0.0, 2.0), 1e-6, IN_TIME)


def test_the_limit_of_time_is_kept() -> None:
    with pytest.raises(TimeLimitExceeded):
        integrate(linear(np.array([[-1.0]])), np.array([1.0]), (0.0, 1.0), 1e-6, Deadline.within(-1.0))


def test_a_method_can_be_asked_for_the_other_integrator() -> None:
    system = system_of(problem_of(HEAT))
    first, other = Chebyshev(), with_other_integrator(Chebyshev())
    found = [method.solve(system, 16, 1e-7, IN_TIME) for method in (first, other)]
    assert found[0].facts != found[1].facts
    assert 0 < distance(system, *found) < 1e-6


def test_those_with_one_integrator_stay_as_they_are() -> None:
    for method in all_methods():
        other = with_other_integrator(method)
        assert isinstance(method, Stepping) == (getattr(other, "integrator", None) == "runge-kutta")
        assert other.name == method.name
