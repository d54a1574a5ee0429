"""Plane domains with holes, unions of shapes and parts of edges: loops of segments and arcs, which stay exact."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from sharp.errors import SpecificationError
from sharp.problems.curves import Piece, Points, circle, meeting_points, near, polyline
from sharp.problems.domains import ON_BOUNDARY, BoxDomain, PolygonDomain, RoundDomain, Vertex, same

Loop = tuple[Piece, ...]

# Nearer than this share of the domain's size, points count as one and curves as touching.
_TOUCHING = 1e-10
# Samples of a condition along a piece, and halvings of a step in which it changes.
_SCAN, _HALVINGS = 400, 55
# Points along a piece that stand for it where boxes are sought that avoid it.
_ALONG = 48
_SHAPE = re.compile(r"^(shape \d+ )+")


@dataclass(frozen=True)
class PlaneDomain:
    """A connected part of the plane, on the left of closed loops of pieces: one around it, one around each hole.

    `text` says in words what it is. Several pieces may belong to one part, and several parts to one name: `hole 0`
    stands for all of its edges, and `outer`, where it is no part, for those of the loop around the domain.
    """

    axes: tuple[str, str]
    loops: tuple[Loop, ...]
    text: str

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of all loops."""
        return tuple(piece for loop in self.loops for piece in loop)

    @cached_property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The smallest box around the domain."""
        boxes = [piece.bounds for piece in self.pieces]
        return {
            axis: (min(low[k] for low, _ in boxes), max(high[k] for _, high in boxes))
            for k, axis in enumerate(self.axes)
        }

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts of the boundary."""
        return tuple(dict.fromkeys(piece.part for piece in self.pieces))

    def pieces_of(self, part: str) -> tuple[Piece, ...]:
        """Return the pieces of one part."""
        return tuple(piece for piece in self.pieces if piece.part == part)

    def named(self, name: str) -> tuple[str, ...]:
        """Return the parts that a name stands for: the part itself, those of a shape or a hole, those of all shapes."""
        if name == "outer" and name not in self.parts:
            around = [loop for loop in self.loops if sum(piece.signed_area for piece in loop) > 0]
            return tuple(dict.fromkeys(piece.part for loop in around for piece in loop))
        return tuple(
            part for part in self.parts if any(f"{known} ".startswith(f"{name} ") for known in _names(part))
        )

    def on_axis(self, axis: str, value: float) -> tuple[str, ...]:
        """Return the parts that lie wholly at one coordinate of an axis."""
        index, (low, high) = self.axes.index(axis), self.bounds[axis]
        return tuple(
            part
            for part in self.parts
            if all(
                piece.center is None and same(value, end[index], high - low)
                for piece in self.pieces_of(part)
                for end in (piece.start, piece.end)
            )
        )

    @cached_property
    def area(self) -> float:
        """The area."""
        return sum(piece.signed_area for piece in self.pieces)

    def inside(self, points: Points) -> NDArray[np.bool_]:
        """Return which of the points [n, 2] are in the domain, its boundary included (even-odd rule)."""
        points = np.asarray(points, dtype=float)
        found = np.sum([piece.crossings(points) for piece in self.pieces], axis=0) % 2 == 1
        others = np.flatnonzero(~found)
        if len(others):
            found[others] = self.distance(points[others]) <= ON_BOUNDARY * self.size
        return np.asarray(found)

    def distance(self, points: Points) -> Points:
        """Return the distance of points [n, 2] from the boundary."""
        return np.asarray(np.minimum.reduce([piece.distance(points) for piece in self.pieces]))

    def quadrature(self, count: int) -> tuple[Points, Points]:
        """Return points [n, 2] in the domain and weights [n] of an integral, by lines along the first axis.

        Between heights at which a piece begins, ends or turns round, Gauss' rule after y = a + (b - a) sin²(πt/2),
        under which the ends of chords of circles are smooth; and Gauss' rule along each chord.
        """
        nodes, weights = np.polynomial.legendre.leggauss(count)
        nodes, weights = (nodes + 1) / 2, weights / 2
        found, areas = [], []
        levels = np.unique([level for piece in self.pieces for level in piece.levels])
        for low, high in pairwise(map(float, levels)):
            heights = low + (high - low) * np.sin(np.pi * nodes / 2) ** 2
            rates = (high - low) * np.pi / 2 * np.sin(np.pi * nodes) * weights
            ends = [x for piece in self.pieces for x in piece.runs_over(low, high, heights)]
            chords = np.sort(np.array(ends), axis=0)
            for left, right in zip(chords[::2], chords[1::2], strict=True):
                x = left[:, None] + (right - left)[:, None] * nodes
                found.append(np.stack([x.ravel(), np.repeat(heights, count)], axis=1))
                areas.append(np.outer(rates * (right - left), weights).ravel())
        return np.vstack(found), np.hstack(areas)

    @property
    def size(self) -> float:
        """The longer side of the box around the domain."""
        return max(high - low for low, high in self.bounds.values())

    @cached_property
    def outline(self) -> Points:
        """Points [n, 2] all along the boundary."""
        shares = np.linspace(0.0, 1.0, _ALONG)
        return np.vstack([piece.at(shares) for piece in self.pieces])


