"""The case files of pde-agent-bench (arXiv 2605.09636): JSON lines, what of a line a problem is made of, and domains.

Models are lenient where specifications are strict: keys that say how the benchmark's own solvers go about a case (mesh,
elements, linear solver) are none of the problem, and are passed over. Default measures of domains, where tips and teeth
begin, and the chords of a sector are those of the meshes on which the benchmark computes its references.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, validate_call

from sharp.error_messages import clip
from sharp.errors import DataError
from sharp.problems import signed_area

NO_CASE = "not of the form of a case"
CHORDS = 14
_DIGITS = 15
Pair = tuple[float, float]
Bounds = tuple[float, float, float, float]
Length = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=2, le=2000)]
Teeth = Annotated[int, Field(ge=2, le=50)]
Angle = Annotated[float, Field(gt=0, lt=360)]
_FORM = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


@dataclass
class UnsupportedCase(Exception):
    """Why a case cannot be imported: a reason that cases share, and what it is in this one."""

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else self.reason


class CaseModel(BaseModel):
    """A mapping of a case, whose unknown keys are passed over."""

    model_config = _FORM


class Coefficient(CaseModel):
    """A coefficient: `constant` with a `value`, or `expr` with an expression of the space coordinates."""

    type: str = "constant"
    value: float | None = None
    expr: str | None = None


class Times(CaseModel):
    """The time interval of a transient case."""

    t0: float = 0.0
    t_end: float


class CaseEquation(CaseModel):
    """The equation: its family (`type`), parameters and coefficients, and either a solution or the data."""

    type: str
    description: str = ""
    pde_params: dict[str, Any] = {}
    coefficients: dict[str, Coefficient] = {}
    manufactured_solution: dict[str, Any] = {}
    source_term: Any = None
    initial_condition: Any = None
    initial_velocity: Any = None
    time: Times | None = None
    t_final: float = 0.1


class Shape(CaseModel):
    """The domain: the name of a shape and its measures; L-shapes have been given by two boxes as well."""

    type: str
    geometry_params: dict[str, Any] = {}
    outer_bbox: Bounds | None = None
    cutout_bbox: Bounds | None = None


class CaseGrid(CaseModel):
    """The grid on which solutions are compared: numbers of points along the axes, and the box that they fill.

    `bbox` holds the two ends of each axis in turn; without it the box is the smallest around the domain.
    """

    nx: Count
    ny: Count
    nz: Count | None = None
    bbox: tuple[float, ...] = ()


class CaseOutput(CaseModel):
    """What of the solution is wanted, and where: `field` names a scalar, or the magnitude of a vector."""

    grid: CaseGrid
    field: str = "scalar"


class Oracle(CaseModel):
    """The problem, as the benchmark's own solvers get it."""

    pde: CaseEquation
    domain: Shape
    bc: dict[str, Any] = {}
    output: CaseOutput


class CaseLimits(CaseModel):
    """How long a solver may take, in seconds."""

    timeout_sec: float = 300.0


class BenchCase(CaseModel):
    """One case of the benchmark."""

    id: str
    oracle_config: Oracle
    evaluation_config: CaseLimits = CaseLimits()


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line that is not empty; raises `DataError` where the file cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text, at byte {error.start}") from None
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def read_case(line: str) -> BenchCase:
    """Read the case of a line; raises `UnsupportedCase`."""
    try:
        return BenchCase.model_validate(json.loads(line))
    except ValidationError as error:
        raise UnsupportedCase(NO_CASE, _first(error)) from None
    except (ValueError, RecursionError):
        raise UnsupportedCase(NO_CASE, "the line is no JSON") from None


def _first(error: ValidationError) -> str:
    fault = error.errors()[0]
    place = ".".join(map(str, fault["loc"])) or "the line"
    return f"{place}: {fault['msg']}, found {clip(repr(fault['input']), 60)}"


