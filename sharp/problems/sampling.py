"""Points of a problem's domain, of the parts of its boundary and of its time interval, and integrals over them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from sharp.errors import SpecificationError
from sharp.problems.analysis import is_open
from sharp.problems.domain_checks import axis_parts, holding, indicator, split_where
from sharp.problems.domains import BoxDomain, PolygonDomain, RoundDomain
from sharp.problems.expressions import Node, names_in
from sharp.problems.grammar import evaluate_tree
from sharp.problems.plane_domains import Domain, PlaneDomain
from sharp.problems.problem import Problem
from sharp.problems.spec import Boundary

Array = NDArray[np.float64]

# Points along each axis in one, two and three dimensions.
_ALONG = {1: 15, 2: 7, 3: 4}
# The first time is left out: data such as erfc(x/sqrt(4*t)) have a limit there and no value.
_TIMES = (0.02, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class BoundaryQuadrature:
    """Points [n, d] on a part of the boundary, their outward normals [n, d] and weights [n] of an integral."""

    points: Array
    normals: Array
    weights: Array


def inner_points(domain: Domain) -> Array:
    """Return points [n, d] inside the domain, on a grid that touches no boundary of a box."""
    axes = [_between(low, high, _ALONG[len(domain.bounds)]) for low, high in domain.bounds.values()]
    points = np.array(list(product(*axes)))
    return points[domain.inside(points)]


def _between(low: float, high: float, count: int) -> Array:
    # Off the middle, where a quotient such as sin(x)/x may have a limit and no value.
    return low + (high - low) * (np.arange(count) + 0.47) / count


def times(problem: Problem) -> Array:
    """Return times in the interval without its beginning; none in steady problems."""
    if problem.time is None:
        return np.empty(0)
    start, end = problem.time
    return start + (end - start) * np.array(_TIMES)


def at_times(problem: Problem, points: Array, moments: Array | None = None) -> Array:
    """Return every point at every time, those of `times` by default: rows [n*m, d + 1]; the points where steady."""
    moments = times(problem) if moments is None else moments
    if not len(moments):
        return points
    return np.column_stack([np.repeat(points, len(moments), axis=0), np.tile(moments, len(points))])


def at_start(problem: Problem, points: Array) -> Array:
    """Return the points at the initial time; as they are in steady problems."""
    return at_times(problem, points, np.array(problem.time[:1] if problem.time else ()))


def named(problem: Problem, point: Array) -> dict[str, float]:
    """Return a point as values of coordinates."""
    return dict(zip(problem.coordinates, map(float, point), strict=False))


def shown(problem: Problem, point: Array) -> str:
    """Return a point as text: `x = 0.5, t = 1`."""
    return ", ".join(f"{name} = {value:.4g}" for name, value in named(problem, point).items())


def values(problem: Problem, given: Node | str | None, points: Array) -> Array:
    """Return the values [n] of an expression of the specification at points, NaN where it has none."""
    tree = problem.tree(str(given)) if isinstance(given, str | None) else given
    found = np.full(len(points), np.nan)
    for index, point in enumerate(points):
        with suppress(SpecificationError):
            found[index] = evaluate_tree(tree, {**problem.parameters, **named(problem, point)})
    return found


def largest(found: Array) -> float:
    """Return the largest magnitude among the finite values, 0 where there are none."""
    return float(np.max(np.abs(found), initial=0.0, where=np.isfinite(found)))


def periodic_axes(problem: Problem) -> set[str]:
    """Return the axes along which everything repeats."""
    return {str(condition.axis) for condition in problem.specification.boundary if condition.axis}


def open_parts(problem: Problem) -> tuple[str, ...]:
    """Return the parts of the boundary on which there are conditions: no periodic ends, and no axis of symmetry."""
    periodic, axis = periodic_axes(problem), axis_parts(problem.specification.coordinates, problem.domain)
    box = isinstance(problem.domain, BoxDomain)
    return tuple(
        part for part in problem.domain.parts if part not in axis and not (box and part[:-1] in periodic)
    )


def conditions_at(problem: Problem, part: str) -> Iterator[tuple[int, Boundary]]:
    """Yield the boundary conditions on a part, with their places in the specification.

    One that leaves the end open, as it is a zero slope of a field of first order, imposes nothing.
    """
    for index, condition in enumerate(problem.specification.boundary):
        if condition.type == "periodic" or part not in parts_at(problem, str(condition.where)):
            continue
        if not opens(problem, condition, part):
            yield index, condition


def opens(problem: Problem, condition: Boundary, part: str) -> bool:
    """Return whether a condition leaves a part of the boundary of a box open for waves."""
    box = isinstance(problem.domain, BoxDomain)
    return box and is_open(problem.equations, condition, part, problem.space)


def depends_on_fields(problem: Problem, condition: Boundary) -> bool:
    """Return whether the value or a factor of a condition depends on the fields at the boundary."""
    texts = (text for text in (condition.value, condition.a, condition.b) if text is not None)
    return any(names_in(problem.tree(str(text))) & set(problem.fields) for text in texts)


def has_open_fields(problem: Problem, part: str) -> bool:
    """Return whether a condition of the specification leaves a part of the boundary open for waves."""
    return any(
        condition.type != "periodic"
        and part in parts_at(problem, str(condition.where))
        and opens(problem, condition, part)
        for condition in problem.specification.boundary
    )


def parts_at(problem: Problem, where: str) -> tuple[str, ...]:
    """Return the parts of the boundary that the `where` of a checked condition covers."""
    name, condition = split_where(where)
    if name == "all":
        parts = open_parts(problem)
    elif not (parts := problem.domain.named(name)):
        axis = name.partition("=")[0].strip()
        parts = problem.domain.on_axis(axis, evaluate_tree(problem.place(name).right, problem.parameters))
    if condition is None:
        return parts
    tree = problem.tree(indicator(condition))

    def holds(*point: float) -> bool:
        return evaluate_tree(tree, {**problem.parameters, **named(problem, np.array(point))}) > 0.5

    return holding(problem.domain, parts, holds)


def part_name(problem: Problem, part: str) -> str:
    """Return a part as people write it: `x = 0`, `inner`, `edge 2`."""
    if isinstance(problem.domain, BoxDomain):
        return f"{part[:-1]} = {problem.bounds[part[:-1]]['-+'.index(part[-1])]:g}"
    return part


def face(domain: Domain, part: str, count: int = 9) -> BoundaryQuadrature:
    """Return points on a part of the boundary: those of Gauss' rule, `count` along each direction."""
    match domain:
        case BoxDomain():
            return _side(domain, part, count)
        case RoundDomain():
            return _circle(domain, part, count)
        case PolygonDomain():
            return _edge(domain, part, count)
        case PlaneDomain():
            return _pieces(domain, part, count)


