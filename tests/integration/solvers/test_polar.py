from __future__ import annotations

import numpy as np
import pytest
from scipy.special import jn_zeros, jv

from sharp.problems.domains import RoundDomain
from sharp.solvers.driver import SolveOptions, solve_problem
from sharp.solvers.polar import Polar, PolarGrid
from tests.helpers.solvers.plane_systems import (
    ANNULUS,
    DISK,
    SQUARE,
    dirichlet,
    error,
    moving,
    neumann,
    robin,
    solved,
    steady,
)

FIRST_ZERO = float(jn_zeros(0, 1)[0])
BESSEL = f"J0({FIRST_ZERO}*sqrt(x**2 + y**2))"
POLAR = Polar()


def grid(inner: float | None = None, center: tuple[float, float] = (0.3, -0.2)) -> PolarGrid:
    return PolarGrid(RoundDomain(("x", "y"), center, inner, 2.0), 8 if inner is None else 15, 30)


def wave(by: tuple[int, int], points: np.ndarray) -> np.ndarray:
    """A derivative of exp(0.3 x) sin(0.5 y)."""
    x, y = points.T
    return 0.3 ** by[0] * 0.5 ** by[1] * np.exp(0.3 * x) * np.sin(0.5 * y + by[1] * np.pi / 2)


GRIDS = pytest.mark.parametrize("inner", [None, 0.5], ids=["disk", "annulus"])


@GRIDS
@pytest.mark.parametrize(
    "by", [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (2, 1), (0, 3), (2, 2), (4, 0), (1, 3)]
)
def test_derivatives_are_those_along_the_cartesian_axes(inner, by):
    nodes = grid(inner)
    found = nodes.derivative(by) @ wave((0, 0), nodes.points)
    tolerance = {1: 1e-12, 2: 1e-10, 3: 1e-8, 4: 1e-6}[sum(by)]
    np.testing.assert_allclose(found, wave(by, nodes.points), atol=tolerance)


def test_the_biharmonic_operator_is_the_square_of_the_laplacian():
    nodes = grid()
    laplacian = nodes.derivative((2, 0)) + nodes.derivative((0, 2))
    squared = nodes.derivative((4, 0)) + 2 * nodes.derivative((2, 2)) + nodes.derivative((0, 4))
    assert np.abs(squared - laplacian @ laplacian).max() < 1e-13 * np.abs(squared).max()


@GRIDS
def test_weights_integrate_polynomials(inner):
    nodes, hole = grid(inner), inner or 0.0
    x, y = (nodes.points - nodes.domain.center).T
    assert nodes.weights.sum() == pytest.approx(np.pi * (4 - hole**2), rel=1e-14)
    assert nodes.weights @ (x**2 * y**2) == pytest.approx(np.pi / 24 * (64 - hole**6), rel=1e-13)
    assert abs(nodes.weights @ (x**3 * y)) < 1e-12


def test_no_node_of_a_disk_is_at_its_centre():
    assert np.hypot(*(grid().points - (0.3, -0.2)).T).min() > 0.1


@GRIDS
def test_interpolation_is_exact_at_nodes_and_spectral_elsewhere(inner):
    nodes = grid(inner)
    np.testing.assert_allclose(nodes.interpolation(nodes.points), np.eye(len(nodes.points)), atol=1e-12)
    angles = np.linspace(-4, 4, 9)[:, None]
    rim = [
        nodes.domain.center + radius * np.hstack([np.cos(angles), np.sin(angles)]) for radius in (0.5, 1.1, 2)
    ]
    points = np.concatenate([*rim, [nodes.domain.center]] if inner is None else rim)
    found = nodes.interpolation(points) @ wave((0, 0), nodes.points)
    np.testing.assert_allclose(found, wave((0, 0), points), atol=1e-13)


@GRIDS
def test_normal_derivatives_point_away_from_the_domain(inner):
    nodes = grid(inner)
    x, y = nodes.points.T
    cubic = x**3 - 2 * x * y
    for name, part in nodes.parts.items():
        a, b = nodes.points[part].T
        gradient = np.column_stack([3 * a**2 - 2 * b, -2 * a])
        normals = (nodes.points[part] - nodes.domain.center) * (1 if name == "outer" else -1)
        normals /= np.hypot.reduce(normals, axis=1, keepdims=True)
        expected = np.sum(gradient * normals, axis=1)
        np.testing.assert_allclose(nodes.normal_derivative(name, 1) @ cubic, expected, atol=1e-10)


def test_nodes_are_given_up_ring_by_ring_from_the_boundary_inwards():
    nodes = grid(0.5)
    radius = np.hypot(*(nodes.points - nodes.domain.center).T)
    outer, inner = (radius[nodes.replaced_nodes(part, 2)].reshape(2, -1) for part in ("outer", "inner"))
    np.testing.assert_allclose(outer[0], 2)
    np.testing.assert_allclose(inner[0], 0.5)
    assert np.all((outer[1] > 1.9) & (outer[1] < 2))
    assert np.all((inner[1] > 0.5) & (inner[1] < 0.6))


