"""Coefficients and sources that jump inside an interval, against exact solutions."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from sharp.problems import Problem
from sharp.solvers.discontinuities import has_discontinuous_flux_coefficient, interfaces
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.driver import SolveOptions, solve_problem
from sharp.solvers.fem_line import IntervalSpace, divided
from sharp.solvers.methods import load_method
from sharp.solvers.residuals import difference, residual
from sharp.solvers.system import system_of
from sharp.solvers.traits import SolutionRegularity
from sharp.solvers.verification import RESIDUAL, WEAK_RESIDUAL
from sharp.solvers.weak_residual import weak_residual
from tests.helpers.solvers.boxed import boxed, error, solved

ROD = {"x": (0, 1)}
COLD = ["x = 0: dirichlet u = 0", "x = 1: dirichlet u = 0"]
# Two layers that meet at 0.4: conductivities and capacities on both sides.
MEET, K, C = 0.4, (1.0, 4.0), (1.0, 2.0)
LAYERS = {"k": f"piecewise({K[0]}, x < {MEET}, {K[1]})", "c": f"piecewise({C[0]}, x < {MEET}, {C[1]})"}


def frequencies(count: int) -> list[float]:
    """The roots w of the condition that u and k*u_x are continuous where sin(w*a*x) meets sin(w*b*(1 - x))."""
    a, b = math.sqrt(C[0] / K[0]), math.sqrt(C[1] / K[1])

    def mismatch(w: float) -> float:
        left, right = w * a * MEET, w * b * (1 - MEET)
        flux = K[0] * a * math.cos(left) * math.sin(right)
        return flux + K[1] * b * math.cos(right) * math.sin(left)

    grid = np.linspace(0.1, 30, 600)
    found = [
        brentq(mismatch, *ends, xtol=1e-15)
        for ends in pairwise(grid)
        if mismatch(ends[0]) * mismatch(ends[1]) < 0
    ]
    return found[:count]


def mode(w: float) -> str:
    """The eigenfunction of a frequency, 1 where the layers meet."""
    a, b = w * math.sqrt(C[0] / K[0]), w * math.sqrt(C[1] / K[1])
    left = f"sin({a!r}*x)/sin({a * MEET!r})"
    return f"piecewise({left}, x < {MEET}, sin({b!r}*(1 - x))/sin({b * (1 - MEET)!r}))"


FIRST = frequencies(1)[0]


def cooling(equation: str, **more: Any) -> Problem:
    return boxed(
        [equation],
        ROD,
        COLD,
        {"u": f"exp(-{FIRST**2!r}*t)*{mode(FIRST)}"},
        time=[0, 0.1],
        initial={"u": mode(FIRST)},
        **more,
    )


STEADY = {
    # Through slabs in series flows (difference of temperatures) / (sum of thickness / conductivity).
    "two layers": boxed(
        ["(k*u_x)_x = 0"],
        ROD,
        ["x = 0: dirichlet u = 0", "x = 1: dirichlet u = 1"],
        {"u": "piecewise(q*x, x < 0.3, 1 - q*(1 - x)/4)"},
        parameters={"q": 1 / (0.3 + 0.7 / 4)},
        coefficients={"k": "piecewise(1, x < 0.3, 4)"},
    ),
    "three layers between fluids": boxed(
        ["((1 + 4*Heaviside(x - 1/5) - 9/2*Heaviside(x - 7/10))*u_x)_x = 0"],
        ROD,
        ["x = 0: robin 2 1 u = 8", "x = 1: robin 3 0.5 u = 0"],
        {"u": "4 - q/2 - q*piecewise(x, x < 0.2, 0.2 + (x - 0.2)/5, x < 0.7, 0.3 + 2*(x - 0.7))"},
        parameters={"q": 4 / (1 / 2 + 0.2 + 0.5 / 5 + 0.3 / 0.5 + 1 / 3)},
    ),
    "a source that is switched on": boxed(
        ["-u_xx = Heaviside(x - 1/3)"],
        ROD,
        COLD,
        {"u": "2*x/9 - max(x - 1/3, 0)**2/2"},
    ),
    "a factor outside the flux": boxed(
        ["u_xx*piecewise(1, x < 0.25, 3) = 6"],
        ROD,
        ["x = 0: dirichlet u = 0", "x = 1: neumann u = 0"],
        {"u": "piecewise(3*x**2 - 3*x, x < 0.25, (x - 1)**2 - 15/16 - 3/16)"},
    ),
}


@pytest.mark.parametrize("problem", STEADY.values(), ids=STEADY)
def test_steady_layers_are_met_up_to_rounding(problem: Problem) -> None:
    assert error(problem, "fem", 4) < 1e-12


@pytest.mark.parametrize(
    "problem",
    [
        cooling("c*u_t = (k*u_x)_x", coefficients=LAYERS),
        cooling("u_t = (k*u_x)_x/c", coefficients=LAYERS),
        cooling("2*u_t*c - 2*(k*u_x)_x = 0", coefficients=LAYERS),
        cooling("u_t = ((1 + 3*Heaviside(x - 2/5))*u_x)_x/(1 + Heaviside(x - 2/5))"),
    ],
    ids=["capacity in front", "divided by the capacity", "twice", "steps"],
)
def test_a_rod_of_two_layers_cools_like_its_first_mode(problem: Problem) -> None:
    assert error(problem, "fem", 4, 1e-9) < 1e-9


def test_modes_of_two_layers_are_those_of_the_transcendental_equation() -> None:
    problem = boxed(
        ["-(k*u_x)_x = mu*c*u"], ROD, COLD, coefficients=LAYERS, eigenvalue={"name": "mu", "count": 3}
    )
    solution = solved(problem, "fem", 8)
    np.testing.assert_allclose(solution.eigenvalues, np.square(frequencies(3)), rtol=1e-10)


def test_a_string_of_two_pieces_swings_in_its_first_mode() -> None:
    problem = boxed(
        ["c*u_tt = (k*u_x)_x"],
        ROD,
        COLD,
        {"u": f"cos({FIRST!r}*t)*{mode(FIRST)}"},
        time=[0, 1],
        initial={"u": mode(FIRST), "u_t": "0"},
        coefficients=LAYERS,
    )
    assert error(problem, "fem", 4, 1e-9) < 1e-9


def test_a_ring_of_two_halves_cools_in_a_mode_that_is_even_about_both_middles() -> None:
    w = brentq(lambda w: 2 * math.sin(w / 8) * math.cos(w / 4) + math.cos(w / 8) * math.sin(w / 4), 6.5, 12.5)
    left = f"cos({w / 2!r}*(x - 1/4))/cos({w / 8!r})"
    shape = f"piecewise({left}, x < 0.5, cos({w!r}*(x - 3/4))/cos({w / 4!r}))"
    problem = boxed(
        ["u_t = (k*u_x)_x"],
        ROD,
        ["periodic x"],
        {"u": f"exp(-{w**2!r}*t)*{shape}"},
        time=[0, 0.02],
        initial={"u": shape},
        coefficients={"k": "piecewise(4, x < 0.5, 1)"},
    )
    assert load_method("fem").unsupported_reason(system_of(problem)) is None
    assert error(problem, "fem", 8, 1e-9) < 1e-9


def test_errors_fall_with_nearly_the_ninth_order() -> None:
    problem = boxed(
        ["-(k*u_x)_x = k*exp(8*x)"],
        ROD,
        ["x = 0: dirichlet u = -1/64", "x = 1: dirichlet u = -exp(8)/64"],
        {"u": "-exp(8*x)/64"},
        coefficients={"k": "piecewise(1, x < 0.5, 1)"},
    )
    coarse, fine = (error(problem, "fem", n) for n in (4, 8))
    assert math.log2(coarse / fine) > 8


def test_a_layered_problem_is_verified_from_end_to_end() -> None:
    found = solve_problem(
        cooling("u_t = (k*u_x)_x/c", coefficients=LAYERS), SolveOptions(compare=False, cross_check=False)
    )
    assert (found.verdict.status, found.discrete.method) == ("verified", "fem")
    checks = {check.name: check for check in found.verdict.checks}
    assert checks[RESIDUAL].value < 1e-6
    assert checks[WEAK_RESIDUAL].value < 1e-3


def test_the_balance_sees_a_wrong_flux_behind_a_factor_that_jumps() -> None:
    """As if k*u_x/c were continuous: the layers of the wrong solution conduct like k/c."""
    wrong = cooling("u_t = ((k/c)*u_x)_x", coefficients=LAYERS)
    solution = solved(wrong, "fem", 8)
    asked = cooling("u_t = (k*u_x)_x/c", coefficients=LAYERS)
    assert weak_residual(wrong, solution) < 1e-4
    assert weak_residual(asked, solution) > 0.01
    assert weak_residual(asked, solved(asked, "fem", 8)) < 1e-3


@pytest.mark.parametrize("method", ["chebyshev", "fd", "fourier"])
def test_methods_that_look_at_points_refuse_a_flux_with_a_factor_that_jumps(method: str) -> None:
    assert "flux is continuous" in load_method(method).unsupported_reason(system_of(STEADY["two layers"]))
    ring = boxed(
        ["u_t = ((2 + sign(x - 1/2))*u_x)_x"], ROD, ["periodic x"], time=[0, 1], initial={"u": "sin(2*pi*x)"}
    )
    assert "flux is continuous" in load_method(method).unsupported_reason(system_of(ring))


@pytest.mark.parametrize("name", ["a source that is switched on", "a factor outside the flux"])
def test_they_take_jumps_that_no_flux_has(name: str) -> None:
    assert load_method("fd").unsupported_reason(system_of(STEADY[name])) is None


def test_a_factor_with_a_kink_is_no_jump() -> None:
    kink = boxed(["((1 + max(x - 1/2, 0))*u_x)_x = 1"], ROD, COLD)
    bent = boxed(["(k*u_x)_x = 1"], ROD, COLD, coefficients={"k": "piecewise(1, x < 0.5, 1/2 + x)"})
    assert [interfaces(kink), interfaces(bent)] == [(0.5,), (0.5,)]
    assert not has_discontinuous_flux_coefficient(kink)
    assert not has_discontinuous_flux_coefficient(bent)


def test_interfaces_are_those_of_equations_and_initial_states_alone() -> None:
    problem = boxed(
        ["u_t = (k*u_x)_x + Heaviside(t - 1/2) + abs(u)"],
        ROD,
        COLD,
        coefficients={"k": "piecewise(1, x < a, 2, x >= 0.75, 3)"},
        parameters={"a": 0.25},
        time=[0, 1],
        initial={"u": "min(x, 1 - x)"},
    )
    np.testing.assert_allclose(interfaces(problem), [0.25, 0.5, 0.75], atol=1e-14)
    assert (
        interfaces(boxed(["lap(u) = sign(x)"], {"x": (-1, 1), "y": (0, 1)}, ["all: dirichlet u = 0"])) == ()
    )


def test_jumps_that_a_weak_form_cannot_tell_are_refused() -> None:
    mixed = boxed(
        ["u_t = k*u_xx + (c*u_x)_x"], ROD, COLD, coefficients=LAYERS, time=[0, 1], initial={"u": "0"}
    )
    assert "a factor in front of a derivative jumps" in load_method("fem").unsupported_reason(
        system_of(mixed)
    )
    late = boxed(
        ["piecewise(1, x < t, 2)*u_t = u_xx + sign(x - 1/2)"], ROD, COLD, time=[0, 1], initial={"u": "0"}
    )
    carried = boxed(["u_t + (c*u)_x = u_xx"], ROD, COLD, coefficients=LAYERS, time=[0, 1], initial={"u": "0"})
    assert "carried along jumps" in load_method("fem").unsupported_reason(system_of(carried))
    assert "depends on more than the place" in load_method("fem").unsupported_reason(system_of(late))


@pytest.mark.parametrize(
    "equation", ["(k*u_x)_x = 1", "-u_xx = Heaviside(x - 1/3)", "((2 + sign(x - 1/2))*u_x)_x = 1"]
)
def test_jumps_in_the_equation_are_layers(equation: str) -> None:
    assert (
        SolutionRegularity(system_of(boxed([equation], ROD, COLD, coefficients=LAYERS))).situation
        == "discontinuous-coefficient"
    )


def test_differences_do_not_reach_over_an_interface() -> None:
    problem = STEADY["two layers"]
    points = np.array([[0.3 - 0.0039], [0.3 - 0.0041], [0.3 + 0.0041]])
    kinked = DiscreteSolution("exact", 1, lambda x, t: np.abs(x[:, 0] - 0.3)[None, None].repeat(len(t), 1), 1)
    step, times = np.array([1e-3]), np.zeros(1)
    found = difference(problem, kinked, (1,), points, times, step, 1.0)[0, 0]
    np.testing.assert_allclose(found, [np.nan, -1, 1], rtol=1e-9)
    own = difference(problem, kinked, (1,), points, times, np.array([[1e-4], [1e-3], [1e-3]]), 1.0)
    np.testing.assert_allclose(own[0, 0], [-1, -1, 1], rtol=1e-9)


def test_the_residual_of_an_exact_layered_solution_is_rounding_everywhere() -> None:
    problem = STEADY["three layers between fluids"]
    assert residual(problem, solved(problem, "fem", 4)).largest < 1e-6


def test_an_interval_is_divided_at_its_inner_points() -> None:
    np.testing.assert_allclose(divided(0, 1, (), 4), [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(divided(0, 1, (0.3,), 2), [0, 0.3, 0.65, 1])
    np.testing.assert_allclose(divided(-1, 1, (0.0, 1e-3), 2), [-1, 0, 1e-3, 1])


def test_a_line_reproduces_polynomials_and_integrates_their_products() -> None:
    line = IntervalSpace(divided(0, 2, (0.7,), 3), 5)
    x = line.points[:, 0]
    assert line.size == len(x) == 4 * 5 + 1
    assert np.all(np.diff(x) > 0)
    places = np.array([[0.0], [0.7], [1.234], [2.0]])
    np.testing.assert_allclose(line.interpolation(places) @ x**5, places[:, 0] ** 5, atol=1e-12)
    np.testing.assert_allclose(line.weights @ x**5, 2**6 / 6)
    mass = line.inside.matrix({(0, 0): np.ones_like(line.inside.weights)})
    np.testing.assert_allclose(x**5 @ (mass @ x**4), 2**10 / 10)
    np.testing.assert_allclose(line.inside.at(1, x**3), 3 * line.inside.points[..., 0] ** 2, atol=1e-12)
    for part, place in (("x-", 0.0), ("x+", 2.0)):
        np.testing.assert_allclose(x[line.on(part)], place)
        np.testing.assert_allclose(line.along(part).at(1, x**3), 3 * place**2, atol=1e-12)
        np.testing.assert_allclose(line.along(part).vector(0, np.ones((1, 1))) @ x, place, atol=1e-14)


def test_both_ends_of_a_ring_are_one_point() -> None:
    ring = IntervalSpace(divided(0, 1, (0.25,), 3), 8, periodic=True)
    x = ring.points[:, 0]
    assert ring.size == len(x) == 4 * 8
    wave = np.cos(2 * np.pi * x)
    places = np.array([[0.0], [0.1], [0.9], [1.0]])
    found = ring.interpolation(places) @ wave
    np.testing.assert_allclose(found, np.cos(2 * np.pi * places[:, 0]), atol=1e-6)
    assert found[0] == found[-1]
    assert ring.weights.sum() == pytest.approx(1)
