"""Classical problems from specification to verdict: verified, and right to ten times the accuracy asked for."""

from __future__ import annotations

from collections.abc import Sequence
from math import cosh, pi, sin, sinh

import pytest

from sharp.problems import Problem
from sharp.solvers import SolveOptions, exact_errors, solve_problem
from tests.helpers.solvers.boxed import boxed
from tests.helpers.solvers.plane_systems import L_SHAPE, dirichlet, moving, neumann, steady

SQUARE = {"x": (0, 1), "y": (0, 1)}
CUBE = {**SQUARE, "z": (0, 1)}
WALLS = ["x = 0", "x = 1", "y = 0", "y = 1"]
PULSE = "exp(-((x - t - 0.5)**2 + (y - 2*t - 0.5)**2)/(4*(0.02 + t/100)))/(1 + t/2)"
BOX = "sin(pi*x)*sin(pi*y)*cos(pi*z) + x**2 + z"
SWELL = "x*y*sin(2*t)"
DRUM = [9.63972384402, 15.1972519266, 19.7392088022, 29.5214811142]
FIELDS = {
    "two solitons of Korteweg and de Vries": boxed(
        ["u_t + 6*u*u_x + u_xxx = 0"],
        {"x": (-12, 18)},
        ["periodic x"],
        {"u": "12*(3 + 4*cosh(2*x - 8*t) + cosh(4*x - 64*t))/(3*cosh(x - 28*t) + cosh(3*x - 36*t))**2"},
        time=[0, 0.4],
        accuracy=1e-3,
    ),
    "light in a box of mirrors": boxed(
        ["e_t = b_x - a_y", "a_t = -e_y", "b_t = e_x"],
        SQUARE,
        [f"{wall}: dirichlet e = 0" for wall in WALLS],
        {
            "e": "cos(5*pi*t)*sin(3*pi*x)*sin(4*pi*y)",
            "a": "-4/5*sin(5*pi*t)*sin(3*pi*x)*cos(4*pi*y)",
            "b": "3/5*sin(5*pi*t)*cos(3*pi*x)*sin(4*pi*y)",
        },
        time=[0, 0.5],
        accuracy=1e-3,
    ),
    "a pulse that is carried along and spreads": boxed(
        ["u_t + u_x + 2*u_y = lap(u)/100"],
        {"x": (0, 2), "y": (0, 2)},
        [f"all: dirichlet u = {PULSE}"],
        {"u": PULSE},
        time=[0, 0.4],
        accuracy=1e-3,
    ),
    "a charge between plates that leak": boxed(
        ["-lap(u) = 3*pi**2*sin(pi*x)*sin(pi*y)*cos(pi*z) - 2"],
        CUBE,
        [
            *(f"{wall}: dirichlet u = {BOX}" for wall in WALLS),
            "z = 0: robin 2 1 u = 2*sin(pi*x)*sin(pi*y) + 2*x**2 - 1",
            "z = 1: robin 1 2 u = -sin(pi*x)*sin(pi*y) + x**2 + 3",
        ],
        {"u": BOX},
        accuracy=1e-4,
    ),
    "heat on an L with a flux in time": moving(
        "u_t = lap(u) + 2*x*y*cos(2*t)",
        L_SHAPE,
        neumann("-x*sin(2*t)", "edge 0"),
        neumann("y*sin(2*t)", "edge 5"),
        *(dirichlet(SWELL, f"edge {number}") for number in range(1, 5)),
        until=0.5,
        initial={"u": "0"},
        reference={"kind": "exact", "value": {"u": SWELL}},
        accuracy=1e-3,
    ).problem,
    "a clamped plate": boxed(
        ["lap(lap(u)) = 64*pi**4*cos(2*pi*x)*cos(2*pi*y) - 16*pi**4*(cos(2*pi*x) + cos(2*pi*y))"],
        SQUARE,
        ["all: dirichlet u = 0", "all: neumann u = 0"],
        {"u": "(1 - cos(2*pi*x))*(1 - cos(2*pi*y))"},
        accuracy=1e-5,
    ),
    "tones of an L-shaped drum": steady(
        "-lap(u) = m*u",
        L_SHAPE,
        dirichlet("0"),
        eigenvalue={"name": "m", "count": 4},
        reference={"kind": "exact", "eigenvalues": DRUM},
        accuracy=1e-4,
    ).problem,
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_classical_problem_is_verified_and_right(name: str) -> None:
    problem = FIELDS[name]
    found = solve_problem(problem, SolveOptions(time_limit=30, clock="cpu", compare=False))
    assert found.verdict.verified, found.verdict
    assert found.discrete is not None
    errors = exact_errors(problem, found.discrete)
    assert errors
    assert errors.l2 <= 10 * found.accuracy


def cavity(lid: str, accuracy: float, allow: Sequence[str]) -> Problem:
    still = [f"{wall}: dirichlet {field} = 0" for wall in WALLS[:3] for field in "uv"]
    return boxed(
        [
            "u*u_x + v*u_y - lap(u)/100 + p_x = 0",
            "u*v_x + v*v_y - lap(v)/100 + p_y = 0",
            "u_x + v_y = 0",
        ],
        SQUARE,
        [*still, f"y = 1: dirichlet u = {lid}", "y = 1: dirichlet v = 0"],
        fields=["u", "v", "p"],
        mean={"p": 0},
        accuracy=accuracy,
        allow=list(allow),
        quantities={"low": {"value": "u", "at": {"x": 0.5, "y": 0.4581}}},
    )


def test_the_flow_in_a_cavity_has_the_speed_of_the_literature() -> None:
    """C. H. Marchi, R. Suero and L. K. Araki, J. Braz. Soc. Mech. Sci. 31, 2009: the least u at x = 1/2, Re = 100."""
    problem = cavity("1", 2e-3, ["corner-jump"])
    found = solve_problem(problem, SolveOptions(time_limit=40, clock="cpu", cross_check=False))
    assert found.verdict.verified, found.verdict
    low = found.quantities["low"]
    assert low.verified
    assert abs(low.value + 0.2140424) <= low.error <= 2e-3


def test_a_flux_that_meets_a_fixed_value_in_a_corner_is_verified() -> None:
    """Slopes jump in the corners; the solution is a series of sin(n pi y) cosh(n pi x), n odd."""
    problem = boxed(
        ["lap(u) = 0"],
        SQUARE,
        ["x = 0: neumann u = 0", "x = 1: neumann u = 1", "y = 0: dirichlet u = 0", "y = 1: dirichlet u = 0"],
        accuracy=1e-3,
        quantities={"middle": {"value": "u", "at": {"x": 0.5, "y": 0.5}}},
    )
    found = solve_problem(problem, SolveOptions(time_limit=20, clock="cpu"))
    assert found.verdict.verified, found.verdict
    waves = [n * pi for n in range(1, 40, 2)]
    middle = sum(4 / k**2 * sin(k / 2) * cosh(k / 2) / sinh(k) for k in waves)
    assert abs(found.quantities["middle"].value - middle) <= found.quantities["middle"].error
