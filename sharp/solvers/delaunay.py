"""Triangulations of good quality of plane domains: Delaunay refinement in rounds.

Points are added until no triangle has an angle much below 25 degrees, or is larger than asked for: the middle of every
boundary segment with another point in its diametral circle, else the circumcentres of bad triangles (J. Ruppert,
J. Algorithms 18, 1995; J. R. Shewchuk, Comput. Geom. 22, 2002). As many as do not disturb each other are added at once
(D. A. Spielman, S.-H. Teng and A. Üngör, Int. J. Comput. Geom. Appl. 17, 2007), so that a few dozen Delaunay
triangulations by Qhull do. Arcs are divided on the curve. Both segments at an acute corner have one length, so that
they do not disturb each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.problems import Piece, PlaneDomain
from sharp.solvers.grid import Array, Indices
from sharp.solvers.system import UnsupportedProblem

# Circumradius over shortest edge, of an angle of 24.6 degrees: Ruppert's algorithm ends for sqrt(2), often below.
_SHAPE = 1.2
# The angle of an arc that one segment spans at most.
_ARC = math.pi / 6
# Corners below this angle are cut off by segments of equal length.
_ACUTE = math.radians(80)
# What takes longer is not done by more: a domain is thin, or a corner very sharp.
_ROUNDS, _MOST = 200, 20000
# Points of one round lie at least this share of their circumradius apart.
_APART = 0.8
# The corners of a frame lie this far from the middle, in sizes of the domain.
_FRAME = 4.0


@dataclass(frozen=True)
class Segment:
    """The part of a piece of the boundary between two shares of it, and the numbers of the points at its ends."""

    piece: int
    low: float
    high: float
    start: int
    end: int


def quality_mesh(domain: PlaneDomain, size: float, arc: float = _ARC) -> tuple[Array, Indices]:
    """Return points [n, 2] and counter-clockwise triangles [m, 3] of a domain, no edge longer than about `size`.

    Segments of an arc span no more than `arc` (radians). Raises `UnsupportedProblem` where no mesh is found.
    """
    return _Refinement(domain, size, arc).run()


class _Refinement:
    """The points and boundary segments of a mesh that is being refined."""

    def __init__(self, domain: PlaneDomain, size: float, arc: float) -> None:
        self._domain, self._size = domain, size
        self._pieces = domain.pieces
        self._points: list[tuple[float, float]] = []
        self._numbers: dict[tuple[float, float], int] = {}
        self._segments: list[Segment] = []
        # Inside of far corners, points that lie on a side of the domain up to rounding make no flat triangles.
        (left, right), (low, high) = domain.bounds.values()
        middle, far = np.array([left + right, low + high]) / 2, _FRAME * domain.size
        self._frame = middle + far * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        acute = _acute_corners(domain)
        self._acute = {self._number(corner) for corner in acute}
        for index, piece in enumerate(self._pieces):
            self._divide(index, piece, acute, arc)

    def run(self) -> tuple[Array, Indices]:
        from scipy.spatial import Delaunay

        for _ in range(_ROUNDS):
            points = np.array(self._points)
            if len(points) > _MOST:
                break
            if self._split(self._encroached(points)):
                continue
            framed = np.vstack([points, self._frame])
            mesh = Delaunay(framed)
            # Of points on one circle, Qhull takes any triangles.
            if self._split(self._missing(mesh)):
                continue
            triangles = self._inner(framed, mesh)
            centers, radii, bad = _circles(points, triangles, self._size, sorted(self._acute))
            if not bad.any():
                return points, triangles
            self._insert(centers[bad], radii[bad])
        raise UnsupportedProblem(
            "no mesh with good angles was found for this domain: it may be too thin somewhere"
        )

    def _number(self, point: tuple[float, float]) -> int:
        if point not in self._numbers:
            self._numbers[point] = len(self._points)
            self._points.append(point)
        return self._numbers[point]

    def _divide(self, index: int, piece: Piece, acute: dict[tuple[float, float], float], arc: float) -> None:
        """Divide a piece into segments no longer than the size; acute corners are cut off first."""
        cuts = [acute[piece.start] / piece.length] if piece.start in acute else []
        cuts += [1 - acute[piece.end] / piece.length] if piece.end in acute else []
        ends = [0.0, *cuts, 1.0]
        for low, high in pairwise(ends):
            length = (high - low) * piece.length
            first, last = low == 0.0 and piece.start in acute, high == 1.0 and piece.end in acute
            count = math.ceil(length / self._size * (1 - 1e-9))
            if piece.center is not None:
                count = max(count, math.ceil((high - low) * abs(piece.sweep) / arc * (1 - 1e-9)))
            count = 1 if first or last else max(1, count)
            places = np.linspace(low, high, count + 1)
            points = piece.at(places)
            numbers = [self._number((float(x), float(y))) for x, y in points]
            for k in range(count):
                ends_k = (float(places[k]), float(places[k + 1]))
                self._segments.append(Segment(index, *ends_k, numbers[k], numbers[k + 1]))

    def _encroached(self, points: Array) -> list[int]:
        """Return the segments in whose diametral circle there is another point."""
        from scipy.spatial import KDTree

        ends = np.array([(segment.start, segment.end) for segment in self._segments])
        middles = points[ends].mean(axis=1)
        radii = np.hypot(*(points[ends[:, 1]] - points[ends[:, 0]]).T) / 2
        nearest = KDTree(points).query(middles)[0]
        return [int(index) for index in np.flatnonzero(nearest < radii * (1 - 1e-8))]

    def _missing(self, mesh: Any) -> list[int]:
        """Return the segments that are no edges of a triangulation."""
        edges = np.sort(np.concatenate([np.delete(mesh.simplices, k, axis=1) for k in range(3)]), axis=1)
        ends = np.sort([(segment.start, segment.end) for segment in self._segments], axis=1)
        count = len(mesh.points)
        known = np.isin(_keys(ends, count), _keys(edges, count))
        return [int(index) for index in np.flatnonzero(~known)]

    def _split(self, which: list[int]) -> bool:
        """Divide segments in the middle, at acute corners both of a corner; return whether there were any."""
        corners = {
            end
            for k in which
            for end in (self._segments[k].start, self._segments[k].end)
            if end in self._acute
        }
        chosen = set(which)
        chosen |= {k for k, s in enumerate(self._segments) if s.start in corners or s.end in corners}
        kept = [segment for k, segment in enumerate(self._segments) if k not in chosen]
        for k in sorted(chosen):
            segment = self._segments[k]
            middle = (segment.low + segment.high) / 2
            ((x, y),) = self._pieces[segment.piece].at(np.array([middle]))
            number = self._number((float(x), float(y)))
            kept.append(Segment(segment.piece, segment.low, middle, segment.start, number))
            kept.append(Segment(segment.piece, middle, segment.high, number, segment.end))
        self._segments = kept
        return bool(chosen)

    def _inner(self, points: Array, mesh: Any) -> Indices:
        """Return the triangles on the inner side of all segments."""
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        triangles, neighbours, count = np.asarray(mesh.simplices), np.asarray(mesh.neighbors), len(points)
        walls = _keys(np.sort([(segment.start, segment.end) for segment in self._segments], axis=1), count)
        rows, columns = [], []
        for k in range(3):
            ends = np.sort(np.delete(triangles, k, axis=1), axis=1)
            passable = (neighbours[:, k] >= 0) & ~np.isin(_keys(ends, count), walls)
            rows.append(np.flatnonzero(passable))
            columns.append(neighbours[passable, k])
        ones = np.ones(sum(map(len, rows)))
        graph = sparse.coo_array(
            (ones, (np.concatenate(rows), np.concatenate(columns))), shape=(len(triangles),) * 2
        )
        _, labels = connected_components(graph, directed=False)
        area = _doubled_areas(points, triangles)
        # Of each region the largest triangle tells: a small one may lie between a chord and its arc.
        regions = (np.flatnonzero(labels == label) for label in range(labels.max() + 1))
        largest = np.array([region[np.argmax(np.abs(area[region]))] for region in regions])
        within = self._domain.inside(points[triangles[largest]].mean(axis=1))
        found = triangles[within[labels]]
        flipped = _doubled_areas(points, found) < 0
        found[flipped] = found[flipped][:, ::-1]
        return found

    def _insert(self, centers: Array, radii: Array) -> None:
        """Add circumcentres, those of the largest circles first, or divide the segments that they would encroach on."""
        from scipy.spatial import KDTree

        order = np.argsort(-radii)
        centers, radii = centers[order], radii[order]
        points = np.array(self._points)
        ends = np.array([(segment.start, segment.end) for segment in self._segments])
        middles = points[ends].mean(axis=1)
        reach = np.hypot(*(points[ends[:, 1]] - points[ends[:, 0]]).T) / 2
        apart = np.hypot(*(centers[:, None] - middles).transpose(2, 0, 1))
        disturbed = apart < reach * (1 - 1e-8)
        free = ~disturbed.any(axis=1)
        if not free.any():
            self._split([int(k) for k in np.flatnonzero(disturbed.any(axis=0))])
            return
        centers, radii = centers[free], radii[free]
        taken = np.zeros(len(centers), dtype=bool)
        tree = KDTree(centers)
        for index in range(len(centers)):
            if not taken[index]:
                taken[tree.query_ball_point(centers[index], _APART * radii[index])] = True
                self._number((float(centers[index, 0]), float(centers[index, 1])))


def _keys(ends: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return one number for each pair [n, 2] of numbers below `count`."""
    return np.asarray(ends[:, 0].astype(np.int64) * count + ends[:, 1])


