"""Plane domains with holes, unions and parts of edges, solved from the specification to a verdict."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import jv, yv

from sharp.problems import parse_problem
from sharp.solvers.driver import SolveOptions, solve_problem
from sharp.solvers.solution import Solution
from tests.helpers.problems.mesh_texts import frame, gmsh_text
from tests.unit.problems.test_plane_domains import DUMBBELL, RING, SQUARE, TEE

CORNER = "(x**2 + y**2)**(1/4)*cos(atan2(y, x)/2)"


def solution(domain: str, equation: str, *boundary: str, more: str = "", accuracy: float = 1e-5) -> Solution:
    listed = "".join(f"  - {{{condition}, field: u}}\n" for condition in boundary)
    time = ", time: t" if "u_t" in equation else ""
    text = (
        f"pde_spec: 1\nid: plane\ntitle: plane\ncoordinates: {{space: [x, y]{time}}}\nfields: [u]\n"
        f'equations: ["{equation}"]\ndomain: {{{domain}}}\naccuracy: {accuracy}\n{more}\nboundary:\n{listed}'
    )
    return solve_problem(
        parse_problem(text, "plane.yaml"), SolveOptions(time_limit=60, clock="cpu", compare=False)
    )


def checked(found: Solution, exact: Any, points: Any, time: float = 0.0) -> None:
    """The solution is verified, and its true error is below the estimate."""
    assert found.verdict.status == "verified"
    assert found.discrete is not None
    values, wanted = found.discrete.at(points, time)[0], exact(*points.T)
    error = np.sqrt(np.mean((values - wanted) ** 2) / np.mean(wanted**2))
    assert error < found.error
    assert error < 1e-5


@pytest.mark.parametrize("domain", [DUMBBELL, RING, TEE])
def test_poisson_on_unions_and_with_holes(domain: str) -> None:
    found = solution(
        domain,
        "-lap(u) = 2*sin(x)*cos(y) - 0.25*exp(x/2)",
        "where: all, type: dirichlet, value: sin(x)*cos(y) + exp(x/2)",
    )
    points, _ = found.problem.domain.quadrature(6)  # type: ignore[union-attr]
    checked(found, lambda x, y: np.sin(x) * np.cos(y) + np.exp(x / 2), points)


def test_poisson_on_a_mesh_file_of_a_square_with_a_hole(tmp_path: Path) -> None:
    (tmp_path / "frame.msh").write_text(frame())
    found = solution(
        f"type: mesh, file: {tmp_path / 'frame.msh'}",
        "-lap(u) = 2*sin(x)*cos(y)",
        "where: inlet, type: neumann, value: 0",
        "where: outlet, type: dirichlet, value: sin(x)*cos(3)",
        "where: hole, type: dirichlet, value: sin(x)*cos(y)",
        "where: loop 0, type: dirichlet, value: sin(x)*cos(y)",
        accuracy=1e-6,
    )
    points, _ = found.problem.domain.quadrature(6)  # type: ignore[union-attr]
    checked(found, lambda x, y: np.sin(x) * np.cos(y), points)
    assert found.error is not None
    assert found.error <= 1e-6


def test_poisson_on_a_mesh_file_of_a_sector_with_straight_edges(tmp_path: Path) -> None:
    angles = np.linspace(0, np.pi / 2, 7)
    corners = [(0.0, 0.0), *((float(np.cos(a)), float(np.sin(a))) for a in angles)]
    rim = [(k, k + 1) for k in range(1, 7)]
    mesh = gmsh_text(corners, [(0, a, b) for a, b in rim], {"rim": rim})
    (tmp_path / "sector.msh").write_text(mesh)
    found = solution(
        f"type: mesh, file: {tmp_path / 'sector.msh'}",
        "-lap(u) = 2*cos(x)*cos(y)",
        "where: loop 0, type: neumann, value: 0",
        "where: rim, type: dirichlet, value: cos(x)*cos(y)",
    )
    points, _ = found.problem.domain.quadrature(6)  # type: ignore[union-attr]
    checked(found, lambda x, y: np.cos(x) * np.cos(y), points)


def test_heat_on_a_plate_with_a_hole() -> None:
    found = solution(
        f"{SQUARE}, holes: [{{type: disk, center: [0.4, 0.5], radius: 0.2}}]",
        "u_t = lap(u) + exp(-t)*sin(x)*cos(y)",
        "where: hole 0, type: dirichlet, value: exp(-t)*sin(x)*cos(y)",
        "where: x = 0, type: neumann, value: -exp(-t)*cos(y)",
        "where: x = 1, type: dirichlet, value: exp(-t)*sin(1)*cos(y)",
        "where: y = 0, type: neumann, value: 0",
        "where: y = 1, type: dirichlet, value: exp(-t)*sin(x)*cos(1)",
        more="time: [0, 0.5]\ninitial: {u: sin(x)*cos(y)}",
    )
    points, _ = found.problem.domain.quadrature(6)  # type: ignore[union-attr]
    checked(found, lambda x, y: math.exp(-0.5) * np.sin(x) * np.cos(y), points, 0.5)


def test_capacitor_of_eccentric_circles() -> None:
    """By inversion: the potential is a logarithm of distances from two points; C = 2π/arcosh((R² + r² - d²)/(2Rr))."""
    radius, apart = 0.2, 0.4
    found = solution(
        f"type: disk, radius: 1, holes: [{{type: disk, center: [{apart}, 0], radius: {radius}}}]",
        "lap(u) = 0",
        "where: outer, type: dirichlet, value: 0",
        "where: hole 0, type: dirichlet, value: 1",
    )
    far = (1 - radius**2 + apart**2) / (2 * apart)
    a, b = far - math.sqrt(far**2 - 1), far + math.sqrt(far**2 - 1)
    whole = math.acosh((1 + radius**2 - apart**2) / (2 * radius))

    def potential(x: Any, y: Any) -> Any:
        return (np.log(np.hypot(x - b, y) / np.hypot(x - a, y)) - math.log(b)) / whole

    points, _ = found.problem.domain.quadrature(6)  # type: ignore[union-attr]
    checked(found, potential, points)
    angles, step = 2 * np.pi * np.arange(64) / 64, 1e-3
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    solved = found.discrete
    assert solved is not None
    rise = (solved.at((0.8 + step) * around) - solved.at((0.8 - step) * around))[0] / (2 * step)
    assert -2 * np.pi * 0.8 * rise.mean() == pytest.approx(2 * np.pi / whole, rel=1e-4)


def test_membrane_with_a_hole() -> None:
    """Eigenvalues of the ring: zeros of J_n(k) Y_n(k/2) - J_n(k/2) Y_n(k), twice for n > 0."""

    def crossed(k: float, n: int) -> float:
        return float(jv(n, k) * yv(n, k / 2) - jv(n, k / 2) * yv(n, k))

    lowest = [brentq(crossed, 6, 7 + n / 3, args=(n,)) ** 2 for n in range(3)]
    found = solution(
        "type: disk, radius: 1, holes: [{type: disk, radius: 0.5}]",
        "-lap(u) = mu*u",
        "where: all, type: dirichlet, value: 0",
        more="eigenvalue: {name: mu, count: 4}",
    )
    assert found.verdict.status == "verified"
    wanted = [lowest[0], lowest[1], lowest[1], lowest[2]]
    assert found.eigenvalues == pytest.approx(wanted, rel=1e-5)


def test_an_edge_of_two_kinds() -> None:
    found = solution(
        "type: box, bounds: {x: [-1, 1], y: [0, 1]}",
        "lap(u) = 0",
        "where: y = 0 and x < 0, type: dirichlet, value: 0",
        "where: y = 0 and x > 0, type: neumann, value: 0",
        *(f"where: {where}, type: dirichlet, value: '{CORNER}'" for where in ("x = -1", "x = 1", "y = 1")),
    )
    points, _ = found.problem.domain.quadrature(8)  # type: ignore[union-attr]
    checked(found, lambda x, y: np.hypot(x, y) ** 0.5 * np.cos(np.arctan2(y, x) / 2), points)


def test_torsion_of_a_hollow_shaft() -> None:
    """Prandtl's stress function is constant at the hole, where its flux is known; the stiffness is π(1 - q⁴)/2."""
    q = 0.4
    found = solution(
        f"type: disk, radius: 1, holes: [{{type: disk, radius: {q}}}]",
        "-lap(u) = 2",
        "where: outer, type: dirichlet, value: 0",
        f"where: hole 0, type: neumann, value: {q}",
    )
    points, weights = found.problem.domain.quadrature(12)  # type: ignore[union-attr]
    checked(found, lambda x, y: (1 - x**2 - y**2) / 2, points)
    solved = found.discrete
    assert solved is not None
    stiffness = 2 * (solved.at(points)[0] @ weights) + 2 * math.pi * q**2 * (1 - q**2) / 2
    assert stiffness == pytest.approx(math.pi * (1 - q**4) / 2, rel=1e-6)
