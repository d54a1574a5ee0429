"""Triangulations of plane domains, finer towards corners at which solutions are not smooth."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.problems import (
    BoxDomain,
    Domain,
    Piece,
    PlaneDomain,
    PolygonDomain,
    RoundDomain,
    plane_domain,
)
from sharp.solvers.grid import Array, Indices

Corner = tuple[float, float]

# Nearer to a corner than this share of its edges, elements get no smaller: what they leave out is below rounding.
_FINEST = 1e-10
# Nearer to a line than this share of the extent, points are on it.
_ON = 1e-9
# Triangles with a smaller angle than this (radians) are slivers.
_SLIVER = math.radians(20)
# Elements across the mesh of which all finer ones are divisions, and the angle of an arc that one of it spans at most.
_COARSEST, _ARC = 4, math.pi / 6
# How much longer than asked for the longest edges of a mesh of good quality are.
_LONGEST = 1.5


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


@dataclass(frozen=True)
class BoundaryCorner:
    """A point at which pieces of a boundary meet: the angle inside (radians), and the parts before and after it.

    `side` is the length of the shorter piece.
    """

    place: Corner
    angle: float
    before: str
    after: str
    side: float


def corners(domain: Domain) -> Iterator[BoundaryCorner]:
    """Yield the points at which the pieces of a boundary meet, those on straight or smooth boundaries too."""
    plane = plane_domain(domain)
    names = iter(_part_names(domain, plane))
    for loop in plane.loops:
        parts = [next(names) for _ in loop]
        for index, piece in enumerate(loop):
            (x, y), ((v, w),) = loop[index - 1].normals(np.ones(1))[0], piece.normals(np.zeros(1))
            angle = math.pi - math.atan2(x * w - y * v, x * v + y * w)
            side = min(piece.length, loop[index - 1].length)
            yield BoundaryCorner(piece.start, angle, parts[index - 1], parts[index], side)


def triangulate(
    domain: Domain,
    across: int,
    gradings: Sequence[Grading] = (),
    lines: Sequence[tuple[Corner, float]] = (),
) -> Triangulation:
    """Return a mesh of about `across` elements along the longer side of the box around a domain.

    In boxes and polygons no element lies on both sides of one of the `lines`, each a normal n and an offset n · x.

    Boundaries that are arcs are curves of degree 4, whose nodes lie on the arcs. A plane domain that is no simple
    polygon has a mesh for every power of two: each element is divided from one to the next.
    """
    size = max(high - low for low, high in domain.bounds.values()) / across
    # It tells of how its arrays lie in memory.
    logging.getLogger("skfem").setLevel(logging.ERROR)
    from skfem import MeshTri1

    if isinstance(domain, RoundDomain):
        points, triangles = _disk(domain.outer, size) if domain.inner is None else _annulus(domain, size)
        mesh = MeshTri1(points + np.reshape(domain.center, (2, 1)), triangles)
    elif isinstance(domain, PlaneDomain) or (simple := _simple(*polygon_of(domain))) is None:
        # Meshes that are no divisions of each other would have errors that do not fall evenly.
        times = max(0, int(math.log2(across / _COARSEST)))
        across = _COARSEST * 2**times if across > _COARSEST else across
        mesh, size = (
            _of_quality(plane_domain(domain), across, times),
            _LONGEST * plane_domain(domain).size / across,
        )
    else:
        mesh = simple
    if isinstance(domain, BoxDomain | PolygonDomain):
        for line in lines:
            mesh = _cut(mesh, *line)
    plane = plane_domain(domain)
    while len(large := _too_large(mesh, size, across, gradings)):
        mesh = _projected(mesh.refined(large), plane)
    owners = _owners(mesh, plane)
    names = _part_names(domain, plane)
    parts = {
        name: mesh.boundary_facets()[np.isin(owners, [k for k, own in enumerate(names) if own == name])]
        for name in dict.fromkeys(names)
    }
    return Triangulation(curved(mesh, plane.pieces, owners), parts)


def _cut(mesh: Any, normal: Corner, offset: float) -> Any:
    """Return a mesh whose triangles are divided by a straight line."""
    from skfem import MeshTri1

    points = mesh.p.T.tolist()
    away = mesh.p.T @ normal - offset
    away[np.abs(away) < _ON * np.ptp(mesh.p)] = 0.0
    crossings: dict[tuple[int, int], int] = {}

    def crossing(a: int, b: int) -> int:
        first, last = sorted((a, b))
        if (first, last) not in crossings:
            share = away[first] / (away[first] - away[last])
            crossings[first, last] = len(points)
            points.append((mesh.p[:, first] + share * (mesh.p[:, last] - mesh.p[:, first])).tolist())
        return crossings[first, last]

    triangles: list[tuple[int, int, int]] = []
    for corners in mesh.t.T.tolist():
        signs = np.sign(away[corners])
        if signs.min() >= 0 or signs.max() <= 0:
            triangles.append(tuple(corners))
            continue
        # The corner that is alone on its side comes first; one that lies on the line comes last.
        alone = next(k for k in range(3) if signs[k] and np.sum(signs == signs[k]) == 1)
        a, b, c = (corners[(alone + k) % 3] for k in range(3))
        if 0.0 in signs:
            b, c = (c, b) if away[b] == 0 else (b, c)
            middle = crossing(a, b)
            triangles += [(a, middle, c), (middle, b, c)]
        else:
            near, far = crossing(a, b), crossing(a, c)
            triangles += [(a, near, far), (near, b, c), (near, c, far)]
    return MeshTri1(np.transpose(points), np.transpose(triangles)) if crossings else mesh


def _part_names(domain: Domain, plane: PlaneDomain) -> list[str]:
    """Return the part that each piece of the boundary is of; the edges of a box are called otherwise in the plane."""
    if isinstance(domain, BoxDomain):
        return list(polygon_of(domain)[1])
    return [piece.part for piece in plane.pieces]


def _simple(vertices: tuple[Corner, ...], parts: tuple[str, ...]) -> Any:
    """Return the triangles between the vertices of a polygon as a mesh, or None where one of them is a sliver."""
    from skfem import MeshTri1

    del parts
    triangles = triangles_of(vertices)
    corners = (tuple(tuple(vertices[index]) for index in triangle) for triangle in triangles)
    if min(min(interior_angles(triangle)) for triangle in corners) < _SLIVER:
        return None
    return MeshTri1(np.transpose(vertices), np.transpose(triangles))


def _of_quality(domain: PlaneDomain, across: int, times: int) -> Any:
    """Return a mesh without slivers: a coarse one, of which every element is divided so many times."""
    from skfem import MeshTri1

    from sharp.solvers.delaunay import quality_mesh

    points, triangles = quality_mesh(domain, domain.size * 2**times / across, _ARC)
    mesh = MeshTri1(points.T, triangles.T)
    for _ in range(times):
        mesh = _projected(mesh.refined(), domain)
    return mesh


def _projected(mesh: Any, domain: PlaneDomain) -> Any:
    """Return a mesh with the points of its boundary on the boundary of the domain."""
    arcs = [index for index, piece in enumerate(domain.pieces) if piece.center is not None]
    if not arcs:
        return mesh
    from skfem import MeshTri1

    owners, facets = _owners(mesh, domain), mesh.facets[:, mesh.boundary_facets()]
    points = mesh.p.copy()
    for index in arcs:
        here, piece = np.unique(facets[:, owners == index]), domain.pieces[index]
        points[:, here] = piece.at(np.clip(piece.share(mesh.p[:, here].T), 0.0, 1.0)).T
    return MeshTri1(points, mesh.t)


def _owners(mesh: Any, domain: PlaneDomain) -> Indices:
    """Return the piece of the domain's boundary that each boundary facet of a mesh belongs to."""
    ends = mesh.p[:, mesh.facets[:, mesh.boundary_facets()]]
    middles = ends.mean(axis=1).T
    return np.asarray(
        np.argmin(
            [
                piece.distance(ends[:, 0].T) + piece.distance(ends[:, 1].T) + piece.distance(middles) / 8
                for piece in domain.pieces
            ],
            axis=0,
        )
    )