def domain_of(shape: Shape) -> dict[str, Any]:
    """Return the domain of a case as a specification has it; raises `UnsupportedCase` for shapes that it cannot say."""
    if shape.type not in _SHAPES:
        raise UnsupportedCase(f"domain {shape.type}", "the format has no such shape")
    build = _SHAPES[shape.type]
    boxes = shape.model_dump(include={"outer_bbox", "cutout_bbox"}, exclude_none=True)
    given = {**shape.geometry_params, **boxes}
    known = {name: given[name] for name in inspect.signature(build).parameters if name in given}
    try:
        return validate_call(config=_FORM)(build)(**known)
    except ValidationError as error:
        raise UnsupportedCase(NO_CASE, f"domain.geometry_params.{_first(error)}") from None


def coordinates_of(shape: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the space coordinates of a domain of `domain_of`."""
    return tuple(shape["bounds"]) if shape["type"] == "box" else ("x", "y")


def _box(*ends: float) -> dict[str, Any]:
    pairs = [list(pair) for pair in zip(ends[::2], ends[1::2], strict=True)]
    return {"type": "box", "bounds": dict(zip("xyz", pairs, strict=False))}


def _rectangle(bounds: Bounds | None = None, extents: Bounds = (0.0, 1.0, 0.0, 1.0)) -> dict[str, Any]:
    return _box(*(bounds or extents))


def _disk(center: Pair = (0.5, 0.5), radius: float = 0.5) -> dict[str, Any]:
    return {"type": "disk", "center": list(center), "radius": radius}


def _ring(center: Pair = (0.0, 0.0), inner_r: float = 0.5, outer_r: float = 1.0) -> dict[str, Any]:
    return {"type": "annulus", "center": list(center), "inner": inner_r, "outer": outer_r}


def _polygon(*vertices: Pair) -> dict[str, Any]:
    """Return a polygon with its vertices counter-clockwise, whatever their order."""
    ordered = vertices if signed_area(vertices) >= 0 else vertices[::-1]
    return {"type": "polygon", "vertices": [[round(x, _DIGITS), round(y, _DIGITS)] for x, y in ordered]}


def _corner(
    vertices: tuple[Pair, ...] | None = None,
    outer_bbox: Bounds = (0.0, 1.0, 0.0, 1.0),
    cutout_bbox: Bounds = (0.5, 1.0, 0.5, 1.0),
) -> dict[str, Any]:
    """An L: its vertices, or a box whose upper right corner is cut out."""
    if vertices is not None:
        return _polygon(*vertices)
    left, right, bottom, top = outer_bbox
    x, far, y, high = cutout_bbox
    if (far, high) != (right, top) or not (left < x < right and bottom < y < top):
        raise UnsupportedCase("domain l_shape", "only the upper right corner can be cut out of a box")
    return _polygon((left, bottom), (right, bottom), (right, y), (x, y), (x, top), (left, top))


def _star(
    center: Pair = (0.0, 0.0), points: Teeth = 5, inner_r: Length = 0.3, outer_r: Length = 0.7
) -> dict[str, Any]:
    """A star, one of its tips downwards."""
    return _zigzag(center, points, (outer_r, inner_r), -math.pi / 2)


def _gear(
    center: Pair = (0.0, 0.0), teeth: Teeth = 8, base_r: Length = 0.5, tooth_h: Length = 0.2
) -> dict[str, Any]:
    """A gear, one of its teeth to the right."""
    return _zigzag(center, teeth, (base_r + tooth_h, base_r), 0.0)


def _zigzag(center: Pair, count: int, radii: Pair, start: float) -> dict[str, Any]:
    angles = [start + index * math.pi / count for index in range(2 * count)]
    return _polygon(*(_around(center, radii[index % 2], angle) for index, angle in enumerate(angles)))


def _sector(center: Pair = (0.0, 0.0), radius: Length = 1.0, angle: Angle = 90.0) -> dict[str, Any]:
    """A sector of a disk, its arc replaced by chords."""
    angles = [math.radians(angle) * index / CHORDS for index in range(CHORDS + 1)]
    return _polygon(center, *(_around(center, radius, each) for each in angles))


def _around(center: Pair, radius: float, angle: float) -> Pair:
    return center[0] + radius * math.cos(angle), center[1] + radius * math.sin(angle)


def _junction(
    horizontal_rect: Bounds = (0.0, 1.0, 0.4, 0.6), vertical_rect: Bounds = (0.4, 0.6, 0.0, 0.5)
) -> dict[str, Any]:
    """A T: a bar, and a stem that reaches it from below."""
    left, right, bottom, top = horizontal_rect
    x0, x1, foot, end = vertical_rect
    if not (left < x0 < x1 < right and foot < bottom <= end <= top):
        raise UnsupportedCase(
            "domain t_junction", "expected a stem that reaches the bar from below, between its ends"
        )
    stem = ((x0, bottom), (x0, foot), (x1, foot), (x1, bottom))
    return _polygon((left, bottom), *stem, (right, bottom), (right, top), (left, top))


class Hole(CaseModel):
    """A hole in a domain: a circle by centre and radius, a rectangle by its box, or a polygon by its vertices."""

    model_config = ConfigDict(**_FORM, populate_by_name=True)

    center: Pair | None = Field(None, alias="c")
    radius: Length | None = Field(None, alias="r")
    bbox: Bounds | None = None
    vertices: tuple[Pair, ...] = ()

    def domain(self) -> dict[str, Any]:
        """Return the hole as a domain; raises `UnsupportedCase`."""
        if self.center is not None and self.radius is not None:
            return _disk(self.center, self.radius)
        if self.bbox is not None:
            return _box(*self.bbox)
        if len(self.vertices) > 2:
            return _polygon(*self.vertices)
        raise UnsupportedCase(NO_CASE, "a hole: expected a circle, a box or vertices")


class Bridge(CaseModel):
    """The bar of a dumbbell."""

    x_min: float
    x_max: float
    y_min: float
    y_max: float


def _with_holes(holes: tuple[Hole, ...], outer: Bounds = (0.0, 1.0, 0.0, 1.0)) -> dict[str, Any]:
    return {**_box(*outer), "holes": [hole.domain() for hole in holes]}


def _with_hole(inner_hole: Hole, outer: Bounds = (0.0, 1.0, 0.0, 1.0)) -> dict[str, Any]:
    return _with_holes((inner_hole,), outer)


def _eccentric(outer_circle: Hole, inner_circle: Hole) -> dict[str, Any]:
    return {**outer_circle.domain(), "holes": [inner_circle.domain()]}


def _dumbbell(
    left_circle: Hole | None = None,
    right_circle: Hole | None = None,
    bridge: Bridge | None = None,
    left_center: Pair = (0.2, 0.5),
    right_center: Pair = (0.8, 0.5),
    radius: Length = 0.2,
    bar_width: Length = 0.1,
) -> dict[str, Any]:
    """Two disks and a bar, given as such, or by their centres, a radius and the width of a bar between these."""
    left = left_circle.domain() if left_circle else _disk(left_center, radius)
    right = right_circle.domain() if right_circle else _disk(right_center, radius)
    middle = left["center"][1]
    bar = bridge or Bridge(
        x_min=left["center"][0],
        x_max=right["center"][0],
        y_min=middle - bar_width / 2,
        y_max=middle + bar_width / 2,
    )
    ends = (bar.x_min, bar.x_max, bar.y_min, bar.y_max)
    return {"type": "union", "of": [left, right, _box(*(round(end, _DIGITS) for end in ends))]}


_SHAPES: Mapping[str, Callable[..., dict[str, Any]]] = {
    "unit_square": lambda: _box(0, 1, 0, 1),
    "unit_cube": lambda: _box(0, 1, 0, 1, 0, 1),
    "periodic_square": _rectangle,
    "circle": _disk,
    "annulus": _ring,
    "l_shape": _corner,
    "t_junction": _junction,
    "star": _star,
    "star_shape": _star,
    "gear": _gear,
    "sector": _sector,
    "square_with_hole": _with_hole,
    "multi_hole": _with_holes,
    "eccentric_annulus": _eccentric,
    "dumbbell": _dumbbell,
}
