"""Meshes of plane domains: no slivers, curved boundaries, parts by name, and convergence of solutions on them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sharp.problems import PlaneDomain, PolygonDomain, plane_domain
from sharp.solvers.delaunay import quality_mesh
from sharp.solvers.fem_space import FunctionSpace
from sharp.solvers.meshes import triangulate
from tests.unit.problems.test_plane_domains import DUMBBELL, RING, TEE, disk, perforated, plane


def turning(count: int, *radii: float) -> PlaneDomain:
    """Return a star or gear: vertices at radii in turn, evenly all around."""
    angles = 2 * math.pi * np.arange(count) / count
    sizes = [radii[k % len(radii)] for k in range(count)]
    vertices = tuple(
        (r * math.cos(angle), r * math.sin(angle)) for r, angle in zip(sizes, angles, strict=True)
    )
    return plane_domain(PolygonDomain(("x", "y"), vertices))


DOMAINS = {
    "ring": plane(RING),
    "narrow ring": plane(f"{disk(0, 1)}, holes: [{{{disk(0.8, 0.15)}}}]"),
    "dumbbell": plane(DUMBBELL),
    "tee": plane(TEE),
    "plate": plane(perforated(*(disk(x, 0.05) for x in (0.1, 0.5, 0.8)))),
    "slit": plane(perforated("type: polygon, vertices: [[0.2, 0.5], [0.8, 0.5], [0.8, 0.52]]")),
    "star": turning(10, 0.7, 0.3),
    "gear": turning(24, 0.65, 0.5),
    "wedge": plane("type: sector, radius: 1.5, angles: [0, pi/8]"),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_no_triangle_is_a_sliver(name: str) -> None:
    domain = DOMAINS[name]
    points, triangles = quality_mesh(domain, domain.size / 4)
    a, b, c = (points[triangles[:, k]] for k in range(3))
    sides = np.sort([np.hypot(*(b - a).T), np.hypot(*(c - b).T), np.hypot(*(a - c).T)], axis=0)
    cosine = (sides[1] ** 2 + sides[2] ** 2 - sides[0] ** 2) / (2 * sides[1] * sides[2])
    smallest = np.degrees(np.arccos(cosine))
    assert smallest.min() > 20
    assert sides[2].max() <= 1.5 * domain.size / 4 * (1 + 1e-9)


@pytest.mark.parametrize("corners", [11, 13, 24])
def test_points_of_slanted_sides_make_no_flat_triangles(corners: int) -> None:
    domain = turning(corners, 0.7)
    for across in (8, 16):
        points, triangles = quality_mesh(domain, domain.size / across)
        a, b, c = (points[triangles[:, k]] for k in range(3))
        areas = ((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2
        assert areas.min() > 1e-4 * areas.max()
        assert areas.sum() == pytest.approx(domain.area)


@pytest.mark.parametrize("name", DOMAINS)
def test_areas_and_lengths_converge_with_the_curves(name: str) -> None:
    domain = DOMAINS[name]
    coarse, fine = (FunctionSpace(triangulate(domain, across), 2) for across in (4, 8))
    assert fine.triangulation.mesh.nelements >= 4 * coarse.triangulation.mesh.nelements
    errors = [abs(space.weights.sum() / domain.area - 1) for space in (coarse, fine)]
    assert errors[0] < 2e-7
    assert errors[1] < max(errors[0] / 30, 1e-13)
    for part in domain.parts:
        length = sum(piece.length for piece in domain.pieces_of(part))
        assert fine.along(part).weights.sum() == pytest.approx(length, rel=1e-7)


def test_every_boundary_facet_belongs_to_one_part() -> None:
    mesh = triangulate(DOMAINS["dumbbell"], 6)
    facets = np.concatenate(list(mesh.parts.values()))
    assert sorted(facets) == sorted(mesh.mesh.boundary_facets())


def test_points_are_found_in_curved_triangles() -> None:
    domain = DOMAINS["plate"]
    space = FunctionSpace(triangulate(domain, 4), 4)
    points, _ = domain.quadrature(6)
    rim = np.vstack([piece.at(np.linspace(0, 1, 23)) for piece in domain.pieces])
    everywhere = np.vstack([points, rim])

    def wave(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.sin(2 * x) * np.exp(y)

    found = space.interpolation(everywhere) @ wave(*space.points.T)
    assert found == pytest.approx(wave(*everywhere.T), abs=2e-5)


def test_thin_polygons_get_no_slivers_either() -> None:
    thin = PolygonDomain(("x", "y"), ((0, 0), (4, 0), (4, 0.2), (3.9, 0.2), (0, 0.2)))
    space = FunctionSpace(triangulate(thin, 4), 1)
    assert space.weights.sum() == pytest.approx(0.8)
    assert space.triangulation.mesh.nelements < 300
