"""The problem check: ill-posed problems are found with their place, and well-posed ones pass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy

from sharp.problems import Problem, list_problems, load_problem, parse_problem
from sharp.problems.diagnostics import Diagnostic
from sharp.problems.domains import BoxDomain, PolygonDomain, RoundDomain
from sharp.problems.evolution import determinant, rates, roots
from sharp.problems.plane_domains import Domain
from sharp.problems.sampling import face, inner_points, integration, meeting_parts
from sharp.problems.well_posedness import check_well_posedness
from tests.helpers.problems.well_posed_problems import (
    BUMP,
    DISK,
    HOT_MIDDLE,
    L_SHAPE,
    RING,
    STILL,
    WELL_POSED,
    box,
    curvature,
    exact,
    mixed,
    problem,
    ring,
    slope,
    value,
)

Found = list[tuple[str, str]]


def found(given: Problem) -> Found:
    """Kind and verdict of all concerns."""
    return [(concern.kind, concern.verdict) for concern in check_well_posedness(given)]


def only(given: Problem) -> Diagnostic:
    """The only concern."""
    (concern,) = check_well_posedness(given)
    return concern


@pytest.mark.parametrize("name", WELL_POSED)
def test_nothing_is_held_against_well_posed_problems(name: str) -> None:
    assert [
        c for c in check_well_posedness(parse_problem(WELL_POSED[name], name)) if c.verdict != "warn"
    ] == []


@pytest.mark.parametrize("name", sorted(list_problems()))
def test_nothing_is_held_against_the_shipped_problems(name: str) -> None:
    assert [c for c in check_well_posedness(load_problem(name)) if c.verdict != "warn"] == []


def test_there_are_enough_well_posed_problems_to_measure_false_alarms() -> None:
    assert len(WELL_POSED) >= 50
    assert len(set(WELL_POSED.values())) == len(WELL_POSED)


@pytest.mark.parametrize(
    ("equation", "initial", "kind"),
    [
        ("u_t = -u_xx", HOT_MIDDLE, "backward-parabolic"),
        ("u_t = 1e-9*u_xx", HOT_MIDDLE, None),
        ("u_t = -1e-9*u_xx", HOT_MIDDLE, "backward-parabolic"),
        ("-u_t = u_xx", HOT_MIDDLE, "backward-parabolic"),
        ("-2*u_t = -u_xx", HOT_MIDDLE, None),
        ("u_t = D(u, x, x, x, x)", HOT_MIDDLE, "backward-parabolic"),
        ("u_t = -D(u, x, x, x, x) - 50*u_xx", HOT_MIDDLE, None),
        ("u_t = D(u, x, x, x, x, x, x)", HOT_MIDDLE, None),
        ("u_t = -D(u, x, x, x, x, x, x)", HOT_MIDDLE, "backward-parabolic"),
        ("u_t = u_xxx", HOT_MIDDLE, None),
        ("u_t = cos(2*t)*u_xx", HOT_MIDDLE, "backward-parabolic"),
        ("u_t = cos(t)*u_xx", HOT_MIDDLE, None),
        ("u_t = (u*u_x)_x", {"u": "2 + sin(2*pi*x)"}, None),
        ("u_t = (u*u_x)_x", {"u": "sin(2*pi*x)"}, "backward-parabolic"),
        ("u_t + u*u_x = 0", {"u": "sin(2*pi*x)"}, None),
        ("u_tt = -u_xx", STILL, "elliptic-in-time"),
        ("u_tt + u_xx + u_t = 0", STILL, "elliptic-in-time"),
        ("u_tt = D(u, x, x, x, x)", STILL, "elliptic-in-time"),
        ("u_tt = u_xx - 0.1*u_xxt", STILL, "backward-parabolic"),
        ("u_tt = u_xx + u_xxxx", STILL, "elliptic-in-time"),
        ("u_tt = u_xx - 9*u + u**3", STILL, None),
    ],
)
def test_the_direction_of_time_is_read_off_the_growth_of_short_waves(
    equation: str, initial: dict[str, object], kind: str | None
) -> None:
    given = problem(equation, [ring()], {key: str(v).replace("pi*x", "2*pi*x") for key, v in initial.items()})
    assert found(given) == ([(kind, "reject")] if kind else [])


@pytest.mark.parametrize(
    ("a", "b", "c", "d"),
    [(1, 0.5, 0.5, 1), (1, 3, 2, 1), (1, -3, 3, 1), (-1, 0, 0, 1), (2, 1, -1, 0.1), (0, 1, 1, 0)],
)
def test_systems_go_by_the_eigenvalues_of_the_diffusion_matrix(
    a: float, b: float, c: float, d: float
) -> None:
    given = problem(
        [f"u_t = {a}*u_xx + {b}*v_xx", f"v_t = {c}*u_xx + {d}*v_xx"],
        [ring()],
        {"u": "sin(2*pi*x)", "v": 0},
        fields="uv",
    )
    lowest = np.linalg.eigvals([[a, b], [c, d]]).real.min()
    assert found(given) == ([("backward-parabolic", "reject")] if lowest < 0 else [])


@pytest.mark.parametrize(("b", "c"), [(0.0, 1.0), (1.9, 1.0), (2.1, 1.0), (0.0, -0.1), (-2.1, 1.0)])
def test_diffusion_in_the_plane_is_positive_in_every_direction(b: float, c: float) -> None:
    given = problem(f"u_t = u_xx + {b}*u_xy + {c}*u_yy", [value("all", 0)], BUMP, space="xy")
    definite = 4 * c > b**2
    assert found(given) == ([] if definite else [("backward-parabolic", "reject")])


def test_the_place_of_a_negative_diffusivity_is_named() -> None:
    concern = only(problem("u_t = ((x - 0.3)*u_x)_x", [value("all", 0)], HOT_MIDDLE))
    assert concern.path == ("equations",)
    assert float(concern.message.split("at x = ")[1].split(",")[0]) < 0.3
    everywhere = only(problem("u_t = -u_xx", [value("all", 0)], HOT_MIDDLE))
    assert " at x" not in everywhere.message
    # A wave of length 1e-4 grows at (2 pi/1e-4)^2.
    assert f"{(2 * math.pi / 1e-4) ** 2:.3g}" in everywhere.message


def test_what_is_sampled_is_not_judged() -> None:
    given = problem("u_t = (u*u_x)_x", [ring()], {"u": {"family": "sine-sums"}})
    assert check_well_posedness(given) == ()
    given = problem(
        "-div(a*grad(u)) = 1",
        [value("all", 0)],
        space="xy",
        coefficients={"a": {"family": "two-phase-gaussian"}},
    )
    assert check_well_posedness(given) == ()


def test_rates_are_those_of_the_dispersion_relation() -> None:
    k, damping, speed = 7.0, 0.3, 2.0
    symbol = np.array([[[(speed * k) ** 2]], [[damping]], [[1]]], dtype=complex)
    expected = np.roots([1, damping, (speed * k) ** 2])
    assert np.allclose(sorted(rates(symbol, [2]), key=np.imag), sorted(expected, key=np.imag))
    # Incompressible flow in Fourier space: two velocities and a pressure, one rate -nu*k^2.
    nu, kx, ky = 0.1, 3.0, 4.0
    square = kx**2 + ky**2
    still = np.array([[nu * square, 0, 1j * kx], [0, nu * square, 1j * ky], [1j * kx, 1j * ky, 0]])
    moving = np.diag([1.0, 1.0, 0.0]).astype(complex)
    assert np.allclose(rates(np.array([still, moving]), [1, 1, 0]), [-nu * square])


def test_determinants_of_matrices_of_polynomials_agree_with_sympy() -> None:
    random = np.random.default_rng(3)
    symbol = random.integers(-4, 5, size=(3, 3, 3)).astype(complex)
    s = sympy.Symbol("s")
    matrix = sympy.Matrix(3, 3, lambda i, j: sum(int(symbol[k, i, j].real) * s**k for k in range(3)))
    wanted = np.zeros(7)
    coefficients = sympy.Poly(matrix.det(), s).all_coeffs()
    wanted[7 - len(coefficients) :] = [float(c) for c in coefficients]
    assert np.allclose(determinant(symbol), wanted)
    assert len(roots(np.array([0, 1e-18, 1, -2]))) == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Korteweg-de Vries: one condition at the left and two at the right end (Colin and Ghidaglia, 2001).
        (("u_t + u*u_x + u_xxx = 0", [value("all", 0), slope("x = 1", 0)]), []),
        (
            ("u_t + u*u_x + u_xxx = 0", [value("all", 0), slope("x = 0", 0)]),
            ["wrong-end", "missing-boundary-condition"],
        ),
        (("u_t = u_xxx", [value("all", 0), slope("x = 0", 0)]), []),
        (("u_t = u_xxx", [value("all", 0), slope("x = 1", 0)]), ["missing-boundary-condition", "wrong-end"]),
        # Transport whose speed varies.
        (("u_t + (1 + x)*u_x = 0", [value("x = 0", 0)]), []),
        (("u_t + (1 + x)*u_x = 0", [value("x = 1", 0)]), ["missing-boundary-condition", "outflow-condition"]),
        (("u_t + (1 + x)*u_x = 0", [value("all", 0)]), ["outflow-condition"]),
        (("u_t = (1 + t)*u_x", [value("x = 1", 0)]), []),
        (("u_t = (1 + t)*u_x", []), ["missing-boundary-condition"]),
        (("u_t + (x - 0.5)*u_x = 0", []), []),
        (("u_t + (0.5 - x)*u_x = 0", []), ["missing-boundary-condition", "missing-boundary-condition"]),
        (("u_t + sin(6*t)*u_x = 0", [value("x = 0", 0)]), ["missing-boundary-condition"]),
    ],
)
def test_conditions_at_each_end_are_as_many_as_waves_that_enter(
    given: tuple[Any, Any], expected: list[str]
) -> None:
    equation, conditions = given
    concerns_found = check_well_posedness(problem(equation, conditions, {"u": "sin(pi*x)**2"}))
    assert [c.kind for c in concerns_found] == expected
    assert all(c.verdict == ("clarify" if c.kind.startswith("missing") else "reject") for c in concerns_found)
    assert all(bool(c.question) == (c.verdict == "clarify") for c in concerns_found)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([value("x = 0", 0, "p"), value("x = 1", 0, "v")], []),
        ([value("x = 0", 0, "p")], ["missing-boundary-condition"]),
        ([value("x = 0", 0, "p"), value("x = 0", 0, "v"), value("x = 1", 0, "v")], ["outflow-condition"]),
    ],
)
def test_sound_takes_one_condition_at_each_end(conditions: list[Any], expected: list[str]) -> None:
    initial = {"p": "sin(pi*x)**2", "v": 0}
    given = problem(["p_t + 2*v_x = 0", "v_t + p_x = 0"], conditions, initial, fields="pv")
    assert [c.kind for c in check_well_posedness(given)] == expected


def test_supersonic_flow_takes_all_conditions_where_it_enters() -> None:
    def kinds(speed: float, conditions: list[Any]) -> list[str]:
        equations = [f"p_t + {speed}*p_x + v_x = 0", f"v_t + {speed}*v_x + p_x = 0"]
        return [
            c.kind
            for c in check_well_posedness(problem(equations, conditions, {"p": 0, "v": 0}, fields="pv"))
        ]

    both_left = [value("x = 0", 0, "p"), value("x = 0", 0, "v")]
    one_each = [value("x = 0", 0, "p"), value("x = 1", 0, "v")]
    assert kinds(2, both_left) == []
    assert sorted(kinds(0.5, both_left)) == ["missing-boundary-condition", "outflow-condition"]
    assert kinds(0.5, one_each) == []
    assert sorted(kinds(2, one_each)) == ["missing-boundary-condition", "outflow-condition"]


@pytest.mark.parametrize(
    ("equation", "conditions", "domain", "expected"),
    [
        ("u_x + 2*u_y = 1", [value("x = 0", 0), value("y = 0", 0)], None, []),
        ("u_x + 2*u_y = 1", [value("x = 1", 0), value("y = 1", 0)], None, []),
        ("u_x + 2*u_y = 1", [value("x = 0", 0)], None, ["clarify"]),
        ("u_x + 2*u_y = 1", [value("all", 0)], None, ["reject", "reject"]),
        ("u_x - u_y = 0", [value("x = 0", 0), value("y = 0", 0)], None, ["reject", "clarify"]),
        ("u_x = 0", [], DISK, ["clarify"]),
        ("u_x = 0", [value("outer", 0)], DISK, []),
    ],
)
def test_steady_transport_has_values_on_one_side(
    equation: str, conditions: list[Any], domain: Any, expected: list[str]
) -> None:
    given = problem(equation, conditions, space="xy", domain=domain)
    assert [c.verdict for c in check_well_posedness(given)] == expected


def test_a_nonlinear_field_is_refused_at_an_end_that_it_leaves_by_both_its_values() -> None:
    assert found(problem("u_t + u*u_x = 0", [value("x = 0", 1), value("x = 1", 2)], {"u": "1 + x"})) == [
        ("outflow-condition", "reject")
    ]
    # The value at the right end drives a shock to the left: both ends are entered.
    given = problem("u_t + u*u_x = 0", [value("x = 0", 1), value("x = 1", -1)], {"u": "1 - 2*x"})
    assert check_well_posedness(given) == ()


@pytest.mark.parametrize(
    ("equation", "space", "hyperbolic"),
    [
        ("u_xx - u_yy = 0", "xy", True),
        ("u_xx + u_yy = 0", "xy", False),
        ("u_xx + 3*u_xy + u_yy = 0", "xy", True),
        ("u_xx + 1.9*u_xy + u_yy = 0", "xy", False),
        ("(x - 0.5)*u_xx + u_yy = 0", "xy", True),
        ("u_xx + u_yy + 400*u = 1", "xy", False),
        ("u_xx + u_yy - u_zz = 0", "xyz", True),
        ("lap(u) = 1", "xyz", False),
    ],
)
def test_values_all_around_need_an_elliptic_equation(equation: str, space: str, hyperbolic: bool) -> None:
    given = problem(equation, [value("all", 0)], space=space)
    assert found(given) == ([("steady-hyperbolic", "reject")] if hyperbolic else [])


MODES = [
    ([value("all", 0)], lambda n: n + 1),
    ([slope("all", 0)], lambda n: n + 1),
    ([value("x = 0", 1), slope("x = 3", 2)], lambda n: n + 0.5),
    ([slope("x = 0", 1), value("x = 3", 2)], lambda n: n + 0.5),
    ([ring()], lambda n: 2 * n + 2),
]


@pytest.mark.parametrize("conditions", range(len(MODES)))
@pytest.mark.parametrize("number", [0, 1, 5])
def test_eigenvalues_of_an_interval_are_resonant(conditions: int, number: int) -> None:
    boundary, half_waves = MODES[conditions]
    eigenvalue = (math.pi * half_waves(number) / 3) ** 2

    def verdicts(coefficient: float) -> Found:
        return found(problem(f"2*u_xx + {coefficient!r}*u = x", boundary, domain=box(x=[0, 3])))

    assert verdicts(2 * eigenvalue) == [("resonance", "reject")]
    assert verdicts(2 * eigenvalue * (1 + 1e-5)) == [("resonance", "warn")]
    assert verdicts(2 * eigenvalue * 1.01) == []
    assert verdicts(-2 * eigenvalue) == []


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 2), (3, 1), (4, 2)])
def test_eigenvalues_of_a_rectangle_are_resonant(m: int, n: int) -> None:
    given = f"lap(u) + pi**2*({m}**2 + {n}**2/4)*u = 1"
    concern = only(problem(given, [value("all", 0)], space="xy", domain=box(x=[0, 1], y=[0, 2])))
    assert (concern.kind, concern.verdict) == ("resonance", "reject")
    # On the square, 16 is no sum of two squares of positive numbers.
    assert check_well_posedness(problem("lap(u) + 16*pi**2*u = 1", [value("all", 0)], space="xy")) == ()


@pytest.mark.parametrize(
    ("source", "flux", "domain", "area", "length"),
    [
        (1.0, "0", None, 1.0, 4.0),
        (-3.0, "0.5", L_SHAPE, 3.0, 8.0),
        (3.0, "1", DISK, math.pi, 2 * math.pi),
        (3.0, "1", RING, 3 * math.pi, 6 * math.pi),
    ],
)
def test_sources_and_fluxes_have_to_balance(
    source: float, flux: str, domain: Any, area: float, length: float
) -> None:
    wrong = problem(f"lap(u) = {source}", [slope("all", flux)], space="xy", domain=domain, mean={"u": 0})
    concern = only(wrong)
    assert (concern.kind, concern.verdict) == ("incompatible-flux", "reject")
    assert f"a flux of {source * area:.6g}" in concern.message
    assert f"give {float(flux) * length:.6g}" in concern.message
    right = f"lap(u) = {float(flux) * length / area!r}"
    assert (
        check_well_posedness(problem(right, [slope("all", flux)], space="xy", domain=domain, mean={"u": 0}))
        == ()
    )


def test_a_constant_that_nothing_fixes_is_asked_for() -> None:
    concern = only(problem("u_xx = sin(2*pi*x)", [ring()]))
    assert (concern.kind, concern.verdict, concern.path) == ("undetermined-constant", "clarify", ("mean",))
    assert concern.question == "What is the mean value of u over the domain?"
    assert check_well_posedness(problem("u_xx = sin(2*pi*x)", [ring()], mean={"u": 2})) == ()
    assert check_well_posedness(problem("u_xx - u = sin(2*pi*x)", [ring()])) == ()
    assert found(problem("u_xx = 0", [value("all", 0)], mean={"u": 0})) == [("too-many-conditions", "reject")]
    assert found(problem("u_xx = 0", [mixed("all", 0, 1, 0)])) == [("undetermined-constant", "clarify")]


def test_initial_and_boundary_values_that_differ_are_asked_about() -> None:
    concern = only(problem("u_t = u_xx", [value("x = 0", "1 + t"), slope("x = 1", 0)], {"u": "x*(2 - x)"}))
    assert (concern.kind, concern.verdict, concern.path) == ("corner-jump", "clarify", ("boundary", 0))
    assert "at x = 0, t = 0 the initial value of 'u' is 0, the boundary value 1" in concern.message
    assert (
        concern.question
        == "What is u at x = 0, t = 0: 0 as in the domain, 1 as on the boundary, or is a jump meant?"
    )


@pytest.mark.parametrize(("height", "expected"), [(0, []), (1e-5, ["warn"]), (0.1, ["clarify"])])
def test_small_jumps_are_taken_for_tails(height: float, expected: list[str]) -> None:
    given = problem("u_t = u_xx", [value("all", 0)], {"u": f"sin(pi*x) + {height}*(1 - x)"})
    assert [c.verdict for c in check_well_posedness(given)] == expected
    meant = problem("u_t = u_xx", [value("all", 0)], {"u": f"sin(pi*x) + {height}"}, allow=["corner-jump"])
    assert check_well_posedness(meant) == ()


def test_values_that_differ_at_a_corner_are_asked_about() -> None:
    sides = [value("x = 0", 0), value("x = 1", "y"), value("y = 0", 0), value("y = 1", "2*x")]
    (concern,) = check_well_posedness(problem("lap(u) = 0", sides, space="xy"))
    assert concern.kind == "corner-jump"
    assert "'u' at x = 1, y = 1 is 1 on x = 1 and 2 on y = 1" in concern.message
    sides[3] = value("y = 1", "x")
    assert check_well_posedness(problem("lap(u) = 0", sides, space="xy")) == ()
    edges = [value(f"edge {n}", int(n == 2)) for n in range(6)]
    (concern, other) = check_well_posedness(problem("lap(u) = 0", edges, space="xy", domain=L_SHAPE))
    assert {concern.path, other.path} == {("boundary", 2), ("boundary", 3)}


@pytest.mark.parametrize(
    ("equation", "conditions", "initial", "kind"),
    [
        ("u_t = u_xx", [slope("x = 0", 1), slope("x = 1", 0)], {"u": "cos(pi*x)"}, "slope-jump"),
        ("u_tt = u_xx", [value("x = 0", "sin(t)"), value("x = 1", 0)], {"u": 0, "u_t": 0}, "velocity-jump"),
    ],
)
def test_kinks_are_worth_a_warning(equation: str, conditions: list[Any], initial: Any, kind: str) -> None:
    assert found(problem(equation, conditions, initial)) == [(kind, "warn")]


def test_an_initial_state_that_does_not_repeat_is_asked_about() -> None:
    concern = only(problem("u_t + u_x = 0", [ring()], {"u": "x**2"}))
    assert (concern.kind, concern.verdict, concern.path) == ("not-periodic", "clarify", ("initial", "u"))
    assert "is 0 and 1 at x = 0 and x = 1" in concern.message


DECAY = "exp(-pi**2*t)*sin(pi*x)"


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (("u_t = u_xx", [value("all", 0)], HOT_MIDDLE, "exp(-9*t)*sin(pi*x)"), ("equations", 0)),
        (("u_t = u_xx", [value("x = 0", 0), value("x = 1", "t")], HOT_MIDDLE, DECAY), ("boundary", 1)),
        (("u_t = u_xx", [value("x = 0", 0), slope("x = 1", "-pi*exp(-pi**2*t)")], HOT_MIDDLE, DECAY), None),
        (("u_t = u_xx", [slope("x = 0", "-pi*exp(-pi**2*t)"), value("x = 1", 0)], HOT_MIDDLE, DECAY), None),
        (
            ("u_t = u_xx", [slope("x = 0", "pi*exp(-pi**2*t)"), value("x = 1", 0)], HOT_MIDDLE, DECAY),
            ("boundary", 0),
        ),
        (
            ("u_t = u_xx", [value("x = 0", 0), mixed("x = 1", 3, 1, "-pi*exp(-pi**2*t)")], HOT_MIDDLE, DECAY),
            None,
        ),
        (
            ("u_t = u_xx", [value("x = 0", 0), mixed("x = 1", 3, 2, "-pi*exp(-pi**2*t)")], HOT_MIDDLE, DECAY),
            ("boundary", 1),
        ),
        (("u_tt = u_xx", [value("all", 0)], STILL, "cos(pi*t)*sin(pi*x)"), None),
        (
            ("u_tt = u_xx", [value("all", 0)], {"u": 0, "u_t": "sin(pi*x)"}, "sin(pi*t)*sin(pi*x)"),
            ("initial", "u_t"),
        ),
        (("u_t = u_xx + pi**2*u", [ring()], HOT_MIDDLE, "sin(pi*x)"), None),
        (("u_t = u_xx", [ring()], {"u": "x"}, "x"), ("boundary",)),
    ],
)
def test_an_exact_solution_is_held_against_equation_and_conditions(given: Any, path: Any) -> None:
    equation, conditions, initial, solution = given
    wrong = [
        c
        for c in check_well_posedness(problem(equation, conditions, initial, reference=exact(u=solution)))
        if c.kind == "wrong-reference"
    ]
    assert [c.path for c in wrong] == ([path] if path else [])
    assert all(c.verdict == "reject" and " leave " in c.message for c in wrong)


def test_exact_solutions_are_held_against_normal_derivatives_and_means() -> None:
    def paths(**changes: Any) -> list[Any]:
        settings: dict[str, Any] = {"space": "xy", "domain": RING, "mean": {"u": 0}, **changes}
        solution = exact(u="x*y")
        sides = [slope("inner", changes.pop("inner", "-2*x*y")), slope("outer", "x*y")]
        settings.pop("inner", None)
        return [
            c.path for c in check_well_posedness(problem("lap(u) = 0", sides, reference=solution, **settings))
        ]

    assert paths() == []
    assert paths(inner="2*x*y") == [("boundary", 0)]
    assert paths(mean={"u": 0.1}) == [("mean", "u")]
    beam = ["D(u, x, x, x, x) = 24", [value("all", 0), curvature("all", 0)]]
    bent = exact(u="x**4 - 2*x**3 + x")
    assert check_well_posedness(problem(*beam, reference=bent)) == ()
    clamped = [value("all", 0), slope("all", 0)]
    assert found(problem(beam[0], clamped, reference=bent)) == [("wrong-reference", "reject")] * 2


@pytest.mark.parametrize(
    ("equation", "initial", "place"),
    [
        ("u_t = u_xx/(x - 0.37)", HOT_MIDDLE, "x = 0.37"),
        ("u_t = u_xx + tan(2*x)", HOT_MIDDLE, "x = 0.7854"),
        ("u_t = (1/(t - 0.3))*u_xx", HOT_MIDDLE, "t = 0.3"),
        ("u_t = log(x - 0.5)*u_xx", HOT_MIDDLE, "x = 0.03"),
        ("u_t = u_xx + sqrt(x - 1)", HOT_MIDDLE, "x = 0.03"),
        ("u_t = u_xx + 1/(1 - u)", {"u": "2*sin(pi*x)"}, "x = 0.1667"),
        ("u_t = u_xx + log(u)", {"u": "cos(pi*x)"}, "x = 0.5"),
        ("u_t = u_xx + (x - 0.25)**-2", HOT_MIDDLE, "x = 0.25"),
        ("u_t = u_xx/(1 + x)", HOT_MIDDLE, None),
        ("u_t = u_xx + u_x/x", {"u": "1 - x**2"}, None),
        ("u_t = u_xx + 1/(1 - u)", {"u": "0.5*sin(pi*x)"}, None),
        ("u_t = u_xx + sqrt(x)", HOT_MIDDLE, None),
        ("u_t = u_xx/(Heaviside(x - 0.4) - 0.4)", HOT_MIDDLE, "backward"),
    ],
)
def test_equations_without_a_value_are_refused_with_the_place(
    equation: str, initial: dict[str, object], place: str | None
) -> None:
    conditions = [slope("x = 0", 0), slope("x = 1", 0)]
    wrong = [c for c in check_well_posedness(problem(equation, conditions, initial)) if c.verdict == "reject"]
    if place is None:
        assert wrong == []
    elif place == "backward":
        assert [c.kind for c in wrong] == ["backward-parabolic"]
    else:
        assert [c.kind for c in wrong] == ["singular-coefficient"]
        assert place in wrong[0].message


def test_a_quotient_with_a_limit_is_worth_a_warning() -> None:
    given = problem("u_t = u_xx + sin(x - 0.5)/(x - 0.5)", [value("all", 0)], HOT_MIDDLE)
    assert found(given) == [("singular-coefficient", "warn")]


def test_boundary_values_without_a_value_are_refused() -> None:
    concern = only(problem("u_t = u_xx", [value("x = 0", "log(-t)"), value("x = 1", 0)], HOT_MIDDLE))
    assert (concern.kind, concern.path) == ("singular-coefficient", ("boundary", 0, "value"))


@pytest.mark.parametrize(
    "text",
    [
        "exp(10**40*log(9*x))",
        "(((7*x)**10)**10)**10",
        "9**(9**x)**99",
        "exp(99*exp(99*log(exp(99*log(9*x)))))",
    ],
)
def test_expressions_that_no_number_holds_are_refused_and_not_computed(text: str) -> None:
    given = problem(f"u_t = u_xx + {text}", [ring()], {"u": "sin(2*pi*x)"})
    assert found(given) == [("singular-coefficient", "reject")]


def test_the_same_problem_has_the_same_concerns() -> None:
    given = problem("u_t = -u_xx", [value("all", 1)], HOT_MIDDLE, reference=exact(u=DECAY))
    assert check_well_posedness(given) == check_well_posedness(given)
    assert check_well_posedness(given)[0].kind == "backward-parabolic"


DOMAINS: dict[str, Domain] = {
    "interval": BoxDomain({"x": (1.0, 3.0)}),
    "rectangle": BoxDomain({"x": (-1.0, 2.0), "y": (0.0, 2.0)}),
    "brick": BoxDomain({"x": (0.0, 1.0), "y": (0.0, 2.0), "z": (1.0, 4.0)}),
    "disk": RoundDomain(("x", "y"), (1.0, -2.0), None, 1.5),
    "annulus": RoundDomain(("x", "y"), (0.5, 0.0), 1.0, 2.0),
    "polygon": PolygonDomain(("x", "y"), ((0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2))),
}
MEASURES = {
    "interval": 2.0,
    "rectangle": 6.0,
    "brick": 6.0,
    "disk": math.pi * 1.5**2,
    "annulus": 3 * math.pi,
    "polygon": 3.0,
}


@pytest.mark.parametrize("name", DOMAINS)
def test_integrals_over_domains_and_their_boundaries_satisfy_gauss_theorem(name: str) -> None:
    domain = DOMAINS[name]
    points, weights = integration(domain, 12)
    assert weights.sum() == pytest.approx(MEASURES[name], rel=1e-12)
    # ∫ div(x³, y³, …) = ∮ (x³, y³, …)·n
    flux = sum(
        float(side.weights @ np.sum(side.points**3 * side.normals, axis=1))
        for side in (face(domain, part, 12) for part in domain.parts)
    )
    assert flux == pytest.approx(float(weights @ np.sum(3 * points**2, axis=1)), rel=1e-10)


@pytest.mark.parametrize("name", DOMAINS)
def test_sampled_points_lie_where_they_should(name: str) -> None:
    domain = DOMAINS[name]
    points = inner_points(domain)
    assert len(points) >= 15
    assert domain.inside(points).all()
    for part in domain.parts:
        side = face(domain, part)
        assert np.allclose(np.linalg.norm(side.normals, axis=1), 1)
        assert not domain.inside(side.points + 1e-3 * side.normals).any()
        assert domain.inside(side.points - 1e-3 * side.normals).all()
    corners = list(meeting_parts(domain))
    assert len(corners) == {"rectangle": 4, "brick": 12, "polygon": 6}.get(name, 0)
    assert all(domain.inside(meeting).all() for _, _, meeting in corners)