def _acute_corners(domain: PlaneDomain) -> dict[tuple[float, float], float]:
    """Return the corners with acute angles inside or outside of the domain, and the lengths of the segments there."""
    found = {}
    for loop in domain.loops:
        for before, after in zip((loop[-1], *loop[:-1]), loop, strict=True):
            ends = np.array([1.0]), np.array([0.0])
            first, second = before.normals(ends[0])[0], after.normals(ends[1])[0]
            turn = abs(math.atan2(first[0] * second[1] - first[1] * second[0], first @ second))
            if math.pi - turn < _ACUTE:
                found[after.start] = min(before.length, after.length) / 3
    return found


def _doubled_areas(points: Array, triangles: Indices) -> Array:
    a, b, c = (points[triangles[:, k]] for k in range(3))
    return np.asarray((b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0]))


def _circles(
    points: Array, triangles: Indices, size: float, tips: list[int]
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return the circumcentres [m, 2] and circumradii [m] of triangles, and which of them are slivers or too large."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    first, second = b - a, c - a
    doubled = _doubled_areas(points, triangles)
    squares = np.sum(first**2, axis=1), np.sum(second**2, axis=1)
    offset = np.stack(
        [
            second[:, 1] * squares[0] - first[:, 1] * squares[1],
            first[:, 0] * squares[1] - second[:, 0] * squares[0],
        ],
        axis=1,
    ) / (2 * doubled[:, None])
    radii = np.hypot(*offset.T)
    edges = np.stack([np.hypot(*(b - a).T), np.hypot(*(c - b).T), np.hypot(*(a - c).T)])
    # At an acute corner the angle is the corner's own: the shortest edge is the one opposite to it.
    opposite = np.argmin(edges, axis=0)
    at_tip = np.isin(triangles[np.arange(len(triangles)), (opposite + 2) % 3], tips)
    bad = ((radii > _SHAPE * edges.min(axis=0)) & ~at_tip) | (edges.max(axis=0) > 1.5 * size)
    return a + offset, radii, bad