def curved(mesh: Any, pieces: Sequence[Piece], owners: Indices) -> Any:
    """Return a mesh whose boundary facets on arcs are curves of degree 4; the same mesh where there are no arcs.

    The element at a facet follows it: a point with barycentric coordinates a and b of the ends of the facet moves by
    a b / (t (1 - t)) of what the facet moves by at t = (1 + b - a)/2 (B. Szabó and I. Babuška, Finite Element Analysis,
    1991, ch. 6).
    """
    if all(piece.center is None for piece in pieces):
        return mesh
    from sharp.solvers.curved_mesh import MeshTri4

    whole = MeshTri4.from_mesh(mesh)
    places, facets = whole.doflocs.copy(), mesh.boundary_facets()
    inner = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    for index, piece in enumerate(pieces):
        if piece.center is None or not len(here := facets[owners == index]):
            continue
        first, last = mesh.facets[:, here]
        from_, to = (piece.share(mesh.p[:, ends].T) for ends in (first, last))

        def moved(t: Any) -> Array:
            """Return what facets move by at shares t of their length, a number or one for each: [2, n]."""
            chord = mesh.p[:, first] + t * (mesh.p[:, last] - mesh.p[:, first])  # noqa: B023
            return np.asarray(piece.at(from_ + t * (to - from_)).T - chord)  # noqa: B023

        for row, t in enumerate((0.25, 0.5, 0.75)):
            places[:, whole.dofs.facet_dofs[row, here]] += moved(t)
        elements = mesh.f2t[0, here]
        a, b = (np.argmax(mesh.t[:, elements] == ends, axis=0) for ends in (first, last))
        for row, weights in enumerate(inner):
            t = (1 + weights[b] - weights[a]) / 2
            share = weights[a] * weights[b] / (t * (1 - t))
            places[:, whole.dofs.interior_dofs[row, elements]] += share * moved(t)
    return MeshTri4(places, mesh.t)


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


def _too_large(mesh: Any, size: float, across: int, gradings: Sequence[Grading]) -> Indices:
    corners = mesh.p[:, mesh.t]
    longest = np.hypot(*(corners - np.roll(corners, 1, axis=1))).max(axis=0)
    middle = corners.mean(axis=1)
    wanted = np.full(len(longest), size * (1 + 1e-9))
    for grading in gradings:
        distance = np.hypot(*(middle - np.reshape(grading.corner, (2, 1))))
        # Next to something small, elements are small already: there they shrink from its size.
        largest = min(size, 8 * grading.reach / across)
        near = distance < grading.reach
        wanted[near] = np.minimum(wanted[near], largest * grading.size(distance[near]))
    return np.flatnonzero(longest > wanted)


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
