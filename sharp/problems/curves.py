"""Pieces of plane boundaries: segments and arcs of circles, with the domain on their left."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sharp.problems.domains import Vertex, distance_to_edge

Points = NDArray[np.float64]


@dataclass(frozen=True)
class Piece:
    """A segment, or an arc about `center` that turns by `sweep` (radians, positive counter-clockwise, below 2π).

    It runs from `start` to `end` with the domain on its left, and belongs to a named part of the boundary.
    """

    start: Vertex
    end: Vertex
    part: str
    center: Vertex | None = None
    sweep: float = 0.0

    @cached_property
    def radius(self) -> float:
        """The radius of an arc, infinite for a segment."""
        return math.inf if self.center is None else math.dist(self.start, self.center)

    @cached_property
    def length(self) -> float:
        """The length along the piece."""
        return math.dist(self.start, self.end) if self.center is None else self.radius * abs(self.sweep)

    def at(self, shares: Points) -> Points:
        """Return the points [n, 2] at shares [n] of the length; the ends are exact."""
        first, last = np.asarray(self.start), np.asarray(self.end)
        points: Points
        if self.center is None:
            points = np.asarray(first + shares[:, None] * (last - first))
        else:
            angles = self._first_angle + self.sweep * shares
            around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
            points = np.asarray(self.center) + self.radius * around
        points[shares == 0.0], points[shares == 1.0] = first, last
        return points

    def normals(self, shares: Points) -> Points:
        """Return the unit normals [n, 2] that point to the right: out of the domain."""
        if self.center is None:
            along = np.subtract(self.end, self.start)
            normal = np.array([along[1], -along[0]]) / np.hypot(*along)
            return np.tile(normal, (len(shares), 1))
        angles = self._first_angle + self.sweep * shares
        outward = math.copysign(1.0, self.sweep)
        return np.asarray(outward * np.stack([np.cos(angles), np.sin(angles)], axis=1))

    def share(self, points: Points) -> Points:
        """Return where along the piece points [n, 2] on it are, between 0 and 1."""
        if self.center is None:
            along = np.subtract(self.end, self.start)
            return np.asarray((points - self.start) @ along / (along @ along))
        offset = points - np.asarray(self.center)
        angle = np.arctan2(offset[:, 1], offset[:, 0]) - self._first_angle
        shares = (math.copysign(1.0, self.sweep) * angle) % (2 * np.pi) / abs(self.sweep)
        # Just before the start the angle is nearly a whole turn.
        whole = 2 * np.pi / abs(self.sweep)
        return np.asarray(np.where(shares > (1 + whole) / 2, shares - whole, shares))

    def distance(self, points: Points) -> Points:
        """Return the distance of points [n, 2] from the piece."""
        if self.center is None:
            return np.asarray(distance_to_edge(points, self.start, self.end))
        shares = self.share(points)
        rim = np.abs(np.hypot(*(points - np.asarray(self.center)).T) - self.radius)
        ends = np.minimum(*(np.hypot(*(points - np.asarray(end)).T) for end in (self.start, self.end)))
        return np.asarray(np.where((shares >= 0) & (shares <= 1), rim, ends))

    def reversed(self) -> Piece:
        """Return the piece with the domain on its other side."""
        return replace(self, start=self.end, end=self.start, sweep=-self.sweep)

    def renamed(self, part: str) -> Piece:
        """Return the piece as one of another part."""
        return replace(self, part=part)

    def cut(self, shares: list[float], corners: list[Vertex]) -> list[Piece]:
        """Return the pieces between ascending shares in (0, 1), at which the given corners lie."""
        ends, places = [self.start, *corners, self.end], [0.0, *shares, 1.0]
        return [
            replace(self, start=a, end=b, sweep=self.sweep * (t - s))
            for a, b, s, t in zip(ends[:-1], ends[1:], places[:-1], places[1:], strict=True)
        ]

    @cached_property
    def bounds(self) -> tuple[Vertex, Vertex]:
        """The low and the high corner of the smallest box around the piece."""
        shares = np.array([0.0, 1.0])
        if self.center is not None:
            extremes = np.asarray(self.center) + self.radius * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
            found = self.share(extremes)
            points = np.vstack([self.at(shares), extremes[(found > 0) & (found < 1)]])
        else:
            points = self.at(shares)
        (a, b), (c, d) = points.min(axis=0), points.max(axis=0)
        return (float(a), float(b)), (float(c), float(d))

    @cached_property
    def signed_area(self) -> float:
        """The contribution to the area on the left of a closed loop: ½∮(x dy - y dx)."""
        (x0, y0), (x1, y1) = self.start, self.end
        chord = (x0 * y1 - x1 * y0) / 2
        if self.center is None:
            return chord
        return chord + self.radius**2 * (self.sweep - math.sin(self.sweep)) / 2

    def runs_over(self, low: float, high: float, heights: Points) -> Iterator[Points]:
        """Yield the first coordinate at heights [n] between two others, for each run of the piece between these.

        No run ends between the two.
        """
        for start, end, center, radius in self._runs:
            if min(start[1], end[1]) <= low and max(start[1], end[1]) >= high:
                yield _level(heights, start, end, center, radius)

    @property
    def levels(self) -> list[float]:
        """The second coordinates of the ends and extremes."""
        return [end[1] for run in self._runs for end in run[:2]]

    def crossings(self, points: Points) -> NDArray[np.int_]:
        """Return how often a ray from each point [n, 2] along the first axis meets the piece, the lower end counted."""
        return sum(
            (np.asarray(_crossed(points, *run)) for run in self._runs), np.zeros(len(points), dtype=int)
        )

    @cached_property
    def _first_angle(self) -> float:
        assert self.center is not None, "a segment has no angle"
        return math.atan2(self.start[1] - self.center[1], self.start[0] - self.center[0])

    @cached_property
    def _runs(self) -> list[tuple[Vertex, Vertex, Vertex | None, float]]:
        """Runs along which the second coordinate is monotone: ends, centre, and the radius, signed by the side."""
        if self.center is None:
            return [(self.start, self.end, None, 0.0)]
        (x, y), radius = self.center, self.radius
        tops = np.array([[x, y + radius], [x, y - radius]])
        found = self.share(tops)
        inner = sorted(
            (float(s), tuple(map(float, p))) for s, p in zip(found, tops, strict=True) if 0 < s < 1
        )
        corners = [corner for _, corner in inner]
        runs: list[tuple[Vertex, Vertex, Vertex | None, float]] = []
        for run in self.cut([share for share, _ in inner], corners):  # type: ignore[arg-type]
            middle = run.at(np.array([0.5]))[0]
            runs.append((run.start, run.end, self.center, math.copysign(radius, middle[0] - x)))
        return runs


def _crossed(
    points: Points, start: Vertex, end: Vertex, center: Vertex | None, radius: float
) -> NDArray[np.bool_]:
    between = (points[:, 1] < start[1]) != (points[:, 1] < end[1])
    return np.asarray(between & (points[:, 0] < _level(points[:, 1], start, end, center, radius)))


def _level(heights: Points, start: Vertex, end: Vertex, center: Vertex | None, radius: float) -> Points:
    """Return where a run has a second coordinate [n]."""
    (x0, y0), (x1, y1) = start, end
    if center is None:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(x0 + (heights - y0) * (x1 - x0) / (y1 - y0))
    square = np.maximum(radius**2 - (heights - center[1]) ** 2, 0.0)
    return np.asarray(center[0] + math.copysign(1.0, radius) * np.sqrt(square))


def meeting_points(first: Piece, second: Piece, slack: float) -> Points:
    """Return the points [n, 2] that two pieces share up to `slack`; of pieces that run together, their ends."""
    ends = [first.start, first.end, second.start, second.end]
    found = np.array([*_crossings(first, second), *ends])
    return found[(first.distance(found) <= slack) & (second.distance(found) <= slack)]


def _crossings(first: Piece, second: Piece) -> Iterator[Vertex]:
    """Yield where the lines or circles of two pieces cross."""
    if first.center is not None and second.center is not None:
        yield from _circles(first.center, first.radius, second.center, second.radius)
    elif first.center is not None:
        yield from _line_and_circle(second, first)
    elif second.center is not None:
        yield from _line_and_circle(first, second)
    else:
        a, b = np.subtract(first.end, first.start), np.subtract(second.end, second.start)
        cross = a[0] * b[1] - a[1] * b[0]
        if abs(cross) > 1e-14 * np.hypot(*a) * np.hypot(*b):
            apart = np.subtract(second.start, first.start)
            share = (apart[0] * b[1] - apart[1] * b[0]) / cross
            yield float(first.start[0] + share * a[0]), float(first.start[1] + share * a[1])


def _line_and_circle(line: Piece, arc: Piece) -> Iterator[Vertex]:
    along = np.subtract(line.end, line.start) / line.length
    assert arc.center is not None, "an arc has a centre"
    foot = np.asarray(line.start) + ((np.asarray(arc.center) - line.start) @ along) * along
    square = arc.radius**2 - float(np.sum((foot - arc.center) ** 2))
    if square >= -1e-12 * arc.radius**2:
        half = math.sqrt(max(square, 0.0))
        for sign in (-1, 1):
            x, y = foot + sign * half * along
            yield float(x), float(y)


def _circles(a: Vertex, r: float, b: Vertex, s: float) -> Iterator[Vertex]:
    apart = math.dist(a, b)
    if apart <= 1e-14 * (r + s):
        return
    along = (apart**2 + r**2 - s**2) / (2 * apart)
    square = r**2 - along**2
    if square >= -1e-12 * r**2:
        half = math.sqrt(max(square, 0.0))
        x, y = (b[0] - a[0]) / apart, (b[1] - a[1]) / apart
        for sign in (-1, 1):
            yield a[0] + along * x - sign * half * y, a[1] + along * y + sign * half * x


def circle(center: Vertex, radius: float, part: str) -> tuple[Piece, ...]:
    """Return a whole circle about its disk, as four arcs."""
    (x, y), r = center, radius
    corners = [(x + r, y), (x, y + r), (x - r, y), (x, y - r)]
    following = [*corners[1:], corners[0]]
    return tuple(Piece(a, b, part, center, math.pi / 2) for a, b in zip(corners, following, strict=True))


def polyline(vertices: tuple[Vertex, ...], parts: tuple[str, ...]) -> tuple[Piece, ...]:
    """Return the edges of a polygon, the one from each vertex to the next with the part of that place."""
    following = (*vertices[1:], vertices[0])
    return tuple(Piece(a, b, part) for a, b, part in zip(vertices, following, parts, strict=True))


def arc(start: Vertex, through: Vertex, end: Vertex, part: str) -> Piece:
    """Return the arc from a point through another to a third; raises `ValueError` where they lie on a line."""
    (x, y), (p, q) = np.subtract(through, start), np.subtract(end, start)
    cross = float(x * q - y * p)
    if abs(cross) <= 1e-12 * (x * x + y * y + p * p + q * q):
        raise ValueError("three points of a line are on no circle")
    a, b = x * x + y * y, p * p + q * q
    center = (start[0] + float(q * a - y * b) / (2 * cross), start[1] + float(x * b - p * a) / (2 * cross))
    first, last = (math.atan2(at[1] - center[1], at[0] - center[0]) for at in (start, end))
    turn = (last - first) % (2 * math.pi)
    return Piece(start, end, part, center, turn if cross > 0 else turn - 2 * math.pi)


def near(first: Piece, second: Piece, slack: float) -> bool:
    """Return whether the boxes around two pieces meet up to `slack`: only then may the pieces."""
    (low, high), (least, most) = first.bounds, second.bounds
    return all(low[k] <= most[k] + slack and least[k] <= high[k] + slack for k in (0, 1))