KNOWN = {
    "a harmonic polynomial": (
        steady("lap(u) = 0", DISK, dirichlet("x**3 - 3*x*y**2")),
        lambda x, y: x**3 - 3 * x * y**2,
        (8, 1e-13),
    ),
    "the logarithm with a given flux": (
        steady("lap(u) = 0", ANNULUS, dirichlet("0", "inner"), neumann("1/2", "outer")),
        lambda x, y: np.log(np.hypot(x, y)),
        (16, 1e-10),
    ),
    "variable coefficients with robin conditions": (
        steady(
            "-div((2 + x)*grad(u)) = -(5 + 2*x)*exp(x + y)", DISK, robin("2", "1", "(2 + x + y)*exp(x + y)")
        ),
        lambda x, y: np.exp(x + y),
        (18, 1e-11),
    ),
    "a mean that fixes what fluxes leave open": (
        steady("-lap(u) = 0", DISK, neumann("2*(x**2 - y**2)"), mean={"u": "3"}),
        lambda x, y: 3 + x**2 - y**2,
        (8, 1e-11),
    ),
    "a nonlinear problem": (
        steady("-lap(u) + u**3 = 2*sin(x)*sin(y) + (sin(x)*sin(y))**3", ANNULUS, dirichlet("sin(x)*sin(y)")),
        lambda x, y: np.sin(x) * np.sin(y),
        (16, 1e-9),
    ),
    "coupled equations": (
        steady(
            ["-lap(u) + v = x", "-lap(v) - u = -y"],
            DISK,
            dirichlet("y"),
            dirichlet("x", field="v"),
            fields="uv",
        ),
        lambda x, y: np.stack([y, x]),
        (8, 1e-13),
    ),
    "a clamped plate": (
        steady("u_xxxx + 2*u_xxyy + u_yyyy = 64", DISK, dirichlet("0"), neumann("0")),
        lambda x, y: (1 - x**2 - y**2) ** 2,
        (10, 1e-10),
    ),
    "cooling": (
        moving("u_t = lap(u)", DISK, dirichlet("0"), until=0.17, initial={"u": BESSEL}),
        lambda x, y, t: np.exp(-(FIRST_ZERO**2) * t) * jv(0, FIRST_ZERO * np.hypot(x, y)),
        (16, 1e-9),
    ),
    "a drum that swings without loss": (
        moving("u_tt = lap(u)", DISK, dirichlet("0"), until=5.0, initial={"u": BESSEL, "u_t": "0"}),
        lambda x, y, t: np.cos(FIRST_ZERO * t) * jv(0, FIRST_ZERO * np.hypot(x, y)),
        (16, 1e-9),
    ),
    "boundary values that change with time": (
        moving(
            "u_t = lap(u)",
            ANNULUS,
            dirichlet("exp(-2*t)*sin(x)*sin(y)", "inner"),
            neumann("exp(-2*t)*(x*cos(x)*sin(y) + y*sin(x)*cos(y))/2", "outer"),
            until=0.21,
            initial={"u": "sin(x)*sin(y)"},
        ),
        lambda x, y, t: np.exp(-2 * t) * np.sin(x) * np.sin(y),
        (16, 1e-9),
    ),
}


@pytest.mark.parametrize(("system", "exact", "how"), KNOWN.values(), ids=KNOWN)
def test_problems_are_solved_to_spectral_accuracy(system, exact, how):
    resolution, bound = how
    assert error(solved(POLAR, system, resolution), system, exact) < bound


def test_tones_of_a_drum_are_squared_zeros_of_bessel_functions():
    system = steady("-lap(u) = mu*u", DISK, dirichlet("0"), eigenvalue={"name": "mu", "count": 4})
    solution = solved(POLAR, system, 18)
    expected = [jn_zeros(0, 1)[0], jn_zeros(1, 1)[0], jn_zeros(1, 1)[0], jn_zeros(2, 1)[0]]
    np.testing.assert_allclose(solution.eigenvalues, np.square(expected), rtol=1e-9)
    assert error(solution, system, lambda x, y: jv(0, FIRST_ZERO * np.hypot(x, y))) < 1e-8


def test_it_refuses_a_square():
    system = steady("lap(u) = 0", SQUARE, dirichlet("0"))
    assert POLAR.unsupported_reason(system) == "the domain is no disk or annulus"


def test_a_thin_ring_is_solved_with_its_exact_solution() -> None:
    exact = "log(x**2 + y**2)/2/log(1.001)"
    known = {"kind": "exact", "value": {"u": exact}}
    ring = {"type": "annulus", "inner": 1, "outer": 1.001}
    problem = steady(
        "lap(u) = 0", ring, dirichlet("0", "inner"), dirichlet("1", "outer"), reference=known
    ).problem
    assert solve_problem(problem, SolveOptions(time_limit=10, clock="cpu")).verdict.verified
