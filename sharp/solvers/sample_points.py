"""Where solutions are compared and checked: fixed quasi-random points of a domain and of its boundary, and moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.problems import (
    BoxDomain,
    Domain,
    PlaneDomain,
    PolygonDomain,
    Problem,
    RoundDomain,
    has_accepted_jump,
)
from sharp.solvers.discontinuities import interfaces, jump_lines
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.grid import Array

# Points that are evaluated at once: a dense interpolation matrix from many nodes stays small.
_CHUNK = 2048
# Where initial and boundary values may differ in a corner, no grid resolves what follows at once: solutions are
# compared after this share of the time.
AFTER_A_JUMP = 0.02


@dataclass(frozen=True)
class BoundarySamples:
    """Points [m, d] of one part of the boundary, and the outward unit normals there [m, d]."""

    points: Array
    normals: Array


def recurrence(count: int, dimension: int, start: int = 0) -> Array:
    """Return terms [count, dimension] of an additive recurrence that fills the open unit cube evenly.

    The generators are powers of the root of g**(d+1) = g + 1 (M. Roberts' R sequence, a Kronecker sequence;
    L. Kuipers and H. Niederreiter, Uniform Distribution of Sequences, 1974, ch. 1).
    """
    root = 1.0
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (dimension + 1))
    steps = root ** -np.arange(1.0, dimension + 1)
    shares = (0.5 + np.arange(start + 1, start + count + 1)[:, None] * steps) % 1.0
    return np.asarray(np.clip(shares, 1e-9, 1 - 1e-9))


def interior_points(problem: Problem, count: int, start: int = 0) -> Array:
    """Return points [count, d] inside the domain; another `start` (in points of the box around it) gives others."""
    return _inside(problem, [problem.bounds[axis] for axis in problem.space], count, start)


def space_time_points(problem: Problem, count: int) -> Array:
    """Return points [count, d] in the domain, or [count, d + 1] in the domain and the time interval."""
    times = [problem.time] if problem.time is not None else []
    return _inside(problem, [*(problem.bounds[axis] for axis in problem.space), *times], count, 0)


def _inside(problem: Problem, box: Sequence[tuple[float, float]], count: int, start: int) -> Array:
    low, high = np.transpose(box)
    found = np.empty((0, len(low)))
    while len(found) < count:
        candidates = low + (high - low) * recurrence(count, len(low), start)
        inside = problem.domain.inside(candidates[:, : len(problem.space)])
        found, start = np.concatenate([found, candidates[inside]]), start + count
    return found[:count]


def boundary(domain: Domain, part: str, count: int) -> BoundarySamples:
    """Return points of a part of the boundary and the normals there; an end of an interval is one point."""
    match domain:
        case BoxDomain():
            return _face(domain, part, count)
        case RoundDomain():
            return _circle(domain, part, count)
        case PolygonDomain():
            return _segment(domain, part, count)
        case PlaneDomain():
            return _pieces(domain, part, count)


def _face(domain: BoxDomain, part: str, count: int) -> BoundarySamples:
    axis, upper = list(domain.bounds).index(part[:-1]), part[-1] == "+"
    low, high = np.transpose(list(domain.bounds.values()))
    others = len(low) - 1
    points = np.empty((count if others else 1, len(low)))
    along = [index for index in range(len(low)) if index != axis]
    if others:
        points[:, along] = low[along] + (high - low)[along] * recurrence(count, others)
    points[:, axis] = (high if upper else low)[axis]
    normals = np.zeros_like(points)
    normals[:, axis] = 1.0 if upper else -1.0
    return BoundarySamples(points, normals)


def _circle(domain: RoundDomain, part: str, count: int) -> BoundarySamples:
    radius, sign = (domain.outer, 1.0) if part == "outer" else (float(domain.inner or 0.0), -1.0)
    angles = 2 * np.pi * recurrence(count, 1)[:, 0]
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return BoundarySamples(domain.center + radius * directions, sign * directions)


def _segment(domain: PolygonDomain, part: str, count: int) -> BoundarySamples:
    start, end = np.array(domain.edges[int(part.split()[1])])
    along = end - start
    normal = np.array([along[1], -along[0]]) / np.hypot(*along)
    return BoundarySamples(start + recurrence(count, 1) * along, np.tile(normal, (count, 1)))


def _pieces(domain: PlaneDomain, part: str, count: int) -> BoundarySamples:
    """Spread the points over the pieces of a part by their lengths, one on each at least."""
    pieces = domain.pieces_of(part)
    whole = sum(piece.length for piece in pieces)
    shares = [recurrence(max(1, round(count * piece.length / whole)), 1)[:, 0] for piece in pieces]
    return BoundarySamples(
        np.vstack([piece.at(share) for piece, share in zip(pieces, shares, strict=True)]),
        np.vstack([piece.normals(share) for piece, share in zip(pieces, shares, strict=True)]),
    )


def sample_times(problem: Problem, shares: Any) -> Array:
    """Return times [k] at shares of the time interval, or one of no meaning for a steady problem."""
    if problem.time is None:
        return np.zeros(1)
    start, end = problem.time
    return start + (end - start) * np.asarray(shares, dtype=float)


def lengths(problem: Problem) -> Array:
    """Return the extent [d] of the domain along each axis."""
    return np.array([problem.bounds[axis][1] - problem.bounds[axis][0] for axis in problem.space])


def fits(problem: Problem, stencils: Array) -> NDArray[np.bool_]:
    """Return which stencils [s, m, d] of m points lie in the domain, on one side of everything that jumps there."""
    inside = problem.domain.inside(stencils.reshape(-1, stencils.shape[-1])).reshape(len(stencils), -1)
    pieces = np.searchsorted(interfaces(problem), stencils[..., 0])
    fitting = inside.all(axis=0) & (np.ptp(pieces, axis=0) == 0)
    for line in jump_lines(problem):
        beyond = stencils @ line.normal > line.offset
        fitting &= beyond.all(axis=0) | ~beyond.any(axis=0)
    return np.asarray(fitting)


def compared_after(problem: Problem) -> float:
    """Return the share of the time interval after which solutions are compared: none, unless a jump is accepted."""
    return AFTER_A_JUMP if has_accepted_jump(problem) else 0.0


def evaluate(solution: DiscreteSolution, points: Array, times: Array) -> Array:
    """Return the values [fields, k, m] of a solution at any number of points."""
    chunks = (points[first : first + _CHUNK] for first in range(0, len(points), _CHUNK))
    return np.concatenate([solution.evaluate(chunk, times) for chunk in chunks], axis=-1)