Domain = BoxDomain | RoundDomain | PolygonDomain | PlaneDomain


def _names(part: str) -> tuple[str, str]:
    return part, _SHAPE.sub("", part)


def plane_domain(
    domain: BoxDomain | RoundDomain | PolygonDomain | PlaneDomain, text: str = ""
) -> PlaneDomain:
    """Return a plane domain by its loops; a box has two axes."""
    match domain:
        case PlaneDomain():
            return domain
        case BoxDomain(bounds):
            (x, (left, right)), (y, (low, high)) = bounds.items()
            corners = ((left, low), (right, low), (right, high), (left, high))
            parts = tuple(f"{axis} = {at:g}" for axis, at in ((y, low), (x, right), (y, high), (x, left)))
            return PlaneDomain((x, y), (polyline(corners, parts),), text)
        case PolygonDomain(axes, vertices):
            return PlaneDomain(axes, (polyline(vertices, domain.parts),), text)
        case RoundDomain(axes, center, inner, outer):
            loops: tuple[Loop, ...] = (circle(center, outer, "outer"),)
            if inner is not None:
                loops = (*loops, _backwards(circle(center, inner, "inner")))
            return PlaneDomain(axes, loops, text)


def sector(
    axes: tuple[str, str], center: Vertex, radius: float, angles: tuple[float, float], text: str
) -> PlaneDomain:
    """Return the part of a disk between two angles, with the parts `start`, `outer` and `end`."""
    ends: list[Vertex] = [
        (center[0] + radius * float(np.cos(angle)), center[1] + radius * float(np.sin(angle)))
        for angle in angles
    ]
    pieces = (
        Piece(center, ends[0], "start"),
        Piece(ends[0], ends[1], "outer", center, angles[1] - angles[0]),
        Piece(ends[1], center, "end"),
    )
    return PlaneDomain(axes, (pieces,), text)


def region(axes: tuple[str, str], loops: Sequence[Loop], text: str) -> PlaneDomain:
    """Return what lies on the left of closed loops.

    Raises `SpecificationError` where they touch or cross themselves or each other, go the wrong way round, or bound
    several regions.
    """
    domain = PlaneDomain(axes, tuple(loops), text)
    _check_simple(domain)
    areas = [sum(piece.signed_area for piece in loop) for loop in loops]
    around = [index for index, area in enumerate(areas) if area > 0]
    if len(around) != 1:
        raise SpecificationError(
            "expected one loop around the region, counter-clockwise, and clockwise ones around openings in it; "
            f"found {len(around)} counter-clockwise loops"
        )
    outer = PlaneDomain(axes, (loops[around[0]],), text)
    openings = [PlaneDomain(axes, (_backwards(loop),), text) for loop in loops if loop is not outer.loops[0]]
    for index, opening in enumerate(openings):
        others = (other for other in openings if other is not opening)
        if not _within(opening, outer) or any(_within(opening, other) for other in others):
            raise SpecificationError(
                f"opening {index} of the region lies outside of it, or within another one"
            )
    return domain


def _check_simple(domain: PlaneDomain) -> None:
    """Pieces of a boundary meet where one follows another, and nowhere else."""
    slack = _TOUCHING * domain.size
    following = {piece: after for loop in domain.loops for piece, after in pairwise((*loop, loop[0]))}
    boxes = np.array([piece.bounds for piece in domain.pieces])
    low, high = boxes[:, 0] - slack, boxes[:, 1] + slack
    overlap = np.all((low[:, None] <= high) & (low <= high[:, None]), axis=2)
    for i, j in np.argwhere(np.triu(overlap, 1)):
        first, second = domain.pieces[i], domain.pieces[j]
        joints = [first.end] if following[first] is second else []
        joints += [second.end] if following[second] is first else []
        # Nearly parallel lines cross near where they are joined, up to rounding.
        margin = 1e-3 * min(first.length, second.length)
        for point in meeting_points(first, second, slack):
            if all(np.hypot(*np.subtract(joint, point)) > margin for joint in joints):
                x, y = point
                raise SpecificationError(
                    f"the boundary of the region touches or crosses itself at ({x:g}, {y:g})"
                )


