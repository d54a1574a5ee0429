"""Incompressible flow, elasticity, and fluxes on the boundary: solved and judged, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sharp.problems import Problem, check_well_posedness, parse_problem
from sharp.solvers.comparison import solution_distance
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.driver import SolveOptions, solve_problem
from sharp.solvers.exact import exact_errors
from sharp.solvers.fem import FemSystem, FiniteElements, element_space
from sharp.solvers.grid import Array
from sharp.solvers.matrices import Solve, factorise_bordered
from sharp.solvers.method import NEVER, Deadline, load_method
from sharp.solvers.solution import Solution
from sharp.solvers.steady import solve_steady
from sharp.solvers.system import UnsupportedProblem, system_of
from tests.helpers.solvers.plane_systems import dirichlet, periodic, steady

SQUARE = "{type: box, bounds: {x: [0, 1], y: [0, 1]}}"
STOKES = ("-nu*lap(u) + p_x = fx", "-nu*lap(v) + p_y = fy", "u_x + v_y = 0")
NAVIER_STOKES = (
    "u*u_x + v*u_y - nu*lap(u) + p_x = 0",
    "u*v_x + v*v_y - nu*lap(v) + p_y = 0",
    "u_x + v_y = 0",
)
ELASTICITY = (
    "((lam + 2*mu)*u_x + lam*v_y)_x + (mu*(u_y + v_x))_y + fx = 0",
    "(mu*(u_y + v_x))_x + (lam*u_x + (lam + 2*mu)*v_y)_y + fy = 0",
)
Given = tuple[str, str, str, str]


def walls(u: str, v: str, *where: str) -> list[Given]:
    return [(place, "dirichlet", name, value) for place in where for name, value in (("u", u), ("v", v))]


def problem(
    equations: Sequence[str],
    boundary: Sequence[Given],
    fields: str = "u, v, p",
    domain: str = SQUARE,
    more: str = "",
) -> Problem:
    lines = ["pde_spec: 1", "id: case", "title: A case", f"fields: [{fields}]", f"domain: {domain}"]
    if "coordinates:" not in more:
        lines.append("coordinates: {space: [x, y]}")
    lines += ["equations:", *(f'  - "{equation}"' for equation in equations), "boundary:"]
    lines += [f'  - {{where: {w}, type: {t}, field: {f}, value: "{v}"}}' for w, t, f, v in boundary]
    return parse_problem("\n".join([*lines, more]), "case.yaml")


def solved(given: Problem, accuracy: float) -> Solution:
    return solve_problem(
        given, SolveOptions(accuracy=accuracy, cross_check=False, time_limit=60, clock="cpu")
    )


def kinds(given: Problem) -> list[str]:
    return [concern.kind for concern in check_well_posedness(given) if concern.verdict != "warn"]


def stokes(
    p: str = "cos(pi*x)*cos(pi*y)", more: str = "mean: {p: 0}", order: Sequence[int] = (0, 1, 2)
) -> Problem:
    u, v = "sin(pi*x)*cos(pi*y)", "-cos(pi*x)*sin(pi*y)"
    source = (
        "parameters: {nu: 0.4}\ncoefficients:\n  fx: (0.8*pi**2*sin(pi*x) - pi*sin(pi*x))*cos(pi*y)\n"
        '  fy: "(-0.8*pi**2*sin(pi*y) - pi*sin(pi*y))*cos(pi*x)"\n'
    )
    exact = f'reference: {{kind: exact, value: {{u: "{u}", v: "{v}", p: "{p}"}}}}\n'
    return problem([STOKES[k] for k in order], walls(u, v, "all"), more=source + exact + more)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_stokes_flow_with_its_pressure_is_verified_however_equations_are_ordered(
    order: Sequence[int],
) -> None:
    found = solved(stokes(order=order), 1e-3)
    assert found.verdict.verified, found.verdict
    errors = exact_errors(found.problem, found.trial.refinement.solution) if found.trial else None
    assert errors is not None
    assert errors.l2 < 1e-3


def test_solutions_whose_pressure_is_as_good_as_none_are_compared_by_the_forces_of_the_flow() -> None:
    def flow(noise: float) -> DiscreteSolution:
        def evaluated(points: Array, times: Array) -> Array:
            x, y = np.pi * points.T
            values = [np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y), noise * np.cos(9 * x)]
            return np.repeat(np.array(values)[:, None], len(times), axis=1)

        return DiscreteSolution("fem", 8, evaluated, 100)

    assert 1e-7 < solution_distance(stokes(), flow(1e-6), flow(-1e-6)) < 1e-4


def test_the_level_of_a_pressure_is_not_fixed_where_elements_are_tiny(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Towards corners of holes they are so small that rounding would spoil the pressure everywhere else."""
    pinned: list[int] = []

    def seen(matrix: Any, border: int, pins: Sequence[int]) -> Solve:
        pinned.extend(pins)
        return factorise_bordered(matrix, border, pins)

    monkeypatch.setattr("sharp.solvers.steady.factorise_bordered", seen)
    notch = "{type: polygon, vertices: [[0, 0], [1, 0], [1, 0.5], [0.5, 0.5], [0.5, 1], [0, 1]]}"
    given = system_of(
        problem(
            STOKES,
            walls("0", "0", "all"),
            domain=notch,
            more="parameters: {nu: 1}\ncoefficients: {fx: y, fy: x*y}\nmean: {p: 0}",
        )
    )
    elements = FemSystem(given, element_space(given, 4))
    solve_steady(elements, NEVER)
    sizes = np.abs(elements.constants()[2])
    assert np.flatnonzero(sizes > 0).min() < pinned[0]
    assert sizes[pinned[0]] == sizes.max()


