"""From the domain as it is written to numbers: sizes, holes, unions, and the parts on which conditions hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sharp.problems.checks import ValidationContext
from sharp.problems.domains import (
    BoxDomain,
    PolygonDomain,
    RoundDomain,
    crosses_itself,
    signed_area,
)
from sharp.problems.expressions import Node
from sharp.problems.grammar import evaluate_tree, parse_tree
from sharp.problems.spec import Annulus, Box, Coordinates, Disk, Mesh, Polygon, Region, Sector, Shape, Union
from sharp.yaml_source import Path

if TYPE_CHECKING:
    from sharp.problems.plane_domains import Domain, PlaneDomain

_DOMAIN = ("domain",)


def check_domain(checked: ValidationContext) -> None:
    """The domain has a size in every direction, fits the number of space coordinates, and is put together."""
    domain = _domain(checked, _DOMAIN, checked.spec.domain)
    if domain is not None:
        _check_symmetry(checked, domain)
        checked.domain = _with_restrictions(checked, domain)


def axis_parts(coordinates: Coordinates, domain: Domain) -> tuple[str, ...]:
    """Return the parts of a boundary that lie on the axis or in the centre of a cylindrical or spherical system."""
    return domain.on_axis(coordinates.space[0], 0.0) if coordinates.radial_power else ()


def _check_symmetry(checked: ValidationContext, domain: Domain) -> None:
    """A radius is not negative, and there are no more coordinates than a symmetry leaves."""
    coordinates, path = checked.spec.coordinates, ("coordinates", "system")
    if not coordinates.radial_power:
        return
    most, radius = 3 - coordinates.radial_power, coordinates.space[0]
    if len(coordinates.space) > most:
        names = {1: "[r], as nothing depends on the angles", 2: "[r] or [r, z]"}[most]
        message = f"expected the space coordinates {names} of a {coordinates.system} system"
        checked.add_issue(path, f"{message}, found [{', '.join(coordinates.space)}]")
    elif radius in domain.bounds and domain.bounds[radius][0] < 0:
        message = f"expected {radius} of at least 0, as it is a distance in a {coordinates.system} system"
        checked.add_issue(_DOMAIN, f"{message}; found {domain.bounds[radius][0]:g}")
    if any(condition.axis == radius for condition in checked.spec.boundary):
        checked.add_issue(
            ("boundary",), f"the distance {radius} of a {coordinates.system} system is not periodic"
        )
    if checked.spec.mean:
        message = (
            f"a mean value is not supported in a {coordinates.system} system; expected system: cartesian"
        )
        checked.add_issue(("mean",), message)


def split_where(where: str) -> tuple[str, str | None]:
    """Return the part of the boundary that `where` names, and the condition on its points, if any."""
    part, joined, condition = where.partition(" and ")
    return part.strip(), condition.strip() if joined else None


def indicator(condition: str) -> str:
    """Return a condition as an expression that is 1 where it holds and 0 elsewhere."""
    return f"piecewise(1, {condition}, 0)"


def _domain(checked: ValidationContext, path: Path, written: Shape) -> Domain | None:
    if not isinstance(written, Box) and len(checked.space) != 2:
        shapes = "an interval, rectangle or box (type: box)"
        message = (
            f"expected two space coordinates for a domain of type {written.type}, found {len(checked.space)} in "
            f"coordinates.space; in one or three dimensions there is {shapes}"
        )
        checked.add_issue(path, message)
        return None
    if isinstance(written, Box) and len(checked.space) != 2 and (written.holes or path != _DOMAIN):
        message = (
            "holes are for two space coordinates; in one or three dimensions there are boxes without holes"
        )
        checked.add_issue((*path, "holes"), message)
        return None
    domain = _shape(checked, path, written)
    if not written.holes:
        return domain
    holes = [_domain(checked, (*path, "holes", i), hole) for i, hole in enumerate(written.holes)]
    if domain is None or None in holes:
        return None
    from sharp.problems.plane_domains import plane_domain, with_holes

    whole = plane_domain(domain, _text(domain))
    inner = [plane_domain(hole, _text(hole)) for hole in holes if hole is not None]
    text = f"{whole.text} without {_listed(hole.text for hole in inner)}"
    return checked.attempt((*path, "holes"), with_holes, whole, inner, text)


def _shape(checked: ValidationContext, path: Path, written: Shape) -> Domain | None:
    match written:
        case Box():
            return _box(checked, path, written)
        case Polygon():
            return _polygon(checked, path, written)
        case Sector():
            return _sector(checked, path, written)
        case Union():
            return _union(checked, path, written)
        case Region():
            return _region(checked, path, written)
        case Mesh():
            raise AssertionError("a specification that has been read holds regions for mesh files")
        case _:
            return _round(checked, path, written)


def _box(checked: ValidationContext, path: Path, written: Box) -> Domain | None:
    checked.same_keys(
        (*path, "bounds"),
        written.bounds,
        checked.space,
        "a space coordinate",
        ("form", "missing-domain"),
        "From where to where does {} run?",
    )
    found = {name: checked.interval((*path, "bounds", name), ends) for name, ends in written.bounds.items()}
    known = {name: pair for name in checked.space if (pair := found.get(name)) is not None}
    if path != _DOMAIN and len(known) < len(checked.space):
        return None
    return BoxDomain(known)


def _round(checked: ValidationContext, path: Path, written: Disk | Annulus) -> Domain | None:
    center = _point(checked, (*path, "center"), written.center)
    if isinstance(written, Disk):
        inner, outer = None, _positive(checked, (*path, "radius"), written.radius)
    else:
        inner, outer = (_positive(checked, (*path, key), getattr(written, key)) for key in ("inner", "outer"))
        if inner is not None and outer is not None and inner >= outer:
            checked.add_issue(
                path, f"expected an inner radius below the outer one, found {inner:g} and {outer:g}"
            )
            return None
    if center is None or outer is None or (inner is None and isinstance(written, Annulus)):
        return None
    return RoundDomain((checked.space[0], checked.space[1]), center, inner, outer)


def _sector(checked: ValidationContext, path: Path, written: Sector) -> Domain | None:
    center = _point(checked, (*path, "center"), written.center)
    radius = _positive(checked, (*path, "radius"), written.radius)
    angles = checked.interval((*path, "angles"), written.angles)
    if center is None or radius is None or angles is None:
        return None
    if angles[1] - angles[0] >= 2 * math.pi:
        message = f"expected angles in radians, less than 2*pi apart, found {angles[0]:g} and {angles[1]:g}"
        checked.add_issue((*path, "angles"), message)
        return None
    text = (
        f"the sector of radius {radius:g} about ({center[0]:g}, {center[1]:g}) from the angle {angles[0]:g} "
        f"to {angles[1]:g}"
    )
    from sharp.problems.plane_domains import sector

    return sector((checked.space[0], checked.space[1]), center, radius, angles, text)


def _polygon(checked: ValidationContext, path: Path, written: Polygon) -> Domain | None:
    path = (*path, "vertices")
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
    return PolygonDomain((checked.space[0], checked.space[1]), vertices)


def _union(checked: ValidationContext, path: Path, written: Union) -> Domain | None:
    from sharp.problems.plane_domains import plane_domain, union

    found = [_domain(checked, (*path, "of", index), shape) for index, shape in enumerate(written.of)]
    shapes = [plane_domain(shape, _text(shape)) for shape in found if shape is not None]
    if len(shapes) < len(found):
        return None
    text = f"the union of {_listed(shape.text for shape in shapes)}"
    return checked.attempt((*path, "of"), union, shapes, text)


def _region(checked: ValidationContext, path: Path, written: Region) -> PlaneDomain | None:
    from sharp.problems.curves import Piece, arc
    from sharp.problems.plane_domains import region

    path, loops = (*path, "loops"), []
    for number, loop in enumerate(written.loops):
        places = [(*path, number, index) for index in range(len(loop))]
        starts = [
            _point(checked, (*at, "start"), piece.start) for at, piece in zip(places, loop, strict=True)
        ]
        pieces = []
        for index, (at, piece) in enumerate(zip(places, loop, strict=True)):
            start, end = starts[index], starts[(index + 1) % len(starts)]
            through = _point(checked, (*at, "through"), piece.through) if piece.through else None
            if start is None or end is None or (piece.through and through is None):
                return None
            if start == end:
                checked.add_issue((*at, "start"), "expected another point than that of the next piece")
                return None
            try:
                drawn = arc(start, through, end, piece.part) if through else Piece(start, end, piece.part)
            except ValueError:
                message = "expected a point off the line between the ends; a segment has no `through`"
                checked.add_issue((*at, "through"), message)
                return None
            pieces.append(drawn)
        loops.append(tuple(pieces))
    parts = dict.fromkeys(piece.part for loop in loops for piece in loop)
    named = f"the part {next(iter(parts))}" if len(parts) == 1 else f"the parts {_listed(iter(parts))}"
    x, y = loops[0][0].start
    text = f"the region at ({x:g}, {y:g}) whose boundary is {named}"
    axes = checked.space[0], checked.space[1]
    return checked.attempt(path, region, axes, loops, text)


def _point(checked: ValidationContext, path: Path, pair: tuple[str, str]) -> tuple[float, float] | None:
    x, y = (checked.number((*path, index), text) for index, text in enumerate(pair))
    return None if x is None or y is None else (x, y)


def _positive(checked: ValidationContext, path: Path, text: str) -> float | None:
    value = checked.number(path, text)
    if value is not None and value <= 0:
        checked.add_issue(path, f"expected a length above 0, found {value:g}")
        return None
    return value


def _listed(texts: Iterator[str]) -> str:
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def _text(domain: Domain) -> str:
    """Return a shape in words."""
    match domain:
        case BoxDomain(bounds):
            sides = " and ".join(f"{axis} from {low:g} to {high:g}" for axis, (low, high) in bounds.items())
            return f"the rectangle {sides}"
        case RoundDomain(_, (x, y), None, outer):
            return f"the disk of radius {outer:g} about ({x:g}, {y:g})"
        case RoundDomain(_, (x, y), inner, outer):
            return f"the ring of radii {inner:g} and {outer:g} about ({x:g}, {y:g})"
        case PolygonDomain(_, vertices):
            return f"the polygon with the vertices {', '.join(f'({x:g}, {y:g})' for x, y in vertices)}"
        case plane:
            return plane.text


def _with_restrictions(checked: ValidationContext, domain: Domain) -> Domain:
    """Return the domain with parts that end where conditions on them do: `x = 0 and y < 0.5`."""
    for index, written in enumerate(checked.spec.boundary):
        part, condition = split_where(str(written.where))
        if condition is None:
            continue
        path = ("boundary", index, "where")
        if len(checked.space) != 2 or any(each.axis for each in checked.spec.boundary):
            message = "parts of an edge are for plane domains without periodic axes"
            checked.add_issue(path, f"'{written.where}': {message}; expected the name of a whole part")
            return domain
        tree = checked.attempt(path, parse_tree, indicator(condition), checked.scope(checked.space))
        if tree is not None:
            from sharp.problems.plane_domains import plane_domain, restricted

            whole = plane_domain(domain, _text(domain))
            parts = _parts(checked, path, whole, part)
            domain = checked.attempt(path, restricted, whole, parts, point_test(checked, tree)) or domain
    return domain


def _parts(checked: ValidationContext, path: Path, domain: PlaneDomain, part: str) -> tuple[str, ...]:
    """Return the parts that `where` names before its condition; none where it is wrong, which is told elsewhere."""
    axis, _, place = part.partition("=")
    if part == "all":
        return domain.parts
    if named := domain.named(part):
        return named
    value = checked.number(path, place.strip()) if axis.strip() in checked.space and place else None
    return () if value is None else domain.on_axis(axis.strip(), value)


def point_test(checked: ValidationContext, tree: Node) -> Callable[[float, float], bool]:
    """Return whether a condition, as an indicator, holds at a point of the plane."""
    x, y = checked.space

    def holds(first: float, second: float) -> bool:
        return evaluate_tree(tree, {**checked.parameters, x: first, y: second}) > 0.5

    return holds


def holding(domain: Domain, parts: tuple[str, ...], holds: Callable[[float, float], bool]) -> tuple[str, ...]:
    """Return those parts of a divided domain on which a condition holds."""
    import numpy as np

    from sharp.problems.plane_domains import plane_domain

    found = []
    for part in parts:
        middles = [piece.at(np.array([0.5]))[0] for piece in plane_domain(domain).pieces_of(part)]
        if all(holds(float(x), float(y)) for x, y in middles):
            found.append(part)
    return tuple(found)
