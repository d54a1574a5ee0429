"""How far a solution is from its initial state, its boundary conditions and its mean, by its values alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sharp.problems.domains import BoxDomain, PolygonDomain, RoundDomain
from sharp.problems.problem import Problem
from sharp.problems.spec import Boundary
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.fd_weights import one_sided_stencil
from sharp.solvers.functions import compile_function
from sharp.solvers.sample_points import (
    BoundarySamples,
    boundary,
    evaluate,
    fits,
    interior_points,
    lengths,
    sample_times,
    sizes,
)
from sharp.solvers.system import covered, factors_of

Array = NDArray[np.float64]

POINTS = {1: 200, 2: 300, 3: 300}
ON_A_PART = 24
MOMENTS = (0.03, 0.21, 0.52, 0.93)
# Steps of one-sided differences, as shares of the extent; a stencil reaches seven steps away.
STEPS = (0.03, 0.01, 0.003, 0.001)


@dataclass(frozen=True)
class ConditionResidual:
    """The relative mismatch of a condition, which it is, and whether only differences or samples could measure it."""

    condition: str
    value: float
    coarse: bool


def initial_residuals(problem: Problem, solution: DiscreteSolution) -> Iterator[ConditionResidual]:
    """Yield the relative L2 distance from each initial state, at random points."""
    if problem.time is None:
        return
    points, start = (
        interior_points(problem, POINTS[len(problem.space)], start=4001),
        sample_times(problem, [0.0]),
    )
    for name, state in problem.specification.initial.items():
        field, order = _component(problem, name)
        wanted = compile_function(problem, str(state.expression))(points, start)[0]
        found, natural = _rate(problem, solution, points, order)
        scale = max(_rms(wanted), float(natural[field])) or 1.0
        yield ConditionResidual(f"{name} at the start", _rms(found[field] - wanted) / scale, order > 0)


def _component(problem: Problem, name: str) -> tuple[int, int]:
    """Return the field and the order of the time derivative that the name of an initial state stands for."""
    if name in problem.fields:
        return problem.fields.index(name), 0
    field, _, marks = name.rpartition("_")
    return problem.fields.index(field), len(marks) // len(str(problem.time_name))


def _rate(problem: Problem, solution: DiscreteSolution, points: Array, order: int) -> tuple[Array, Array]:
    """Return a time derivative at the start [fields, m] and its natural size [fields]."""
    assert problem.time is not None
    start, end = problem.time
    natural = sizes(evaluate(solution, points, sample_times(problem, MOMENTS))) / (end - start) ** order
    if order == 0:
        return evaluate(solution, points, np.array([start]))[:, 0], natural
    found = [_forward(solution, points, start, order, share * (end - start)) for share in STEPS]
    return _settled(np.stack(found)), natural


def _forward(solution: DiscreteSolution, points: Array, start: float, order: int, step: float) -> Array:
    stencil = one_sided_stencil(order)
    values = evaluate(solution, points, start - step * np.array(list(stencil)))
    return np.asarray(np.einsum("fkm,k->fm", values, list(stencil.values())) / (-step) ** order)


def _settled(found: Array) -> Array:
    """Return of results by falling steps [steps, …] those that change least from one step to the next."""
    change = np.abs(np.diff(found, axis=0))
    best = np.argmin(np.where(np.isfinite(change), change, np.inf), axis=0)[None]
    return np.asarray(np.take_along_axis(found[1:], best, axis=0)[0])


def boundary_residuals(problem: Problem, solution: DiscreteSolution) -> Iterator[ConditionResidual]:
    """Yield the mismatch of every boundary condition on every part that it covers, and of periodic ends."""
    inner = evaluate(solution, interior_points(problem, 200, start=77), sample_times(problem, MOMENTS))
    for condition in problem.specification.boundary:
        if condition.type == "periodic":
            yield _periodic(problem, solution, str(condition.axis), inner)
            continue
        for part in covered(problem, str(condition.where)):
            edge = boundary(problem.domain, part, ON_A_PART)
            yield _on_part(problem, solution, condition, part, edge, inner)


def _periodic(problem: Problem, solution: DiscreteSolution, axis: str, inner: Array) -> ConditionResidual:
    low, high = (boundary(problem.domain, axis + side, ON_A_PART) for side in "-+")
    times = sample_times(problem, MOMENTS)
    apart = evaluate(solution, high.points, times) - evaluate(solution, low.points, times)
    worst = max(_rms(own) / float(size) for own, size in zip(apart, sizes(inner), strict=True))
    return ConditionResidual(f"periodic along {axis}", worst, False)


def _on_part(
    problem: Problem,
    solution: DiscreteSolution,
    condition: Boundary,
    part: str,
    edge: BoundarySamples,
    inner: Array,
) -> ConditionResidual:
    index, times = problem.fields.index(str(condition.field)), sample_times(problem, MOMENTS)
    wanted = compile_function(problem, str(condition.value))(edge.points, times)
    factors = {
        order: compile_function(problem, text)(edge.points, times)
        for order, text in factors_of(condition).items()
    }
    found = {order: _normal(problem, solution, edge, times, order)[index] for order in factors}
    total = sum(factors[order] * found[order] for order in factors)
    # Beside what stands there, what the extents suggest: an insulated end is not measured by its own rounding.
    extent = float(np.mean(np.abs(edge.normals) @ lengths(problem)))
    level, spread = float(sizes(inner)[index]), float(np.ptp(inner[index]))
    natural = sum(_rms(factors[order]) * (spread / extent**order if order else level) for order in factors)
    scale = max(_rms(wanted), natural, *(_rms(factors[order] * found[order]) for order in factors)) or 1.0
    value = _rms(total - wanted) / scale
    return ConditionResidual(
        f"{condition.type} condition of {condition.field} on {part}", value, max(factors) > 0
    )


def _normal(
    problem: Problem, solution: DiscreteSolution, edge: BoundarySamples, times: Array, order: int
) -> Array:
    """Return a normal derivative of all fields [fields, k, m] by the one-sided differences that agree best."""
    if order == 0:
        return evaluate(solution, edge.points, times)
    extent = float(np.mean(np.abs(edge.normals) @ lengths(problem)))
    found = np.stack([_one_sided(problem, solution, edge, times, order, share * extent) for share in STEPS])
    return _settled(found)


def _one_sided(
    problem: Problem, solution: DiscreteSolution, edge: BoundarySamples, times: Array, order: int, step: float
) -> Array:
    stencil = one_sided_stencil(order)
    points = edge.points + step * np.array(list(stencil))[:, None, None] * edge.normals
    fitting = fits(problem, points)
    derivative = np.full((len(problem.fields), len(times), len(edge.points)), np.nan)
    if np.any(fitting):
        values = evaluate(solution, points[:, fitting].reshape(-1, points.shape[2]), times)
        values = values.reshape(*values.shape[:2], len(stencil), -1)
        derivative[:, :, fitting] = np.einsum("fksm,s->fkm", values, list(stencil.values())) / step**order
    return derivative


def _rms(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(finite**2))) if finite.size else float("inf")


def mean_residuals(problem: Problem, solution: DiscreteSolution) -> Iterator[ConditionResidual]:
    """Yield how far the mean of a field over the domain is from the one that is given, relative to the field's size."""
    if not problem.specification.mean:
        return
    times = sample_times(problem, MOMENTS)
    points, weights = _quadrature(problem)
    values, sampled = evaluate(solution, points, times), isinstance(problem.domain, PolygonDomain)
    for name, text in problem.specification.mean.items():
        index = problem.fields.index(name)
        wanted = compile_function(problem, text)(np.zeros((1, len(problem.space))), times)[:, 0]
        found = values[index] @ weights / np.sum(weights)
        yield ConditionResidual(
            f"mean of {name}", _rms(found - wanted) / float(sizes(values)[index]), sampled
        )


def _quadrature(problem: Problem) -> tuple[Array, Array]:
    """Return points [m, d] and weights [m]: products of Gauss rules, or random points of equal weight in a polygon."""
    nodes, weights = np.polynomial.legendre.leggauss(40 if len(problem.space) < 3 else 16)
    match problem.domain:
        case BoxDomain(bounds):
            axes = [low + (high - low) * (nodes + 1) / 2 for low, high in bounds.values()]
            grids = np.meshgrid(*axes, indexing="ij")
            products = np.prod(np.meshgrid(*[weights] * len(axes), indexing="ij"), axis=0)
            return np.stack([grid.ravel() for grid in grids], axis=1), products.ravel()
        case RoundDomain(_, center, inner, outer):
            least = inner or 0.0
            radii = least + (outer - least) * (nodes + 1) / 2
            angles = 2 * np.pi * np.arange(64) / 64
            r, angle = (grid.ravel() for grid in np.meshgrid(radii, angles, indexing="ij"))
            points = center + r[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            return points, np.repeat(weights * radii, 64)
        case _:
            points = interior_points(problem, 6000)
            return points, np.ones(len(points))