def with_holes(domain: PlaneDomain, holes: Sequence[PlaneDomain], text: str) -> PlaneDomain:
    """Return a domain without the insides of others, whose parts are called `hole 0`, `hole 1` and so on.

    Raises `SpecificationError` where a hole is not inside the domain, or touches its boundary or another hole.
    """
    slack = _TOUCHING * domain.size
    for index, hole in enumerate(holes):
        if len(hole.loops) > 1:
            raise SpecificationError(f"hole {index} has a hole itself, which would be an island in it")
        if _meet(hole, domain, slack):
            raise SpecificationError(f"hole {index} touches or crosses the boundary of what it is a hole of")
        if hole.inside(np.array([domain.pieces[0].start]))[0]:
            raise SpecificationError(f"hole {index} covers all of what it is a hole of")
        if not domain.inside(np.array([hole.pieces[0].start]))[0]:
            raise SpecificationError(f"hole {index} lies outside of what it is a hole of")
        for other in range(index):
            if _meet(hole, holes[other], slack):
                raise SpecificationError(
                    f"hole {index} touches or overlaps hole {other}; write a union of both"
                )
            if _within(hole, holes[other]) or _within(holes[other], hole):
                raise SpecificationError(f"of hole {other} and hole {index}, one lies in the other")
    loops = [_hole(hole.loops[0], index) for index, hole in enumerate(holes)]
    return PlaneDomain(domain.axes, (*domain.loops, *loops), text)


def _within(first: PlaneDomain, second: PlaneDomain) -> bool:
    return bool(second.inside(np.array([first.pieces[0].start]))[0])


def _hole(loop: Loop, index: int) -> Loop:
    """Return the loop of a hole with the parts `hole 0` of a disk, `hole 0 edge 2` of a polygon or box."""
    pieces = []
    for number, piece in enumerate(loop):
        # A box has no names of its own here: `x = 1` is where the edge lies.
        own = "" if piece.part == "outer" else f" edge {number}" if "=" in piece.part else f" {piece.part}"
        pieces.append(piece.renamed(f"hole {index}{own}"))
    return _backwards(tuple(pieces))


def _backwards(loop: Loop) -> Loop:
    return tuple(piece.reversed() for piece in reversed(loop))


def _meet(first: PlaneDomain, second: PlaneDomain, slack: float) -> bool:
    return any(
        len(meeting_points(a, b, slack)) for a in first.pieces for b in second.pieces if near(a, b, slack)
    )


def union(shapes: Sequence[PlaneDomain], text: str) -> PlaneDomain:
    """Return the union of shapes, whose parts are called `shape 0 …`, `shape 1 …` and so on.

    All pieces are divided where they meet those of other shapes. Those inside of another shape, and those at which two
    shapes lie on both sides, are left out; the others are put together to loops. Raises `SpecificationError` where the
    union is not connected, or touches itself in a point.
    """
    size = max(shape.size for shape in shapes)
    slack = _TOUCHING * size
    corners: list[Vertex] = []
    kept: list[Piece] = []
    for index, shape in enumerate(shapes):
        others = [other for number, other in enumerate(shapes) if number != index]
        for piece in shape.pieces:
            named = piece.renamed(f"shape {index} {piece.part}")
            runs = _divided(named, [p for other in others for p in other.pieces], corners, slack)
            kept += [run for run in runs if not _hidden(run, shapes, index, slack)]
    loops = tuple(_loops(kept))
    around = [loop for loop in loops if sum(piece.signed_area for piece in loop) > 0]
    if len(around) != 1:
        apart = "; ".join(_shapes_of(loop) for loop in around)
        raise SpecificationError(f"the shapes of the union do not hang together: {apart} are apart")
    return PlaneDomain(shapes[0].axes, loops, text)


def _shapes_of(loop: Loop) -> str:
    return ", ".join(dict.fromkeys(" ".join(piece.part.split()[:2]) for piece in loop))


def _divided(piece: Piece, others: Sequence[Piece], corners: list[Vertex], slack: float) -> list[Piece]:
    """Return a piece divided where it meets others; corners within `slack` of known ones become these."""
    found = [meeting_points(piece, other, slack) for other in others if near(piece, other, slack)]
    points = np.vstack([np.array([piece.start, piece.end]), *found])
    shares = piece.share(points)
    ends = replace(piece, start=_known(piece.start, corners, slack), end=_known(piece.end, corners, slack))
    margin = 2 * slack / piece.length
    inner: list[float] = []
    for share in sorted(float(share) for share in shares if margin < share < 1 - margin):
        if not inner or share - inner[-1] > margin:
            inner.append(share)
    at = [(float(x), float(y)) for x, y in piece.at(np.array(inner))]
    return ends.cut(inner, [_known(point, corners, slack) for point in at])