IN_SPACE = {"u": "sin(x)*cos(y)", "v": "-cos(x)*sin(y) + sin(z)", "w": "cos(x)", "p": "x*y*z"}
IN_A_STRIP = {"u": "cos(3*x)*cos(y)", "v": "3*sin(3*x)*sin(y)", "p": "cos(3*x)*y"}
FLOWS = {
    "a box": steady(
        [
            "u_x + v_y + w_z = 0",
            "-nu*lap(w) + p_z = nu*cos(x) + x*y",
            "-nu*lap(u) + p_x = 2*nu*sin(x)*cos(y) + y*z",
            "-nu*lap(v) + p_y = nu*(sin(z) - 2*cos(x)*sin(y)) + x*z",
        ],
        {"type": "box", "bounds": {"x": [0, 1], "y": [0, 1], "z": [0, 2]}},
        *(dirichlet(IN_SPACE[name], field=name) for name in "uvw"),
        space="xyz",
        fields="uvwp",
        mean={"p": "1/4"},
        parameters={"nu": 0.05},
        reference={"kind": "exact", "value": IN_SPACE},
    ),
    "a periodic strip": steady(
        [
            "-nu*lap(u) + p_x = 10*nu*cos(3*x)*cos(y) - 3*y*sin(3*x)",
            "-nu*lap(v) + p_y = 30*nu*sin(3*x)*sin(y) + cos(3*x)",
            "u_x + v_y = 0",
        ],
        {"type": "box", "bounds": {"x": [0, "2*pi"], "y": [-1, 1]}},
        *periodic("x"),
        *(dirichlet(IN_A_STRIP[name], where, name) for name in "uv" for where in ("y = -1", "y = 1")),
        fields="uvp",
        mean={"p": "0"},
        parameters={"nu": 0.05},
        reference={"kind": "exact", "value": IN_A_STRIP},
    ),
}


@pytest.mark.parametrize("place", FLOWS)
def test_pressures_of_two_degrees_less_than_velocities_go_with_polynomials(place: str) -> None:
    found = solved(FLOWS[place].problem, 1e-7)
    assert found.discrete is not None
    assert found.discrete.method == "chebyshev"
    assert found.verdict.status == "verified", found.verdict.reason
    errors = exact_errors(found.problem, found.discrete)
    assert errors is not None
    assert errors.l2 < 1e-7


