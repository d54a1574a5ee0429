"""Fourier modes with exponential steps: exact solutions, agreement with dense collocation, constraints, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.problems import parse_problem
from sharp.solvers.exponential import ExponentialFourier
from sharp.solvers.fourier_modes import FourierModes
from sharp.solvers.method import NEVER, SolverFailed
from sharp.solvers.phi_functions import LinearOperator
from sharp.solvers.refine import distance
from sharp.solvers.semilinear import semilinear
from sharp.solvers.system import system_of
from sharp.solvers.tensor_methods import Fourier
from tests.helpers.solvers.boxed import boxed

PERIOD = "2*pi"


def system(fields: str, equations: list[str], initial: dict[str, str], end: float = 1.0, **more: str):
    """A problem on a periodic box of period 2 pi along every axis that the fields depend on."""
    space = more.pop("space", "x").split()
    lines = [
        "pde_spec: 1", "id: made", "title: made", f"coordinates: {{space: [{', '.join(space)}], time: t}}",
        f"fields: [{fields}]", f"equations: {equations}",
        f"domain: {{type: box, bounds: {{{', '.join(f'{axis}: [0, 2*pi]' for axis in space)}}}}}",
        f"time: [0, {end}]", f"initial: {initial}",
        f"boundary: {[{'type': 'periodic', 'axis': axis} for axis in space]}",
        *(f"{key}: {value}" for key, value in more.items()),
    ]  # fmt: skip
    return system_of(parse_problem("\n".join(lines), "made.yaml"))


def solve(case, resolution: int = 32, accuracy: float = 1e-8):
    method = ExponentialFourier()
    assert method.unsupported_reason(case) is None
    return method.solve(case, resolution, accuracy, NEVER)


@pytest.mark.parametrize("size", [1e-9, 0.1, 3.0, 200.0, 1e5])
def test_phi_functions_of_numbers_are_those_of_their_definition(size: float) -> None:
    import mpmath

    z = size * np.array([-1.0, 1j, -0.6 + 0.8j])
    (phis,) = LinearOperator(z[None], diagonal=True).phis((1.0,), 3)
    with mpmath.workdps(60):
        for place, number in enumerate(z):
            value = mpmath.exp(mpmath.mpc(number))
            for k, found in enumerate(phis):
                assert abs(complex(value) - found.values[0, place]) < 1e-10 * max(
                    1e-3, abs(complex(value))
                ), k
                value = (value - 1 / mpmath.factorial(k)) / mpmath.mpc(number)


def test_phi_functions_of_matrices_that_cannot_be_diagonalised() -> None:
    """Of [[0, 1], [0, 0]]: phi_k is 1/k! on the diagonal and 1/(k + 1)! above it."""
    (phis,) = LinearOperator(np.array([[[0, 1], [0, 0]]], dtype=complex), diagonal=False).phis((1.0,), 2)
    assert phis[0].values[0] == pytest.approx(np.array([[1, 1], [0, 1]]))
    assert phis[2].values[0] == pytest.approx(np.array([[1 / 2, 1 / 6], [0, 1 / 2]]))


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_values_between_nodes(dimension: int) -> None:
    modes = FourierModes(dict.fromkeys("xyz"[:dimension], (-1.0, 2.0)), 5, 1.5)

    def function(*points: np.ndarray) -> np.ndarray:
        return 1 + np.cos(2 * np.pi / 3 * (points[0] + 2 * points[-1])) * np.sin(4 * np.pi / 3 * points[-1])

    coefficients = modes.coefficients(np.broadcast_to(function(*modes.points), (modes.nodes,) * dimension))
    points = np.random.default_rng(1).uniform(-1, 2, (50, dimension))
    assert modes.at(points)(coefficients) == pytest.approx(function(*points.T), abs=1e-11)


def test_linear_equations_are_exact_in_one_step() -> None:
    case = system("u", ["u_tt + 0.2*u_t = u_xx"], {"u": "sin(3*x)", "u_t": "0"}, 7.0)
    found = solve(case)
    rate = np.sqrt(9 - 0.01)
    times, points = np.linspace(0, 7, 11), np.linspace(0, 6, 7)[:, None]
    damped = np.exp(-0.1 * times) * (np.cos(rate * times) + 0.1 / rate * np.sin(rate * times))
    expected = damped[:, None] * np.sin(3 * points[:, 0])
    assert found.evaluate(points, times)[0] == pytest.approx(expected, abs=1e-11)
    assert found.facts["time steps"] < 20


@pytest.mark.parametrize(
    ("fields", "equations", "initial"),
    [
        ("u", ["u_t = -u*u_x - u_xx - 0.2*u_xxxx"], {"u": "cos(x) + 0.3*sin(2*x)"}),
        ("u", ["u_t = 0.1*u_xx + u - u**3"], {"u": "sin(x)"}),
        ("u", ["u_t = ((1 + 0.5*cos(x))*u_x)_x + sin(3*t)"], {"u": "exp(sin(x))"}),
        ("u", ["u_t = ((1 + u**2)*u_x)_x"], {"u": "sin(x)"}),
        ("p, q", ["p_t = -q_xx - (p**2 + q**2)*q", "q_t = p_xx + (p**2 + q**2)*p"], {"p": "1 + 0.1*cos(x)", "q": "0"}),
        ("u", ["u_t + u*u_x + 0.3*u_xxx = 0"], {"u": "cos(x)"}),
        ("u", ["u_t = -0.05*((u**2 - 1)*u)_xxxx*0 + 0.3*(u**3 - u)_xx - 0.1*u_xxxx"], {"u": "0.5*cos(x)"}),
    ],
    ids=["ks", "allen-cahn", "heat", "porous", "nls", "kdv", "cahn-hilliard"],
)  # fmt: skip
def test_dense_collocation_agrees(fields: str, equations: list[str], initial: dict[str, str]) -> None:
    case = system(fields, equations, initial)
    other = Fourier().solve(case, 40, 1e-8, NEVER)
    assert distance(case, solve(case, 40), other) < 3e-8


def test_products_that_are_derivatives_of_functions_are_taken_as_such() -> None:
    """One transform each way, where the derivatives written out need six."""
    case = system("c", ["c_t = lap(c**3 - c - 0.04*lap(c))"], {"c": "sin(x)*cos(y)"}, space="x y")
    found = semilinear(case)
    assert [(term.row, set(term.derivatives)) for term in found.terms] == [(0, {(2, 0), (0, 2)})]
    assert [jet.order for jet in found.jets] == [0]
    mixed = semilinear(system("u", ["u_t = u**2*u_x + sin(x)*u_x"], {"u": "sin(x)"}))
    assert [term.derivatives for term in mixed.terms] == [()]


def test_a_stream_function_follows_from_the_vorticity() -> None:
    """A sum of waves of one length is steady up to decay: w = exp(-5 nu t) (…), as u . grad w vanishes."""
    case = system(
        "w, psi", ["w_t + psi_y*w_x - psi_x*w_y = 0.1*lap(w)", "lap(psi) = -w"],
        {"w": "sin(x)*cos(2*y) + 0.5*cos(2*x + y)"}, space="x y", mean="{psi: 2}",
    )  # fmt: skip
    found = solve(case, 16).evaluate(np.array([[0.4, 1.3]]), np.array([1.0]))[:, 0, 0]
    start = np.sin(0.4) * np.cos(2.6) + 0.5 * np.cos(2.1)
    assert found == pytest.approx([start * np.exp(-0.5), 2 + start * np.exp(-0.5) / 5], abs=1e-9)


def test_pressure_keeps_a_flow_free_of_sources() -> None:
    """The vortices of G. I. Taylor and A. E. Green, with their pressure."""
    case = system(
        "u, v, p",
        ["u_t + u*u_x + v*u_y + p_x = 0.1*lap(u)", "v_t + u*v_x + v*v_y + p_y = 0.1*lap(v)", "u_x + v_y = 0"],
        {"u": "sin(x)*cos(y)", "v": "-cos(x)*sin(y)"}, space="x y", mean="{p: 0}",
    )  # fmt: skip
    found = solve(case, 16).evaluate(np.array([[0.4, 1.3]]), np.array([1.0]))[:, 0, 0]
    x, y, decay = 0.4, 1.3, np.exp(-0.2)
    expected = [
        decay * np.sin(x) * np.cos(y), -decay * np.cos(x) * np.sin(y), decay**2 * (np.cos(2 * x) + np.cos(2 * y)) / 4
    ]  # fmt: skip
    assert found == pytest.approx(expected, abs=1e-9)


def test_what_is_not_resolved_is_told() -> None:
    case = system("u", ["u_t + u*u_x = 0.001*u_xx"], {"u": "sin(x)"}, 2.0)
    with pytest.raises(SolverFailed, match="do not resolve"):
        solve(case, 32)


def test_resolutions_begin_where_the_initial_state_and_growing_modes_are_resolved() -> None:
    smooth = system("u", ["u_t = 0.1*u_xx"], {"u": "sin(x)"})
    narrow = system("u", ["u_t = 0.1*u_xx"], {"u": "exp(-100*(x - 3)**2)"})
    unstable = system("u", ["u_t = -u*u_x - u_xx - 0.001*u_xxxx"], {"u": "sin(x)"})
    first = [ExponentialFourier().resolution_sequence(case)[0] for case in (smooth, narrow, unstable)]
    assert first[0] < 30 < 80 < min(first[1:])


@pytest.mark.parametrize(
    ("start", "least", "most"),
    [
        ("0.1*cos(2*pi*x) + cos(16*pi*x)", 17, 24),
        ("sin(2*pi*x) + 0.5*cos(192*pi*x)", 193, 300),
        ("sin(2*pi*x) + exp(-((x - 0.5)/1e-4)**2)", 2000, 6000),
    ],
)
def test_the_spectrum_of_the_start_says_how_many_modes_are_needed(start: str, least: int, most: int) -> None:
    problem = boxed(["u_t = u_xx"], {"x": [0, 1]}, ["periodic x"], time=[0, 1], initial={"u": start})
    assert least <= ExponentialFourier().resolution_sequence(system_of(problem))[0] <= most


@pytest.mark.parametrize(
    ("equation", "reason"),
    [
        ("u_t = u*u_xxx", "highest derivatives"),
        ("u_t = u*u_xx", "no sign"),
        ("u_t = (piecewise(1, x < 3, 2)*u_x)_x", "jumps"),
    ],
)
def test_refusals(equation: str, reason: str) -> None:
    assert reason in str(ExponentialFourier().unsupported_reason(system("u", [equation], {"u": "sin(x)"})))


def test_states_that_are_not_kept_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    case = system("u", ["u_t = -u*u_x + 0.05*u_xx"], {"u": "sin(x)"})
    points, times = np.linspace(0, 6, 5)[:, None], np.linspace(0, 1, 7)
    kept = solve(case, 64).evaluate(points, times)
    monkeypatch.setattr("sharp.solvers.modal_stepping._KEPT", 200)
    assert solve(case, 64).evaluate(points, times) == pytest.approx(kept, abs=1e-14)
