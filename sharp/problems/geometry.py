"""Reading the domain of a specification: numbers for its ends, radii and vertices, and what is wrong with them."""

from __future__ import annotations

from sharp.problems.checks import ValidationContext
from sharp.problems.domains import (
    BoxDomain,
    Domain,
    PolygonDomain,
    RoundDomain,
    crosses_itself,
    signed_area,
)
from sharp.problems.spec import Annulus, Box, Disk, Polygon
from sharp.yaml_source import Path

_PATH = ("domain",)


def check_domain(checked: ValidationContext) -> None:
    """The domain has a size in every direction, and fits the number of space coordinates."""
    written = checked.spec.domain
    if isinstance(written, Box):
        checked.domain = _box(checked, written)
    elif len(checked.space) != 2:
        found = f"{len(checked.space)} in coordinates.space"
        checked.add_issue(
            _PATH, f"expected two space coordinates for a domain of type {written.type}, found {found}"
        )
    elif isinstance(written, Polygon):
        checked.domain = _polygon(checked, written)
    else:
        checked.domain = _round(checked, written)


def _box(checked: ValidationContext, written: Box) -> Domain | None:
    checked.same_keys(
        (*_PATH, "bounds"),
        written.bounds,
        checked.space,
        "a space coordinate",
        ("form", "missing-domain"),
        "From where to where does {} run?",
    )
    found = {name: checked.interval((*_PATH, "bounds", name), ends) for name, ends in written.bounds.items()}
    ends = {name: found[name] for name in checked.space if found.get(name)}
    return BoxDomain({name: pair for name, pair in ends.items() if pair is not None})


def _round(checked: ValidationContext, written: Disk | Annulus) -> Domain | None:
    center = _point(checked, (*_PATH, "center"), written.center)
    if isinstance(written, Disk):
        inner, outer = None, _positive(checked, "radius", written.radius)
    else:
        inner, outer = (_positive(checked, key, getattr(written, key)) for key in ("inner", "outer"))
        if inner is not None and outer is not None and inner >= outer:
            checked.add_issue(
                _PATH, f"expected an inner radius below the outer one, found {inner:g} and {outer:g}"
            )
            return None
    if center is None or outer is None or (inner is None and isinstance(written, Annulus)):
        return None
    return RoundDomain(_axes(checked), center, inner, outer)


def _polygon(checked: ValidationContext, written: Polygon) -> Domain | None:
    path = (*_PATH, "vertices")
    found = [_point(checked, (*path, index), pair) for index, pair in enumerate(written.vertices)]
    vertices = tuple(point for point in found if point is not None)
    if len(vertices) < len(found):
        return None
    if len(set(vertices)) < len(vertices) or crosses_itself(vertices):
        checked.add_issue(path, "expected different vertices and edges that do not cross")
        return None
    if signed_area(vertices) <= 0:
        checked.add_issue(
            path, "expected the vertices in counter-clockwise order, found clockwise order or no area"
        )
        return None
    return PolygonDomain(_axes(checked), vertices)


def _axes(checked: ValidationContext) -> tuple[str, str]:
    return checked.space[0], checked.space[1]


def _point(checked: ValidationContext, path: Path, pair: tuple[str, str]) -> tuple[float, float] | None:
    x, y = (checked.number((*path, index), text) for index, text in enumerate(pair))
    return None if x is None or y is None else (x, y)


def _positive(checked: ValidationContext, key: str, text: str) -> float | None:
    value = checked.number((*_PATH, key), text)
    if value is not None and value <= 0:
        checked.add_issue((*_PATH, key), f"expected a length above 0, found {value:g}")
        return None
    return value