def _pieces(domain: PlaneDomain, part: str, count: int) -> BoundaryQuadrature:
    shares, weights = _gauss(0.0, 1.0, count)
    pieces = domain.pieces_of(part)
    return BoundaryQuadrature(
        np.vstack([piece.at(shares) for piece in pieces]),
        np.vstack([piece.normals(shares) for piece in pieces]),
        np.hstack([weights * piece.length for piece in pieces]),
    )


def _side(domain: BoxDomain, part: str, count: int) -> BoundaryQuadrature:
    axis, names = part[:-1], list(domain.bounds)
    end = "-+".index(part[-1])
    points, weights = _gauss_grid([domain.bounds[name] for name in names if name != axis], count)
    column = names.index(axis)
    normals = np.zeros((len(points), len(names)))
    normals[:, column] = 2 * end - 1
    return BoundaryQuadrature(np.insert(points, column, domain.bounds[axis][end], axis=1), normals, weights)


def _circle(domain: RoundDomain, part: str, count: int) -> BoundaryQuadrature:
    radius = domain.inner if part == "inner" else domain.outer
    assert radius is not None, "a disk has no inner circle"
    directions = _directions(4 * count)
    weights = np.full(4 * count, 2 * np.pi * radius / (4 * count))
    normals = -directions if part == "inner" else directions
    return BoundaryQuadrature(domain.center + radius * directions, normals, weights)


