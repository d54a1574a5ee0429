"""Steady problems on tensor grids, against exact solutions."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.solvers.method import Deadline, SolverFailed, TimeLimitExceeded, load_method
from sharp.solvers.system import system_of
from tests.helpers.solvers.boxed import boxed, error, solved
from tests.helpers.solvers.clocks import Clock

SQUARE = {"x": (0, 1), "y": (0, 1)}

KNOWN = {
    "a manufactured source": boxed(
        ["-lap(u) = 5*sin(x)*cos(2*y)"],
        {"x": (0, 1), "y": (-1, 1)},
        [
            "x = 0: dirichlet u = 0",
            "x = 1: neumann u = cos(1)*cos(2*y)",
            "y = -1: dirichlet u = sin(x)*cos(2)",
            "y = 1: robin 1 2 u = sin(x)*(cos(2) - 4*sin(2))",
        ],
        {"u": "sin(x)*cos(2*y)"},
    ),
    "a pure Neumann problem with a given mean": boxed(
        ["lap(u) = -2*pi**2*cos(pi*x)*cos(pi*y)"],
        SQUARE,
        ["all: neumann u = 0"],
        {"u": "3 + cos(pi*x)*cos(pi*y)"},
        mean={"u": 3},
    ),
    "a periodic problem with a given mean": boxed(
        ["u_xx = -sin(x)"], {"x": (0, "2*pi")}, ["periodic x"], {"u": "sin(x) - 1"}, mean={"u": -1}
    ),
    "a coefficient that varies": boxed(
        ["div((1 + x*y)*grad(u)) = f"],
        SQUARE,
        ["all: dirichlet u = x**2 + y"],
        {"u": "x**2 + y"},
        coefficients={"f": "2 + 4*x*y + x"},
    ),
    "Bratu's problem": boxed(
        ["u_xx + exp(u) = 0"],
        {"x": (0, 1)},
        ["all: dirichlet u = 0"],
        {"u": "-2*log(cosh(th/2*(x - 1/2))/cosh(th/4))"},
        parameters={"th": 1.5171645990507543},
    ),
    "a hinged plate as two fields": boxed(
        ["v = lap(u)", "lap(v) = 4*pi**4*sin(pi*x)*sin(pi*y)"],
        SQUARE,
        ["all: dirichlet u = 0", "all: dirichlet v = 0"],
        {"u": "sin(pi*x)*sin(pi*y)", "v": "-2*pi**2*sin(pi*x)*sin(pi*y)"},
        fields=["u", "v"],
    ),
    "a clamped beam": boxed(
        ["u_xxxx = 24"],
        {"x": (0, 1)},
        ["all: dirichlet u = 0", "all: neumann u = 0"],
        {"u": "x**2*(1 - x)**2"},
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_steady_problems_are_solved_to_spectral_accuracy(name: str) -> None:
    method = "fourier" if "periodic" in name else "chebyshev"
    assert error(KNOWN[name], method, 18) < 1e-9


def test_a_box_is_solved_to_spectral_accuracy() -> None:
    brick = boxed(
        ["lap(u) + u = -2*sin(x + y + z)"],
        {"x": (0, 1), "y": (0, 1), "z": (0, 1)},
        ["all: dirichlet u = sin(x + y + z)"],
        {"u": "sin(x + y + z)"},
    )
    assert error(brick, "chebyshev", 9) < 1e-8


@pytest.mark.parametrize(
    "name",
    [
        "a manufactured source",
        "a pure Neumann problem with a given mean",
        "a periodic problem with a given mean",
    ],
)
def test_finite_differences_converge_with_order_four_in_steady_problems(name: str) -> None:
    coarse, fine = (error(KNOWN[name], "fd", nodes) for nodes in (31, 61))
    assert np.log2(coarse / fine) > 3.7


def test_a_boundary_layer_of_a_nonlinear_problem_is_reached_by_damped_steps() -> None:
    """u u' = nu u'' between 1 and -1 has the front -tanh(x/(2 nu)), far from the iteration's start."""
    shock = boxed(
        ["u*u_x = nu*u_xx"],
        {"x": (-1, 1)},
        ["x = -1: dirichlet u = tanh(1/(2*nu))", "x = 1: dirichlet u = -tanh(1/(2*nu))"],
        {"u": "-tanh(x/(2*nu))"},
        parameters={"nu": 0.1},
    )
    assert error(shock, "chebyshev", 70) < 1e-8


def test_a_strong_nonlinearity_is_reached() -> None:
    """u'' = 3/2 u**2 with u(0) = 4, u(1) = 1 has the solution 4/(1 + x)**2 (Stoer and Bulirsch, section 7.3)."""
    steep = boxed(
        ["u_xx = 3*u**2/2"],
        {"x": (0, 1)},
        ["x = 0: dirichlet u = 4", "x = 1: dirichlet u = 1"],
        {"u": "4/(1 + x)**2"},
    )
    assert error(steep, "chebyshev", 24) < 1e-9


def test_an_equation_that_is_singular_about_zero_is_solved_from_what_is_convex() -> None:
    """Monge-Ampère's equation, whose derivatives by all second derivatives vanish at zero."""
    problem = boxed(
        ["u_xx*u_yy - u_xy**2 = (1 + x**2 + y**2)*exp(x**2 + y**2)"],
        SQUARE,
        ["all: dirichlet u = exp((x**2 + y**2)/2)"],
        {"u": "exp((x**2 + y**2)/2)"},
    )
    assert error(problem, "chebyshev", 10) < 1e-5


def test_sources_that_do_not_balance_are_refused() -> None:
    charged = boxed(["lap(u) = 1"], SQUARE, ["all: neumann u = 0"], mean={"u": 0})
    with pytest.raises(SolverFailed, match="off by 1 everywhere"):
        solved(charged, "chebyshev", 10)


@pytest.mark.parametrize("method", ["chebyshev", "fd"])
def test_a_solution_up_to_a_constant_is_refused(method: str) -> None:
    floating = boxed(["lap(u) = cos(pi*x)"], SQUARE, ["all: neumann u = 0"])
    with pytest.raises(SolverFailed, match="'u' is determined up to a constant only; give its mean"):
        solved(floating, method, 12)


def test_a_problem_without_a_solution_is_not_solved() -> None:
    """Bratu's problem has none for factors above 3.51."""
    exploding = boxed(["u_xx + 5*exp(u) = 0"], {"x": (0, 1)}, ["all: dirichlet u = 0"])
    with pytest.raises(SolverFailed, match="Newton's method found no solution beyond"):
        solved(exploding, "chebyshev", 20)


def test_the_limit_of_time_is_kept_within_newtons_method() -> None:
    """Every look at the clock takes a second, and the method looks before each residual and each matrix."""
    system = system_of(KNOWN["Bratu's problem"])
    load_method("chebyshev").solve(system, 12, 1e-6, Deadline.within(60, Clock(tick=1.0)))
    clock = Clock(tick=1.0)
    with pytest.raises(TimeLimitExceeded):
        load_method("chebyshev").solve(system, 12, 1e-6, Deadline.within(5, clock))
    assert clock.now <= 8
