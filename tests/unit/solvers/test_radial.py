"""Differences on scattered nodes: exact for polynomials, convergent, and a witness beside finite elements."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.problems.domains import PolygonDomain
from sharp.problems.plane_domains import plane_domain
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.driver import SolveOptions, solve_problem, verify_study
from sharp.solvers.radial import RadialDifferences, ScatteredNodes
from sharp.solvers.refine import RefinementStudy, ResolutionAttempt
from sharp.solvers.verification import CROSS_CHECK
from tests.helpers.solvers.plane_systems import (
    DISK,
    L_SHAPE,
    TRIANGLE,
    dirichlet,
    error,
    moving,
    neumann,
    solved,
    steady,
)

RBF = RadialDifferences()
CORNERS = tuple((float(x), float(y)) for x, y in L_SHAPE["vertices"])
NODES = ScatteredNodes(plane_domain(PolygonDomain(("x", "y"), CORNERS)), 12)
HOLED = {
    "type": "box",
    "bounds": {"x": [0, 2], "y": [0, 1]},
    "holes": [{"type": "disk", "center": [0.6, 0.5], "radius": 0.2}],
}
SHAPE = "sin(x)*cos(2*y)"
# Its slope along the normal (sqrt(3)/2, 1/2) of the right side of the triangle.
SLOPE = "sqrt(3)/2*cos(x)*cos(2*y) - sin(x)*sin(2*y)"


def shape(x, y, t=0.0):
    return np.exp(-t) * np.sin(x) * np.cos(2 * y)


def test_differences_and_interpolation_are_exact_for_polynomials_of_degree_five() -> None:
    x, y = NODES.points.T
    values = x**3 * y**2 - 2 * x * y**4 + y
    for by, exact in {
        (1, 0): 3 * x**2 * y**2 - 2 * y**4,
        (0, 1): 2 * x**3 * y - 8 * x * y**3 + 1,
        (2, 0): 6 * x * y**2,
        (1, 1): 6 * x**2 * y - 8 * y**3,
        (0, 2): 2 * x**3 - 24 * x * y**2,
    }.items():
        assert np.max(np.abs(NODES.derivative(by) @ values - exact)) < 1e-7
    places = np.array([[0.31, 0.27], [-0.5, -0.8], [0.99, 0.99]])
    a, b = places.T
    assert NODES.interpolation(places) @ values == pytest.approx(a**3 * b**2 - 2 * a * b**4 + b, abs=1e-10)
    assert NODES.weights.sum() == pytest.approx(3.0)


def test_normal_derivatives_point_out_of_the_domain() -> None:
    nodes = NODES.parts["edge 1"]
    x, y = NODES.points.T
    assert np.all(x[nodes] == 1)
    assert NODES.normal_derivative("edge 1", 1) @ (x**2 * y) == pytest.approx(2 * y[nodes], abs=1e-8)
    assert NODES.normal_derivative("edge 1", 2) @ (x**2 * y) == pytest.approx(2 * y[nodes], abs=1e-7)


def test_errors_fall_with_the_third_power_of_the_distance_of_nodes_at_least() -> None:
    sides = (dirichlet(SHAPE, "edge 0"), neumann(SLOPE, "edge 1"), dirichlet(SHAPE, "edge 2"))
    system = steady(f"-lap(u) = 5*{SHAPE}", TRIANGLE, *sides)
    coarse, fine = (error(solved(RBF, system, n), system, shape) for n in (10, 20))
    assert fine < coarse / 8
    assert fine < 1e-5


def test_heat_in_a_box_with_a_hole() -> None:
    given = dirichlet(f"exp(-t)*{SHAPE}")
    system = moving(f"u_t = lap(u) + 4*exp(-t)*{SHAPE}", HOLED, given, until=0.5, initial={"u": SHAPE})
    assert error(solved(RBF, system, 20, 1e-6), system, shape) < 1e-5


def test_it_is_there_where_no_other_collocation_is_and_says_what_it_cannot_do() -> None:
    assert "fit this domain" in str(RBF.unsupported_reason(steady("lap(u) = 0", DISK, dirichlet("x"))))
    plate = steady("lap(lap(u)) = 1", TRIANGLE, dirichlet("0"), neumann("0"))
    assert "second order" in str(RBF.unsupported_reason(plate))
    jump = {"a": "piecewise(1, x < 0.5, 2)"}
    layers = steady("div(a*grad(u)) = 0", TRIANGLE, dirichlet("x"), coefficients=jump)
    assert "smooth" in str(RBF.unsupported_reason(layers))


def test_a_solution_of_elements_on_a_domain_with_a_hole_has_a_second_method_in_space() -> None:
    problem = steady(f"-lap(u) = 5*{SHAPE}", HOLED, dirichlet(SHAPE), accuracy=1e-5).problem
    found = solve_problem(problem, SolveOptions(time_limit=30, clock="cpu"))
    assert found.verdict.verified
    assert [trial.refinement.method for trial in found.trials] == ["fem"]
    assert found.cross_check is not None
    assert found.cross_check.method == "rbf"
    assert found.cross_check.distance < 1e-4


def test_elements_that_agree_on_a_wrong_solution_are_contradicted() -> None:
    problem = steady(f"-lap(u) = 5*{SHAPE}", HOLED, dirichlet(SHAPE), accuracy=1e-5).problem

    def tilted(points, times):
        x, y = points.T
        bump = 0.002 * np.sin(np.pi * x / 2) * np.sin(np.pi * y) * (np.hypot(x - 0.6, y - 0.5) - 0.2)
        return np.broadcast_to(shape(x, y) + bump, (1, len(times), len(points)))

    attempts = (ResolutionAttempt("fem", 8, 0.1, 300), ResolutionAttempt("fem", 16, 0.1, 900, 1e-8))
    study = RefinementStudy("fem", attempts, DiscreteSolution("fem", 16, tilted, 900), 1e-8, None, True)
    options = SolveOptions(time_limit=20, clock="cpu", resolution=20)
    verdict = verify_study(problem, study, options).verdict
    assert not verdict.verified
    assert {check.name: check.verdict for check in verdict.checks}[CROSS_CHECK] != "verified"
