"""Triangulations of polygons, disks and annuli, finer towards corners at which solutions are not smooth."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.problems import BoxDomain, Domain, PolygonDomain, RoundDomain, distance_to_edge
from sharp.solvers.grid import Array, Indices

Corner = tuple[float, float]

# Nearer to a corner than this share of its edges, elements get no smaller: what they leave out is below rounding.
_FINEST = 1e-10


@dataclass(frozen=True)
class Triangulation:
    """A mesh of scikit-fem, and the facets [k] on each part of the domain's boundary."""

    mesh: Any
    parts: Mapping[str, Indices]


@dataclass(frozen=True)
class Grading:
    """How fast elements shrink towards a point: their size goes like distance to the power of 1 - `exponent`.

    Nearer than `least` times the reach they shrink no more.
    """

    corner: Corner
    reach: float
    exponent: float
    least: float = _FINEST

    def size(self, distance: Array) -> Array:
        """Return the size of elements at some distance, relative to that far away."""
        return np.clip(distance / self.reach, self.least, 1.0) ** (1 - self.exponent)


def polygon_of(domain: BoxDomain | PolygonDomain) -> tuple[tuple[Corner, ...], tuple[str, ...]]:
    """Return the vertices of a polygon or rectangle, and the part of the boundary from each vertex to the next."""
    if isinstance(domain, PolygonDomain):
        return domain.vertices, domain.parts
    (left, right), (low, high) = domain.bounds.values()
    x, y = domain.bounds
    corners = ((left, low), (right, low), (right, high), (left, high))
    return corners, (f"{y}-", f"{x}+", f"{y}+", f"{x}-")


def triangulate(domain: Domain, across: int, gradings: Sequence[Grading] = ()) -> Triangulation:
    """Return a mesh of about `across` elements along the longer side of the box around a domain.

    Circles are approximated by arcs of parabolas.
    """
    size = max(high - low for low, high in domain.bounds.values()) / across
    # It tells of how its arrays lie in memory.
    logging.getLogger("skfem").setLevel(logging.ERROR)
    if isinstance(domain, RoundDomain):
        return _round(domain, size)
    from skfem import MeshTri1

    vertices, parts = polygon_of(domain)
    mesh = MeshTri1(np.transpose(vertices), np.transpose(triangles_of(vertices)))
    while len(large := _too_large(mesh, size, gradings)):
        mesh = mesh.refined(large)
    return Triangulation(mesh, _facets_on_edges(mesh, vertices, parts))


def interior_angles(vertices: Sequence[Corner]) -> list[float]:
    """Return the angle inside a counter-clockwise polygon at each vertex, between 0 and 2π."""
    angles = []
    for index, (x, y) in enumerate(vertices):
        before, after = vertices[index - 1], vertices[(index + 1) % len(vertices)]
        turn = math.atan2(before[1] - y, before[0] - x) - math.atan2(after[1] - y, after[0] - x)
        angles.append(turn % (2 * math.pi))
    return angles


def triangles_of(vertices: Sequence[Corner]) -> Indices:
    """Triangulate a simple counter-clockwise polygon: indices [n - 2, 3] of its vertices.

    Ears are cut off, of those with no vertex inside the one with the largest smallest angle first (G. H. Meisters,
    Polygons have ears, 1975); then edges are flipped until the triangulation is a constrained Delaunay one, whose
    smallest angle is as large as can be (C. L. Lawson, Software for C1 surface interpolation, 1977).
    """
    points = np.asarray(vertices, dtype=float)
    left = list(range(len(points)))
    triangles = []
    while len(left) > 3:
        ears = [_at(left, place) for place in range(len(left))]
        best = max(range(len(left)), key=lambda place: _quality(points, ears[place], left))
        triangles.append(ears[best])
        del left[best]
    return np.array(_flipped(points, [*triangles, _at(left, 1)]))


def _at(left: Sequence[int], place: int) -> tuple[int, int, int]:
    return left[place - 1], left[place], left[(place + 1) % len(left)]


def _quality(points: Array, ear: tuple[int, int, int], left: Sequence[int]) -> float:
    """Return the smallest angle of an ear, and less than zero for a triangle that is none."""
    corners = points[list(ear)]
    if _doubled_area(*corners) <= 0:
        return -1.0
    others = [index for index in left if index not in ear]
    if others and _inside(points[others], corners).any():
        return -0.5
    return min(interior_angles([tuple(corner) for corner in corners]))


def _inside(points: Array, corners: Array) -> NDArray[np.bool_]:
    """Return which points lie in a counter-clockwise triangle or on its boundary."""
    following = np.roll(corners, -1, axis=0)
    sides = [_doubled_area(a, b, points.T) >= 0 for a, b in zip(corners, following, strict=True)]
    return np.asarray(np.logical_and.reduce(sides))


