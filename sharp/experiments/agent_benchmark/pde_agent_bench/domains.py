"""The domains of pde-agent-bench as domains of a specification: boxes, disks, rings and polygons.

Default measures, where tips and teeth begin, and the chords of a sector are those of the meshes on which the benchmark
computes its references.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field

from sharp.experiments.agent_benchmark.pde_agent_bench.cases import (
    CaseModel,
    Shape,
    UnsupportedCase,
    measures,
)
from sharp.problems.domains import signed_area

Pair = tuple[float, float]
Bounds = tuple[float, float, float, float]
Length = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=2, le=50)]

CHORDS = 14
_DIGITS = 15


class _Disk(CaseModel):
    center: Pair = (0.5, 0.5)
    radius: float = 0.5


class _Ring(CaseModel):
    center: Pair = (0.0, 0.0)
    inner_r: float = 0.5
    outer_r: float = 1.0


class _Corners(CaseModel):
    vertices: tuple[Pair, ...] | None = None


class _Star(CaseModel):
    center: Pair = (0.0, 0.0)
    points: Count = 5
    inner_r: Length = 0.3
    outer_r: Length = 0.7


class _Gear(CaseModel):
    center: Pair = (0.0, 0.0)
    teeth: Count = 8
    base_r: Length = 0.5
    tooth_h: Length = 0.2


class _Sector(CaseModel):
    center: Pair = (0.0, 0.0)
    radius: Length = 1.0
    angle: Annotated[float, Field(gt=0, lt=360)] = 90.0


class _Junction(CaseModel):
    horizontal_rect: Bounds = (0.0, 1.0, 0.4, 0.6)
    vertical_rect: Bounds = (0.4, 0.6, 0.0, 0.5)


class _Rectangle(CaseModel):
    bounds: Bounds | None = None
    extents: Bounds = (0.0, 1.0, 0.0, 1.0)


def domain_of(shape: Shape) -> dict[str, Any]:
    """Return the domain of a case as a specification has it; raises `UnsupportedCase` for shapes that it cannot say."""
    if shape.type not in _SHAPES:
        raise UnsupportedCase(f"domain {shape.type}", "the format has no such shape")
    return _SHAPES[shape.type](shape)


def coordinates_of(shape: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the space coordinates of a domain of `domain_of`."""
    return tuple(shape["bounds"]) if shape["type"] == "box" else ("x", "y")


def _box(*ends: float) -> dict[str, Any]:
    pairs = [list(pair) for pair in zip(ends[::2], ends[1::2], strict=True)]
    return {"type": "box", "bounds": dict(zip("xyz", pairs, strict=False))}


def _rectangle(shape: Shape) -> dict[str, Any]:
    found = measures(_Rectangle, shape)
    return _box(*(found.bounds or found.extents))


def _disk(shape: Shape) -> dict[str, Any]:
    found = measures(_Disk, shape)
    return {"type": "disk", "center": list(found.center), "radius": found.radius}


def _ring(shape: Shape) -> dict[str, Any]:
    found = measures(_Ring, shape)
    return {
        "type": "annulus",
        "center": list(found.center),
        "inner": found.inner_r,
        "outer": found.outer_r,
    }


def _polygon(*vertices: Pair) -> dict[str, Any]:
    """Return a polygon with its vertices counter-clockwise, whatever their order."""
    ordered = vertices if signed_area(vertices) >= 0 else vertices[::-1]
    return {"type": "polygon", "vertices": [[round(x, _DIGITS), round(y, _DIGITS)] for x, y in ordered]}


def _corner(shape: Shape) -> dict[str, Any]:
    """An L: its vertices, or a box whose upper right corner is cut out."""
    vertices = measures(_Corners, shape).vertices
    if vertices is not None:
        return _polygon(*vertices)
    left, right, bottom, top = shape.outer_bbox or (0.0, 1.0, 0.0, 1.0)
    x, far, y, high = shape.cutout_bbox or (0.5, 1.0, 0.5, 1.0)
    if (far, high) != (right, top) or not (left < x < right and bottom < y < top):
        raise UnsupportedCase("domain l_shape", "only the upper right corner can be cut out of a box")
    return _polygon((left, bottom), (right, bottom), (right, y), (x, y), (x, top), (left, top))


def _star(shape: Shape) -> dict[str, Any]:
    """A star, one of its tips downwards."""
    found = measures(_Star, shape)
    return _zigzag(found.center, found.points, (found.outer_r, found.inner_r), -math.pi / 2)


def _gear(shape: Shape) -> dict[str, Any]:
    """A gear, one of its teeth to the right."""
    found = measures(_Gear, shape)
    return _zigzag(found.center, found.teeth, (found.base_r + found.tooth_h, found.base_r), 0.0)


def _zigzag(center: Pair, count: int, radii: Pair, start: float) -> dict[str, Any]:
    angles = [start + index * math.pi / count for index in range(2 * count)]
    return _polygon(*(_around(center, radii[index % 2], angle) for index, angle in enumerate(angles)))


def _sector(shape: Shape) -> dict[str, Any]:
    """A sector of a disk, its arc replaced by chords."""
    found = measures(_Sector, shape)
    angles = [math.radians(found.angle) * index / CHORDS for index in range(CHORDS + 1)]
    return _polygon(found.center, *(_around(found.center, found.radius, angle) for angle in angles))


def _around(center: Pair, radius: float, angle: float) -> Pair:
    return center[0] + radius * math.cos(angle), center[1] + radius * math.sin(angle)


def _junction(shape: Shape) -> dict[str, Any]:
    """A T: a bar, and a stem that reaches it from below."""
    found = measures(_Junction, shape)
    left, right, bottom, top = found.horizontal_rect
    x0, x1, foot, end = found.vertical_rect
    if not (left < x0 < x1 < right and foot < bottom <= end <= top):
        raise UnsupportedCase(
            "domain t_junction", "expected a stem that reaches the bar from below, between its ends"
        )
    stem = ((x0, bottom), (x0, foot), (x1, foot), (x1, bottom))
    return _polygon((left, bottom), *stem, (right, bottom), (right, top), (left, top))


_SHAPES: Mapping[str, Callable[[Shape], dict[str, Any]]] = {
    "unit_square": lambda _: _box(0, 1, 0, 1),
    "unit_cube": lambda _: _box(0, 1, 0, 1, 0, 1),
    "periodic_square": _rectangle,
    "circle": _disk,
    "annulus": _ring,
    "l_shape": _corner,
    "t_junction": _junction,
    "star": _star,
    "star_shape": _star,
    "gear": _gear,
    "sector": _sector,
}
