"""Time-dependent problems on tensor grids, against exact solutions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from sharp.problems import Problem
from sharp.solvers.axes import ChebyshevAxis
from sharp.solvers.boxes import BoxGrid
from sharp.solvers.collocation import Collocation, paired
from sharp.solvers.method import Deadline, SolverFailed, TimeLimitExceeded, load_method
from sharp.solvers.system import system_of
from tests.helpers.solvers.boxed import boxed, error, solved

WRITTEN = yaml.safe_load(Path(__file__).with_name("problems_in_time.yaml").read_text())
KNOWN = {name: boxed(**arguments) for name, arguments in WRITTEN.items()}
SOLITARY = "a soliton of the Korteweg-de Vries equation"
RING = "waves that run around a ring"
ON_INTERVALS = [name for name in KNOWN if name not in (SOLITARY, RING)]


@pytest.mark.parametrize("name", ON_INTERVALS)
def test_problems_on_an_interval_are_solved_to_spectral_accuracy(name: str) -> None:
    nodes = 18 if "beam" in name or "dispersion" in name else 60
    assert error(KNOWN[name], "chebyshev", nodes) < 1e-8


FOURTH_ORDER = [
    "heat between fixed values",
    "heat in an insulated rod",
    "heat given off at an end",
    "transport through an inflow end",
    "a front of Burgers' equation",
    "air in an open pipe",
]


@pytest.mark.parametrize("name", FOURTH_ORDER)
def test_finite_differences_converge_with_order_four(name: str) -> None:
    coarse, fine = (error(KNOWN[name], "fd", nodes, 1e-10) for nodes in (41, 81))
    assert np.log2(coarse / fine) > 3.7 or fine < 1e-9


@pytest.mark.parametrize(
    ("name", "nodes", "bound"),
    [(SOLITARY, 160, 1e-7), (RING, 40, 1e-9), (RING, 41, 1e-9)],
)
def test_periodic_problems_are_solved_to_spectral_accuracy(name: str, nodes: int, bound: float) -> None:
    assert error(KNOWN[name], "fourier", nodes) < bound


def test_periodic_finite_differences_converge_with_order_four() -> None:
    coarse, fine = (error(KNOWN[RING], "fd", nodes) for nodes in (80, 160))
    assert np.log2(coarse / fine) == pytest.approx(4, abs=0.3)


PLATE = boxed(
    ["u_t = lap(u) + u_xy - exp(-t)*cos(x + y)"],
    {"x": (0, 1), "y": (0, 2)},
    [
        "x = 0: dirichlet u = 0",
        "x = 1: neumann u = exp(-t)*cos(1)*sin(y)",
        "y = 0: dirichlet u = 0",
        "y = 2: robin 1 1 u = exp(-t)*sin(x)*(sin(2) + cos(2))",
    ],
    {"u": "exp(-t)*sin(x)*sin(y)"},
    time=[0, 1],
)
CHANNEL = boxed(
    ["u_t + u_x = u_yy"],
    {"x": (0, "2*pi"), "y": (0, 1)},
    ["periodic x", "all: neumann u = 0"],
    {"u": "sin(x - t)*exp(-pi**2*t)*cos(pi*y)"},
    time=[0, 0.5],
)
BRICK = boxed(
    ["u_t = lap(u)"],
    {"x": (0, 1), "y": (0, 1), "z": (0, 1)},
    [
        "x = 0: dirichlet u = 0",
        "x = 1: dirichlet u = 0",
        "y = 0: neumann u = 0",
        "y = 1: neumann u = 0",
        "z = 0: dirichlet u = 0",
        "z = 1: neumann u = 0",
    ],
    {"u": "exp(-9*pi**2/4*t)*sin(pi*x)*cos(pi*y)*sin(pi*z/2)"},
    time=[0, 0.1],
)


@pytest.mark.parametrize(
    ("problem", "nodes", "bound"), [(PLATE, 14, 1e-9), (CHANNEL, 14, 1e-9), (BRICK, 9, 1e-5)]
)
def test_problems_in_more_dimensions_are_solved_to_spectral_accuracy(
    problem: Problem, nodes: int, bound: float
) -> None:
    assert error(problem, "chebyshev", nodes) < bound


def test_finite_differences_in_the_plane_converge_with_order_four() -> None:
    coarse, fine = (error(PLATE, "fd", nodes) for nodes in (13, 25))
    assert np.log2(coarse / fine) > 3.7


def test_values_are_those_of_the_conditions_at_the_boundary_and_of_the_initial_state_inside() -> None:
    problem = KNOWN["heat with a swinging end"]
    solution = solved(problem, "chebyshev", 30)
    times = np.linspace(0, 3, 7)
    np.testing.assert_allclose(
        solution.evaluate(np.array([[0.0]]), times)[0, :, 0], np.cos(5 * times), atol=1e-12
    )
    x = np.linspace(0.01, 0.99, 20)
    k = np.sqrt(2.5)
    np.testing.assert_allclose(solution.at(x[:, None])[0], np.exp(-k * x) * np.cos(k * x), atol=1e-12)


def test_a_jump_between_initial_and_boundary_values_is_smoothed_as_the_error_function_says() -> None:
    quench = boxed(
        ["u_t = u_xx"],
        {"x": (0, 1)},
        ["x = 0: dirichlet u = 1", "x = 1: dirichlet u = 0"],
        time=[0, 0.01],
        initial={"u": "0"},
        allow=["corner-jump"],
    )
    from scipy.special import erfc

    x = np.linspace(0, 1, 50)
    found = solved(quench, "chebyshev", 60, 1e-6).at(x[:, None], 0.01)[0]
    np.testing.assert_allclose(found, erfc(x / 0.2), atol=1e-6)


def test_a_heater_that_is_switched_off_is_followed_through_the_jump() -> None:
    """The mean of an insulated rod grows by the supplied heat, and no more after the switch."""
    heated = boxed(
        ["u_t = u_xx + piecewise(2, t < 0.3, 0)*(1 + cos(pi*x))"],
        {"x": (0, 1)},
        ["all: neumann u = 0"],
        {
            "u": "piecewise(2*t + 2*cos(pi*x)*(1 - exp(-pi**2*t))/pi**2, t < 0.3, "
            "0.6 + 2*cos(pi*x)*(exp(0.3*pi**2) - 1)*exp(-pi**2*t)/pi**2)"
        },
        time=[0, 1],
        initial={"u": "0"},
    )
    assert error(heated, "chebyshev", 20) < 1e-9


def test_a_solution_that_blows_up_is_not_solved_and_the_time_is_told() -> None:
    growing = boxed(
        ["u_t = u_xx + u**2"], {"x": (0, 1)}, ["all: neumann u = 0"], time=[0, 2], initial={"u": "1"}
    )
    with pytest.raises(SolverFailed, match=r"beyond the time (0\.9999|1,|1\.0000)"):
        solved(growing, "chebyshev", 8)


def test_the_limit_of_time_is_kept() -> None:
    system = system_of(PLATE)
    with pytest.raises(TimeLimitExceeded):
        load_method("chebyshev").solve(system, 12, 1e-6, Deadline.within(-1))


def test_conditions_without_a_factor_are_not_solved() -> None:
    empty = boxed(
        ["u_t = u_xx"],
        {"x": (0, 1)},
        ["x = 0: robin 0 0 u = 0", "x = 1: dirichlet u = 0"],
        time=[0, 1],
        initial={"u": "x - x**2"},
    )
    with pytest.raises(SolverFailed, match="contradict each other, or say nothing"):
        solved(empty, "chebyshev", 10)


@pytest.mark.parametrize("kind", ["constant", "nonlinear"])
def test_the_jacobian_is_the_derivative_of_the_rates(kind: str) -> None:
    reaction = "3*u - v" if kind == "constant" else "sin(u)*v_x + u_x**2"
    problem = boxed(
        [f"u_t = ((1 + x**2)*u_x)_x + {reaction}", "v_t = v_xx + u"],
        {"x": (0, 1)},
        ["x = 0: robin 2 1 u = t", "x = 1: neumann u = 1", "all: dirichlet v = t"],
        fields=["u", "v"],
        time=[0, 1],
        initial={"u": "x", "v": "0"},
    )
    collocation = Collocation(system_of(problem), BoxGrid({"x": ChebyshevAxis(0, 1, 9)}))
    assert collocation.constant == (kind == "constant")
    state = np.random.default_rng(0).standard_normal(collocation.size)
    steps = 1e-6 * np.eye(collocation.size)
    times = np.full(collocation.size, 0.3)
    difference = collocation.rates(times, state + steps) - collocation.rates(times, state - steps)
    np.testing.assert_allclose(collocation.jacobian(0.3, state), difference.T / 2e-6, atol=2e-4, rtol=1e-6)


def test_every_steady_equation_is_replaced_at_the_boundary_of_the_field_it_determines() -> None:
    crossed = boxed(
        ["v = -lap(u)", "lap(v) = 1"],
        {"x": (0, 1), "y": (0, 1)},
        ["all: dirichlet u = 0", "all: dirichlet v = 0"],
        fields=["v", "u"],
    )
    system = system_of(crossed)
    assert system.rows == (1, 0)
    assert paired(system) == (0, 1)


def test_methods_say_why_they_do_not_solve_a_problem() -> None:
    ring = system_of(KNOWN[RING])
    rod = system_of(KNOWN["a hinged beam"])
    assert load_method("fourier").unsupported_reason(rod) == "not periodic: x"
    assert "fourier" in str(load_method("chebyshev").unsupported_reason(ring))
    assert load_method("fd").unsupported_reason(rod) is None
    assert max(load_method("chebyshev").resolution_sequence(rod)) <= 40