def _doubled_area(a: Any, b: Any, c: Any) -> Any:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _flipped(points: Array, triangles: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Flip one edge after the other that is no Delaunay edge; each makes the smallest angle of a pair larger."""
    while (pair := next(_bad_pairs(points, triangles), None)) is not None:
        (first, second), (a, b, c, d) = pair
        triangles[first], triangles[second] = (a, b, d), (b, c, d)
    return triangles


def _bad_pairs(points: Array, triangles: list[tuple[int, int, int]]) -> Iterator[tuple[Any, Any]]:
    """Yield neighbouring triangles, and their quadrilateral abcd, where the edge bd is better than ac."""
    opposite = {}
    for index, triangle in enumerate(triangles):
        for turn in range(3):
            start, end, apex = (triangle[(turn + k) % 3] for k in range(3))
            opposite[start, end] = (index, apex)
    for (start, end), (index, apex) in opposite.items():
        if start < end and (end, start) in opposite:
            other, far = opposite[end, start]
            if _angle(points, apex, start, end) + _angle(points, far, start, end) > math.pi * (1 + 1e-9):
                yield (index, other), (start, far, end, apex)


def _angle(points: Array, apex: int, start: int, end: int) -> float:
    first, second = points[start] - points[apex], points[end] - points[apex]
    return abs(math.atan2(first[0] * second[1] - first[1] * second[0], first @ second))


def _too_large(mesh: Any, size: float, gradings: Sequence[Grading]) -> Indices:
    corners = mesh.p[:, mesh.t]
    longest = np.hypot(*(corners - np.roll(corners, 1, axis=1))).max(axis=0)
    middle = corners.mean(axis=1)
    wanted = np.full(len(longest), size)
    for grading in gradings:
        distance = np.hypot(*(middle - np.reshape(grading.corner, (2, 1))))
        wanted = np.minimum(wanted, size * grading.size(distance))
    return np.flatnonzero(longest > wanted)


def _facets_on_edges(mesh: Any, vertices: Sequence[Corner], parts: Sequence[str]) -> dict[str, Indices]:
    boundary = mesh.boundary_facets()
    middle = mesh.p[:, mesh.facets[:, boundary]].mean(axis=1).T
    ends = zip(vertices, (*vertices[1:], vertices[0]), strict=True)
    nearest = np.argmin([distance_to_edge(middle, start, end) for start, end in ends], axis=0)
    return {part: boundary[nearest == index] for index, part in enumerate(parts)}


def _round(domain: RoundDomain, size: float) -> Triangulation:
    from skfem import MeshTri1, MeshTri2

    points, triangles = _disk(domain.outer, size) if domain.inner is None else _annulus(domain, size)
    mesh = MeshTri2.from_mesh(MeshTri1(points, triangles))
    circles = {"outer": domain.outer} | ({} if domain.inner is None else {"inner": domain.inner})
    boundary = mesh.boundary_facets()
    from_center = np.hypot(*mesh.p[:, mesh.facets[0, boundary]])
    nearest = np.argmin([abs(from_center - radius) for radius in circles.values()], axis=0)
    parts = {name: boundary[nearest == index] for index, name in enumerate(circles)}
    places = mesh.doflocs.copy()
    for name, radius in circles.items():
        ends_and_middles = np.unique(mesh.dofs.get_facet_dofs(parts[name]).flatten())
        places[:, ends_and_middles] *= radius / np.hypot(*places[:, ends_and_middles])
    center = np.reshape(domain.center, (2, 1))
    return Triangulation(MeshTri2(places + center, mesh.t), parts)


def _disk(radius: float, size: float) -> tuple[Array, Indices]:
    """Return a triangulation of 6i points on circle i: all triangles are nearly equilateral."""
    rings = math.ceil(radius / size)
    counts = [1, *(6 * ring for ring in range(1, rings + 1))]
    first = np.concatenate([[0], np.cumsum(counts)])
    points = np.concatenate(
        [_circle(radius * ring / rings, count) for ring, count in enumerate(counts)], axis=1
    )

    def arc(ring: int, sector: int) -> Indices:
        """Return the points of a circle between two of the six rays, those on the rays included."""
        places = np.arange(ring * sector, ring * (sector + 1) + 1) % counts[ring]
        return np.asarray(first[ring] + places)

    triangles = []
    for ring, sector in product(range(rings), range(6)):
        inner, outer = arc(ring, sector), arc(ring + 1, sector)
        triangles += [(inner[k], outer[k], outer[k + 1]) for k in range(ring + 1)]
        triangles += [(inner[k], outer[k + 1], inner[k + 1]) for k in range(ring)]
    return points, np.transpose(triangles)


def _annulus(domain: RoundDomain, size: float) -> tuple[Array, Indices]:
    """Return the image of a uniform mesh under the exponential map: smaller towards the inner circle."""
    assert domain.inner is not None
    around = math.ceil(2 * math.pi * domain.outer / size)
    layers = max(2, math.ceil(math.log(domain.outer / domain.inner) * around / (2 * math.pi)))
    radii = domain.inner * (domain.outer / domain.inner) ** (np.arange(layers + 1) / layers)
    points = np.concatenate([_circle(radius, around) for radius in radii], axis=1)
    start = np.arange(around) + around * np.arange(layers)[:, None]
    nearby = np.roll(start, -1, axis=1)
    lower = [start, start + around, nearby + around]
    upper = [start, nearby + around, nearby]
    return points, np.concatenate([np.reshape(corners, (3, -1)) for corners in (lower, upper)], axis=1)


def _circle(radius: float, count: int) -> Array:
    angles = 2 * np.pi * np.arange(count) / count
    return radius * np.array([np.cos(angles), np.sin(angles)])