def test_velocities_that_jump_at_corners_are_not_for_polynomials() -> None:
    lids = [("y = 1", "dirichlet", "u", "1"), ("y = 1", "dirichlet", "v", "0")]
    more = "parameters: {nu: 1}\nmean: {p: 0}\nallow: [corner-jump]\ncoefficients: {fx: 0, fy: 0}\n"
    cavity = problem(STOKES, [*lids, *walls("0", "0", "x = 0", "x = 1", "y = 0")], more=more)
    reason = load_method("chebyshev").unsupported_reason(system_of(cavity))
    assert reason == "velocities jump where walls meet, and pressures grow beyond all polynomials there"


def test_a_pressure_without_level_is_asked_for_and_flow_that_does_not_balance_is_refused() -> None:
    assert kinds(stokes(more="")) == ["undetermined-constant"]
    inflow = walls("y*(1-y)", "0", "x = 0") + walls("0", "0", "x = 1", "y = 0", "y = 1")
    more = "parameters: {nu: 1, fx: 0, fy: 0}\nmean: {p: 0}"
    assert kinds(problem(STOKES, inflow, more=more)) == ["incompatible-flux"]


def test_an_open_outlet_fixes_the_pressure_of_a_channel() -> None:
    outlet = [("x = 1", "flux", "u", "0"), ("x = 1", "flux", "v", "0")]
    boundary = walls("4*y*(1-y)", "0", "x = 0") + walls("0", "0", "y = 0", "y = 1") + outlet
    exact = "reference: {kind: exact, value: {u: 4*y*(1-y), v: 0, p: 8*nu*(1-x)}}"
    given = problem(NAVIER_STOKES, boundary, more=f"parameters: {{nu: 0.12}}\n{exact}")
    found = solved(given, 1e-3)
    assert found.verdict.verified, found.verdict


def test_a_decaying_vortex_is_followed_in_time() -> None:
    u, v = "sin(x)*cos(y)*exp(-2*nu*t)", "-cos(x)*sin(y)*exp(-2*nu*t)"
    equations = (
        "u_t + u*u_x + v*u_y = nu*lap(u) - p_x",
        "v_t + u*v_x + v*v_y = nu*lap(v) - p_y",
        "u_x + v_y = 0",
    )
    more = (
        "coordinates: {space: [x, y], time: t}\nparameters: {nu: 0.05}\ntime: [0, 0.5]\nmean: {p: 0}\n"
        'initial: {u: sin(x)*cos(y), v: "-cos(x)*sin(y)"}\n'
        f'reference: {{kind: exact, value: {{u: "{u}", v: "{v}", '
        'p: "(cos(2*x) + cos(2*y) - sin(2))/4*exp(-4*nu*t)"}}'
    )
    given = problem(equations, walls(u, v, "all"), more=more)
    found = FiniteElements().solve(system_of(given), 3, 1e-3, Deadline.within(60))
    errors = exact_errors(given, found)
    assert errors is not None
    assert errors.l2 < 2e-3


@pytest.mark.parametrize("nu", [0.3, 0.4999])
def test_a_cylinder_under_pressure_is_solved_by_its_tractions_nearly_incompressible_too(nu: float) -> None:
    size = "A*(1+nu)/E0*((1-2*nu) + b**2/(x**2+y**2))"
    boundary = [
        ("inner", "flux", "u", "P*x/a"),
        ("inner", "flux", "v", "P*y/a"),
        *walls(f"{size}*x", f"{size}*y", "outer"),
    ]
    more = (
        f"parameters: {{E0: 1, nu: {nu}, lam: E0*nu/((1+nu)*(1-2*nu)), mu: E0/(2*(1+nu)), a: 1, b: 2, P: 0.1, "
        "A: P*a**2/(b**2-a**2), fx: 0, fy: 0}\n"
        f'reference: {{kind: exact, value: {{u: "{size}*x", v: "{size}*y"}}}}'
    )
    found = solved(problem(ELASTICITY, boundary, "u, v", "{type: annulus, inner: a, outer: b}", more), 1e-2)
    assert found.verdict.status in ("verified", "inconclusive")
    errors = exact_errors(found.problem, found.trial.refinement.solution) if found.trial else None
    assert errors is not None
    assert errors.l2 < 1e-2


