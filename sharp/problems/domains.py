"""Domains in numbers: where they lie, the named parts of their boundary, and which points are inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Points = NDArray[np.float64]

Vertex = tuple[float, float]

# How far from a line or a circle a point may be, relative to the size of the domain, and still lie on it.
ON_BOUNDARY = 1e-12


@dataclass(frozen=True)
class BoxDomain:
    """An interval, rectangle or box. Its parts are `x-` and `x+`, the low and the high end of each axis."""

    bounds: Mapping[str, tuple[float, float]]

    @property
    def parts(self) -> tuple[str, ...]:
        """All parts of the boundary, those of periodic axes included."""
        return tuple(axis + side for axis in self.bounds for side in "-+")

    def named(self, name: str) -> tuple[str, ...]:
        """No part has a name in a specification: an end is written `x = 0`."""
        del name
        return ()

    def on_axis(self, axis: str, value: float) -> tuple[str, ...]:
        """Return the end of an axis that lies at a coordinate, if any."""
        ends = self.bounds[axis]
        return tuple(
            axis + side for side, end in zip("-+", ends, strict=True) if same(value, end, ends[1] - ends[0])
        )

    def inside(self, points: Points) -> NDArray[np.bool_]:
        """Return which of the points [n, d] are in the domain, its boundary included."""
        import numpy as np

        low, high = np.transpose(list(self.bounds.values()))
        slack = ON_BOUNDARY * (high - low)
        return np.asarray(np.all((points >= low - slack) & (points <= high + slack), axis=1))


@dataclass(frozen=True)
class RoundDomain:
    """A disk, with the part `outer`, or an annulus, with the parts `inner` and `outer`."""

    axes: tuple[str, str]
    center: tuple[float, float]
    inner: float | None
    outer: float

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The smallest box around the domain."""
        return {
            axis: (middle - self.outer, middle + self.outer)
            for axis, middle in zip(self.axes, self.center, strict=True)
        }

    @property
    def parts(self) -> tuple[str, ...]:
        """The circles that bound the domain."""
        return ("outer",) if self.inner is None else ("inner", "outer")

    def named(self, name: str) -> tuple[str, ...]:
        """Return the circle of that name, if any."""
        return tuple(part for part in self.parts if part == name)

    def on_axis(self, axis: str, value: float) -> tuple[str, ...]:
        """No part lies at one coordinate of an axis."""
        del axis, value
        return ()

    def inside(self, points: Points) -> NDArray[np.bool_]:
        """Return which of the points [n, 2] are in the domain, its boundary included."""
        import numpy as np

        radius = np.hypot(*(points - self.center).T)
        slack = ON_BOUNDARY * self.outer
        return np.asarray((radius <= self.outer + slack) & (radius >= (self.inner or 0.0) - slack))


@dataclass(frozen=True)
class PolygonDomain:
    """A simple polygon with vertices [n, 2] counter-clockwise; `edge 0` runs from vertex 0 to vertex 1."""

    axes: tuple[str, str]
    vertices: tuple[Vertex, ...]

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The smallest box around the domain."""
        values = zip(*self.vertices, strict=True)
        return {axis: (min(along), max(along)) for axis, along in zip(self.axes, values, strict=True)}

    @property
    def parts(self) -> tuple[str, ...]:
        """All edges."""
        return tuple(f"edge {index}" for index in range(len(self.vertices)))

    def named(self, name: str) -> tuple[str, ...]:
        """Return the edge of that name, if any."""
        return tuple(part for part in self.parts if part == name)

    def on_axis(self, axis: str, value: float) -> tuple[str, ...]:
        """Return the edges that lie wholly at one coordinate of an axis."""
        index, (low, high) = self.axes.index(axis), self.bounds[axis]
        return tuple(
            f"edge {number}"
            for number, ends in enumerate(self.edges)
            if all(same(value, end[index], high - low) for end in ends)
        )

    @property
    def edges(self) -> tuple[tuple[Vertex, Vertex], ...]:
        """The two ends of every edge."""
        return _edges(self.vertices)

    def inside(self, points: Points) -> NDArray[np.bool_]:
        """Return which of the points [n, 2] are in the domain, its boundary included (even-odd rule)."""
        import numpy as np

        crossings = np.zeros(len(points), dtype=int)
        near = np.zeros(len(points), dtype=bool)
        for (x0, y0), (x1, y1) in self.edges:
            between = (points[:, 1] < y0) != (points[:, 1] < y1)
            with np.errstate(divide="ignore", invalid="ignore"):
                at = x0 + (points[:, 1] - y0) * (x1 - x0) / (y1 - y0)
            crossings += between & (points[:, 0] < at)
            near |= distance_to_edge(points, (x0, y0), (x1, y1)) <= ON_BOUNDARY * self._size
        return np.asarray((crossings % 2 == 1) | near)

    @property
    def _size(self) -> float:
        return max(high - low for low, high in self.bounds.values())


def same(first: float, second: float, size: float) -> bool:
    """Return whether two coordinates are equal up to rounding, in a domain of that size."""
    return abs(first - second) <= ON_BOUNDARY * max(abs(first), abs(second), size)


def distance_to_edge(points: Points, start: Vertex, end: Vertex) -> Any:
    """Return the distance of points [n, 2] from a line segment."""
    import numpy as np

    along = np.subtract(end, start)
    share = np.clip((points - start) @ along / (along @ along), 0.0, 1.0)
    return np.hypot(*(points - start - share[:, None] * along).T)


def signed_area(vertices: tuple[Vertex, ...]) -> float:
    """Return the area of a polygon, positive where its vertices run counter-clockwise (shoelace formula)."""
    return sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in _edges(vertices)) / 2


def _edges(vertices: tuple[Vertex, ...]) -> tuple[tuple[Vertex, Vertex], ...]:
    return tuple(zip(vertices, (*vertices[1:], vertices[0]), strict=True))


def crosses_itself(vertices: tuple[Vertex, ...]) -> bool:
    """Return whether two edges that are no neighbours meet."""
    edges = _edges(vertices)
    count = len(edges)
    pairs = ((i, j) for i in range(count) for j in range(i + 2, count) if (i, j) != (0, count - 1))
    return any(_meet(*edges[i], *edges[j]) for i, j in pairs)


def _meet(a: Any, b: Any, c: Any, d: Any) -> bool:
    """Whether the segments ab and cd meet: each one's ends lie on both sides of the other, or on it."""
    apart = _turn(a, b, c) * _turn(a, b, d) > 0 or _turn(c, d, a) * _turn(c, d, b) > 0
    boxes = all(
        max(min(a[k], b[k]), min(c[k], d[k])) <= min(max(a[k], b[k]), max(c[k], d[k])) for k in (0, 1)
    )
    return boxes and not apart


def _turn(a: Any, b: Any, c: Any) -> int:
    cross = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    return int(cross > 0) - int(cross < 0)