def _known(point: Vertex, corners: list[Vertex], slack: float) -> Vertex:
    for corner in corners:
        if abs(corner[0] - point[0]) <= 2 * slack and abs(corner[1] - point[1]) <= 2 * slack:
            return corner
    corners.append(point)
    return point


def _hidden(run: Piece, shapes: Sequence[PlaneDomain], own: int, slack: float) -> bool:
    """Whether a piece of one of the shapes is no boundary of their union."""
    others = (each for each in enumerate(shapes) if each[0] != own)
    return any(_covered(run, other, number < own, slack) for number, other in others)


def _covered(run: Piece, other: PlaneDomain, earlier: bool, slack: float) -> bool:
    """Whether a piece that meets no boundary between its ends is no boundary of the union with another shape."""
    middle = run.at(np.array([0.5]))
    along = [piece for piece in other.pieces if piece.distance(middle)[0] <= 10 * slack]
    if not along:
        return bool(other.inside(middle)[0])
    normal = along[0].normals(along[0].share(middle))[0]
    same_side = float(normal @ run.normals(np.array([0.5]))[0]) > 0
    return earlier if same_side else True


def _loops(pieces: list[Piece]) -> Iterator[Loop]:
    """Yield closed loops of pieces, each of which begins where the one before ends."""
    following: dict[Vertex, Piece] = {}
    for piece in pieces:
        if piece.start in following:
            x, y = piece.start
            raise SpecificationError(f"the shapes of the union touch in the point ({x:g}, {y:g})")
        following[piece.start] = piece
    while following:
        first, piece = following.popitem()
        loop = [piece]
        while loop[-1].end != first:
            if loop[-1].end not in following:
                x, y = loop[-1].end
                raise SpecificationError(f"the shapes of the union nearly touch at ({x:g}, {y:g})")
            loop.append(following.pop(loop[-1].end))
        yield tuple(loop)


def restricted(
    domain: PlaneDomain, parts: Sequence[str], holds: Callable[[float, float], bool]
) -> PlaneDomain:
    """Return the domain with parts that end where a condition on points of the given parts begins or ceases to hold.

    What is divided keeps its name, followed by where it goes: `x = 0 from (0, 1) to (0, 0.5)`.
    """
    loops = []
    for loop in domain.loops:
        runs: list[tuple[Piece, bool | None]] = []
        for piece in loop:
            shares = _changes(piece, holds) if piece.part in parts else []
            corners = [(float(x), float(y)) for x, y in piece.at(np.array(shares))]
            for run in piece.cut(shares, corners):
                x, y = run.at(np.array([0.5]))[0]
                runs.append((run, holds(float(x), float(y)) if run.part in parts else None))
        loops.append(runs)
    found = {part: {held for runs in loops for run, held in runs if run.part == part} for part in parts}
    mixed = {part for part, held in found.items() if len(held) > 1}
    return replace(domain, loops=tuple(_located(runs, mixed) for runs in loops))


def _located(runs: Sequence[tuple[Piece, bool | None]], mixed: set[str]) -> Loop:
    """Return the pieces of a loop, those of mixed parts renamed: what follows each other and is alike is one part."""
    pieces: list[Piece] = []
    for (part, _), group in groupby(runs, key=lambda each: (each[0].part, each[1])):
        alike = [piece for piece, _ in group]
        (x, y), (v, w) = alike[0].start, alike[-1].end
        name = f"{part.partition(' from ')[0]} from ({x:.6g}, {y:.6g}) to ({v:.6g}, {w:.6g})"
        pieces += [piece.renamed(name) for piece in alike] if part in mixed else alike
    return tuple(pieces)


def _changes(piece: Piece, holds: Callable[[float, float], bool]) -> list[float]:
    """Return the shares of a piece at which a condition changes."""

    def found(share: float) -> bool:
        x, y = piece.at(np.array([share]))[0]
        return holds(float(x), float(y))

    places = np.linspace(0.0, 1.0, _SCAN + 1)
    known = [found(share) for share in np.clip(places, 1e-9, 1 - 1e-9)]
    changes = []
    for index, (before, after) in enumerate(pairwise(known)):
        if before != after:
            low, high = float(places[index]), float(places[index + 1])
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                low, high = (middle, high) if found(middle) == before else (low, middle)
            changes.append((low + high) / 2)
    return changes