def test_a_body_that_nothing_holds_is_asked_about() -> None:
    more = "parameters: {lam: 1, mu: 1, fx: 0, fy: 0}"
    free = [("all", "flux", "u", "0"), ("all", "flux", "v", "0")]
    assert "undetermined-constant" in kinds(problem(ELASTICITY, free, "u, v", more=more))
    rolling = [
        ("x = 0", "dirichlet", "u", "0"),
        ("x = 0", "flux", "v", "0"),
        *((place, "flux", name, "0") for place in ("x = 1", "y = 0", "y = 1") for name in "uv"),
    ]
    assert "undetermined-constant" in kinds(problem(ELASTICITY, rolling, "u, v", more=more))


def test_the_flux_of_one_field_is_a_condition_for_collocation_as_well() -> None:
    boundary = [("x = 0", "dirichlet", "u", "y"), ("x = 1", "flux", "u", "3*(2 + y)*cos(1)")]
    boundary += [(f"y = {end}", "dirichlet", "u", f"{end} + 3*sin(x)") for end in (0, 1)]
    exact = 'reference: {kind: exact, value: {u: "y + 3*sin(x)"}}'
    given = problem(["-div((2 + y)*grad(u)) = 3*(2 + y)*sin(x) - 1"], boundary, "u", more=exact)
    found = solved(given, 1e-6)
    assert found.verdict.verified, found.verdict
    assert found.trial is not None
    assert found.trial.refinement.method == "chebyshev"


def test_a_flux_that_is_not_known_is_refused_with_advice() -> None:
    boundary = [
        ("x = 0", "dirichlet", "u", "0"),
        ("y = 0", "dirichlet", "u", "0"),
        ("y = 1", "dirichlet", "u", "0"),
    ]
    given = problem(["u_xx + u_xy + u_yy = 1"], [*boundary, ("x = 1", "flux", "u", "0")], "u")
    with pytest.raises(UnsupportedProblem, match="write it as"):
        system_of(given)


def test_a_minimal_surface_is_found() -> None:
    boundary = [("all", "dirichlet", "u", "0.3*x*y + 0.2*x**2")]
    given = problem(["div(grad(u)/sqrt(1 + u_x**2 + u_y**2)) = 0"], boundary, "u")
    found = solved(given, 1e-3)
    assert found.verdict.verified, found.verdict
    assert found.trial is not None
    assert found.trial.refinement.solution is not None
    middle = found.trial.refinement.solution.at(np.array([[0.5, 0.5]]))[0, 0]
    assert 0.05 < middle < 0.3


def test_flow_in_space_and_time_is_refused_in_one_sentence_that_says_what_is_solved() -> None:
    equations = [f"{field}_t - lap({field}) + p_{axis} = 0" for field, axis in zip("uvw", "xyz", strict=True)]
    cube = "{type: box, bounds: {x: [0, 1], y: [0, 1], z: [0, 1]}}"
    held = [("all", "dirichlet", field, "y*z" if field == "u" else "0") for field in "uvw"]
    more = (
        "coordinates: {space: [x, y, z], time: t}\ntime: [0, 1]\ninitial: {u: y*z, v: 0, w: 0}\nmean: {p: 0}"
    )
    given = problem([*equations, "u_x + v_y + w_z = 0"], held, "u, v, w, p", cube, more)
    found = solve_problem(given)
    assert found.verdict.status == "unsolved"
    assert found.verdict.reason.count("p is there for a constraint") == 1
    assert "plane section" in found.verdict.reason