def _directions(count: int) -> Array:
    """Return unit vectors [n, 2] all around."""
    angle = 2 * np.pi * (np.arange(count) + 0.5) / count
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _edge(domain: PolygonDomain, part: str, count: int) -> BoundaryQuadrature:
    start, end = map(np.asarray, domain.edges[int(part.removeprefix("edge "))])
    share, weights = _gauss(0.0, 1.0, count)
    along = end - start
    length = float(np.hypot(*along))
    normal = np.array([along[1], -along[0]]) / length
    return BoundaryQuadrature(start + share[:, None] * along, np.tile(normal, (count, 1)), weights * length)


def _gauss(low: float, high: float, count: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return low + (high - low) * (nodes + 1) / 2, weights * (high - low) / 2


def _gauss_grid(ends: list[tuple[float, float]], count: int) -> tuple[Array, Array]:
    """Return the points [n, d] and weights [n] of a product of Gauss' rules."""
    rules = [_gauss(low, high, count) for low, high in ends]
    points = np.array(list(product(*(nodes for nodes, _ in rules))))
    return points, np.array([np.prod(row) for row in product(*(weights for _, weights in rules))])


def integration(domain: Domain, count: int) -> tuple[Array, Array]:
    """Return points [n, d] and weights [n] of an integral over the domain, `count` along each direction.

    Boxes take products of Gauss' rule, disks and annuli polar coordinates, and polygons the triangles that their
    edges form with the first vertex, counted by their sign.
    """
    match domain:
        case BoxDomain():
            return _gauss_grid([*domain.bounds.values()], count)
        case RoundDomain():
            radii, weights = _gauss(domain.inner or 0.0, domain.outer, count)
            points = (radii[:, None, None] * _directions(4 * count)).reshape(-1, 2)
            return domain.center + points, np.repeat(weights * radii, 4 * count) * 2 * np.pi / (4 * count)
        case PolygonDomain():
            parts = [_triangle(domain.vertices[0], *edge, count) for edge in domain.edges[1:-1]]
            return np.vstack([points for points, _ in parts]), np.hstack([weights for _, weights in parts])
        case PlaneDomain():
            return domain.quadrature(count)


def _triangle(
    a: tuple[float, float], b: tuple[float, float], c: tuple[float, float], count: int
) -> tuple[Array, Array]:
    """Map the unit square to a triangle, one side of the square to the corner `a` (M. G. Duffy, 1982)."""
    share, weights = _gauss(0.0, 1.0, count)
    u, v = (part.ravel() for part in np.meshgrid(share, share, indexing="ij"))
    first, second = np.subtract(b, a), np.subtract(c, a)
    area = first[0] * second[1] - first[1] * second[0]
    points = np.asarray(a) + u[:, None] * ((1 - v)[:, None] * first + v[:, None] * second)
    return points, area * u * np.outer(weights, weights).ravel()


def meeting_parts(domain: Domain) -> Iterator[tuple[str, str, Array]]:
    """Yield pairs of parts that meet at corners, and points [n, d] where they do."""
    match domain:
        case BoxDomain(bounds):
            for (first, second), sides in product(combinations(bounds, 2), product("-+", repeat=2)):
                fixed = dict(zip((first, second), sides, strict=True))
                axes = [
                    [ends["-+".index(fixed[axis])]] if axis in fixed else _between(*ends, 3)
                    for axis, ends in bounds.items()
                ]
                yield first + sides[0], second + sides[1], np.array(list(product(*axes)))
        case PolygonDomain():
            count = len(domain.vertices)
            for index, vertex in enumerate(domain.vertices):
                yield f"edge {(index - 1) % count}", f"edge {index}", np.array([vertex])
        case PlaneDomain(_, loops):
            for loop in loops:
                for before, after in zip((loop[-1], *loop[:-1]), loop, strict=True):
                    if before.part != after.part:
                        yield before.part, after.part, np.array([after.start])
