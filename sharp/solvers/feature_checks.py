"""Whether a solution has seen the narrow features of its data: residuals integrated over their neighbourhoods.

Checks at fixed points never meet a source of a thousandth of the domain, nor does the method that missed it. Here the
neighbourhood of each feature is cut into shells, each half as wide as the one around it, so that what happens at any
scale counts by the volume that it takes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import sympy
from numpy.typing import NDArray

from sharp.problems import BoxDomain, Problem
from sharp.solvers.data_features import (
    DataFeature,
    boundary_features,
    equation_features,
    given_functions,
    initial_features,
)
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.fd_weights import HALF
from sharp.solvers.functions import compile_function
from sharp.solvers.grid import Array
from sharp.solvers.method import NEVER, Deadline
from sharp.solvers.residuals import DerivativeProgram, difference
from sharp.solvers.sample_points import boundary, evaluate, interior_points, lengths, sample_times
from sharp.solvers.strong_form import StrongForm
from sharp.solvers.system import covered

# The least radius of a shell, as a share of the extent: below it, differences are rounding.
_LEAST = 1e-7
# Where points of a shell lie, as shares of its radius, and the steps of differences there: stencils reach four steps.
# Round shares would meet other features at round distances, as the tick of a clock does.
_INSIDE = (0.5527, 0.8063)
_STEPS = (1 / 8, 1 / 32)
# By these factors steps are finer where more than this share of the terms does not balance.
_FINER = (1 / 16, 1 / 256)
_BALANCED = 1e-4
# Moments at which a feature that lasts is looked at, as shares of the time; and steps of differences in time there.
_MOMENTS = (0.23, 0.67)
_TIME_STEPS = (0.008, 0.0004)
# A change of the data by more than this share of them, within one stencil, is taken for a jump.
_LEAP = 0.3
# Points at which the usual size of the terms is measured.
_USUAL = 48
# Points on a part of the boundary that is no face, for narrow boundary values.
_ON_A_PART = 2000


@dataclass(frozen=True)
class Shells:
    """Points [m, d] about a feature, the radius [m] of the shell of each, and the volume [m] that it stands for."""

    points: Array
    radii: Array
    volumes: Array

    @classmethod
    def about(cls, center: Array, extents: Array, width: float) -> Shells:
        """Return the shells about a place [d] in a domain of some extents [d], down to an eighth of a width."""
        dimension = len(center)
        # A jump is as narrow as can be: the half of the shells that are wider than it tell what stands beside it.
        smallest = max(width / 8, _LEAST)
        radii = 0.5 ** np.arange(1.0, max(2.0, np.ceil(-np.log2(smallest)) + 1))
        directions = np.array([each for each in product((-1.0, 0.0, 1.0), repeat=dimension) if any(each)])
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        volumes = (2 * radii) ** dimension - np.append(2 * radii[1:], 0.0) ** dimension
        shares = radii[:, None, None] * np.array(_INSIDE)[None, :, None] * np.ones(len(directions))
        offsets = shares[..., None] * directions
        each = len(_INSIDE) * len(directions)
        points = center + extents * offsets.reshape(-1, dimension)
        return cls(points, np.repeat(radii, each), np.repeat(volumes / each, each))

    def at(self, chosen: NDArray[np.bool_]) -> Shells:
        """Return some of the points."""
        return Shells(self.points[chosen], self.radii[chosen], self.volumes[chosen])


def equations_at_features(
    problem: Problem, solution: DiscreteSolution, deadline: Deadline = NEVER
) -> float | None:
    """Return the largest share of an equation's terms that does not balance near a feature; None without features.

    Both are integrated over the neighbourhood of the feature; the terms count as no smaller than elsewhere. Raises
    `SpecificationError` for equations that cannot be written as a program, and `TimeLimitExceeded`.
    """
    features = equation_features(problem)
    if not features:
        return None
    written = StrongForm.of(problem, solution.eigenvalues)
    equations = [written.equation(index).doit() for index in range(len(problem.equations))]
    terms = [sympy.Add.make_args(equation.xreplace(written.numbers)) for equation in equations]
    owners = np.repeat(range(len(terms)), list(map(len, terms)))
    program = DerivativeProgram.of(written, [term for own in terms for term in own])
    usual = _usual_sizes(problem, solution, program, owners)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        return max(
            _imbalance(problem, solution, program, owners, usual, feature, deadline) for feature in features
        )


def _imbalance(
    problem: Problem,
    solution: DiscreteSolution,
    program: DerivativeProgram,
    owners: Array,
    usual: Array,
    feature: DataFeature,
    deadline: Deadline,
) -> float:
    shells = Shells.about(np.array(feature.place), lengths(problem), feature.width)
    left, size = np.zeros(len(usual)), np.zeros(len(usual))
    for times, time_steps, weights in _moments(problem, feature):
        deadline.check()
        residual, terms = _best_residual(
            problem, solution, program, owners, usual, feature, shells, times, time_steps
        )
        weight = weights[:, None] * shells.volumes
        sound = np.isfinite(residual).all(axis=0)
        left += np.where(sound, residual * weight, 0.0).sum(axis=(1, 2))
        size += np.where(sound, terms * weight, 0.0).sum(axis=(1, 2))
    # The whole domain and time have the measure 1 here.
    scale = np.maximum(size, usual)
    return float(np.max(np.where(scale > 0, left / np.where(scale > 0, scale, 1.0), 0.0)))


def _moments(problem: Problem, feature: DataFeature) -> Iterator[tuple[Array, tuple[float, ...], Array]]:
    """Yield times [k], the steps of differences there, and the share of the time that each stands for."""
    if problem.time is None:
        yield np.zeros(1), (1.0,), np.ones(1)
        return
    start, end = problem.time
    if feature.duration >= 1 / 20:
        times = start + (end - start) * np.array(_MOMENTS)
        yield (
            times,
            tuple(share * (end - start) for share in _TIME_STEPS),
            np.full(len(times), 1 / len(times)),
        )
        return
    shells = Shells.about(np.array([feature.time]), np.array([end - start]), feature.duration)
    for radius in np.unique(shells.radii)[::-1]:
        chosen = (shells.radii == radius) & (shells.points[:, 0] > start) & (shells.points[:, 0] < end)
        if np.any(chosen):
            steps = tuple(share * radius * (end - start) for share in _STEPS)
            yield shells.points[chosen, 0], steps, shells.volumes[chosen]


def _best_residual(
    problem: Problem,
    solution: DiscreteSolution,
    program: DerivativeProgram,
    owners: Array,
    usual: Array,
    feature: DataFeature,
    shells: Shells,
    times: Array,
    time_steps: tuple[float, ...],
) -> tuple[Array, Array]:
    """Return the residual and the size of the terms [equations, k, m], by the steps that leave the least residual.

    Where nothing balances, a narrower feature may be near: finer steps are tried there.
    """
    left, size = _least_residual(
        problem, solution, program, owners, feature, shells, times, [*product(_STEPS, time_steps)]
    )
    inside = problem.domain.inside(shells.points)
    for finer in () if feature.jump else _FINER:
        enough = _BALANCED * np.fmax(size, usual[:, None, None])
        open_ = inside & ~(left <= enough).all(axis=(0, 1))
        if not np.any(open_):
            break
        steps = [
            (share * by, time_step * late)
            for share, time_step in product(_STEPS, time_steps)
            for by, late in ((finer, 1.0), (1.0, finer), (finer, finer))
        ]
        again, sizes_again = _least_residual(
            problem, solution, program, owners, feature, shells.at(open_), times, steps
        )
        better = ~(again >= left[:, :, open_]) & np.isfinite(again) | ~np.isfinite(left[:, :, open_])
        left[:, :, open_] = np.where(better, again, left[:, :, open_])
        size[:, :, open_] = np.where(better, sizes_again, size[:, :, open_])
    return left, size


def _least_residual(
    problem: Problem,
    solution: DiscreteSolution,
    program: DerivativeProgram,
    owners: Array,
    feature: DataFeature,
    shells: Shells,
    times: Array,
    steps: Sequence[tuple[float, float]],
) -> tuple[Array, Array]:
    best = size = None
    for share, time_step in steps:
        # Away from a feature the data may be as narrow again, as waves are; a jump has no width to be resolved.
        reach = shells.radii if feature.jump else np.minimum(shells.radii, 2 * feature.width)
        step = share * reach[:, None] * lengths(problem)
        jets = {}
        for orders in dict.fromkeys(jet.orders for jet in program.jets):
            values = difference(problem, solution, orders, shells.points, times, step, time_step)
            jets.update(
                {jet: values[problem.fields.index(jet.field)] for jet in program.jets if jet.orders == orders}
            )
        shape = (len(times), len(shells.points))
        found = [np.broadcast_to(value, shape) for value in program(shells.points, times, jets)]
        over = feature.jump and over_a_jump(problem, shells.points, times[0], HALF * step)
        terms = np.where(over, np.nan, found)
        own = range(int(owners[-1]) + 1)
        left = np.abs(np.stack([terms[owners == index].sum(axis=0) for index in own]))
        sizes_of_terms = np.stack([np.abs(terms[owners == index]).sum(axis=0) for index in own])
        if best is None or size is None:
            best, size = left, sizes_of_terms
            continue
        better = ~(left >= best) & np.isfinite(left) | ~np.isfinite(best)
        best, size = np.where(better, left, best), np.where(better, sizes_of_terms, size)
    assert best is not None
    assert size is not None
    return best, size


def over_a_jump(problem: Problem, points: Array, time: float, reach: Array) -> NDArray[np.bool_]:
    """Return for points [m, d] whether the data jump within a distance [m, d] along an axis, in several dimensions.

    On an interval they never do: `difference` knows where it jumps.
    """
    dimension = len(problem.space)
    if dimension == 1:
        return np.zeros(len(points), dtype=bool)
    functions = given_functions(problem)
    late = np.full((len(points), 0 if problem.time is None else 1), time)
    here = functions(np.hstack([points, late]))
    apart = np.zeros(len(points))
    most = np.nanmax(np.abs(here), axis=1, keepdims=True)
    for direction in (*np.eye(dimension), *-np.eye(dimension)):
        there = functions(np.hstack([points + reach * direction, late]))
        apart = np.fmax(apart, np.nanmax(np.abs(there - here) / np.where(most > 0, most, 1.0), axis=0))
    return np.asarray(apart > _LEAP)


def _usual_sizes(
    problem: Problem, solution: DiscreteSolution, program: DerivativeProgram, owners: Array
) -> Array:
    """Return the mean size [equations] of the terms over the domain, with what the extents suggest for derivatives."""
    points, times = interior_points(problem, _USUAL, start=77), sample_times(problem, (0.17, 0.49, 0.83))
    values = evaluate(solution, points, times)
    spread = np.ptp(values, axis=(1, 2)) + 1e-3 * np.max(np.abs(values), axis=(1, 2))
    start, end = problem.time or (0.0, 1.0)
    extent = float(np.max(lengths(problem)))
    jets = {}
    for jet in program.jets:
        by, late = sum(jet.orders[: len(problem.space)]), sum(jet.orders[len(problem.space) :])
        jets[jet] = np.full(
            (len(times), len(points)),
            spread[problem.fields.index(jet.field)] / (extent**by * (end - start) ** late),
        )
    with np.errstate(all="ignore"):
        found = np.stack(
            [np.broadcast_to(v, (len(times), len(points))) for v in program(points, times, jets)]
        )
    mean = np.nanmean(np.abs(found), axis=(1, 2))
    return np.array([mean[owners == index].sum() for index in range(int(owners[-1]) + 1)])


def initial_state_at_features(problem: Problem, solution: DiscreteSolution) -> float | None:
    """Return the largest share of an initial state that is missed near its features; None without features."""
    features = initial_features(problem)
    if not features or problem.time is None:
        return None
    start = np.array([problem.time[0]])
    # Not `sizes`: a solution that vanishes everywhere is no measure of what it missed.
    usual = np.abs(evaluate(solution, interior_points(problem, _USUAL, start=77), start)).mean(axis=(1, 2))
    worst = 0.0
    for name, state in problem.specification.initial.items():
        if name not in problem.fields or state.expression is None:
            continue
        field, wanted = problem.fields.index(name), compile_function(problem, state.expression)
        for feature in features:
            shells = Shells.about(np.array(feature.place), lengths(problem), feature.width)
            inside = problem.domain.inside(shells.points)
            points, volumes = shells.points[inside], shells.volumes[inside]
            given = wanted(points, start)[0]
            missed = float(np.sum(volumes * np.abs(evaluate(solution, points, start)[field, 0] - given)))
            size = max(float(np.sum(volumes * np.abs(given))), float(usual[field]))
            worst = max(worst, missed / size if size else 0.0)
    return worst


def boundary_at_features(problem: Problem, solution: DiscreteSolution) -> float | None:
    """Return the largest share of a prescribed boundary value that is missed near its features; None without any.

    Conditions with derivatives are left to the equations near the boundary.
    """
    features = boundary_features(problem)
    if not features:
        return None
    middle = sample_times(problem, _MOMENTS)
    level = np.abs(evaluate(solution, interior_points(problem, _USUAL, start=77), middle)).mean(axis=(1, 2))
    worst = 0.0
    for condition in problem.specification.boundary:
        if condition.type != "dirichlet":
            continue
        index = problem.fields.index(str(condition.field))
        wanted = compile_function(problem, str(condition.value))
        for part, feature in product(covered(problem, str(condition.where)), features):
            points, areas = _on_boundary(problem, part, feature)
            times, weights = event_times(problem, feature)
            given, found = wanted(points, times), evaluate(solution, points, times)[index]
            missed = float(weights @ np.abs(found - given) @ areas)
            # Where nothing is given, the rounding of what is inside is no mismatch.
            least = _BALANCED * float(level[index])
            size = max(float(weights @ np.abs(given) @ areas), float(np.abs(found).mean()), least)
            worst = max(worst, missed / size if size else 0.0)
    return worst


def _on_boundary(problem: Problem, part: str, feature: DataFeature) -> tuple[Array, Array]:
    """Return points [m, d] of a part of the boundary, about a feature where it is a face, and the areas [m] of each."""
    domain = problem.domain
    if not isinstance(domain, BoxDomain) or len(problem.space) == 1 or not feature.thin:
        points = boundary(domain, part, _ON_A_PART if feature.thin else 12).points
        return points, np.full(len(points), 1 / len(points))
    axis = problem.space.index(part[:-1])
    along = [index for index in range(len(problem.space)) if index != axis]
    shells = Shells.about(np.array(feature.place)[along], lengths(problem)[along], feature.width)
    points = np.full(
        (len(shells.points), len(problem.space)), problem.bounds[part[:-1]]["-+".index(part[-1])]
    )
    points[:, along] = shells.points
    low, high = np.transpose([problem.bounds[name] for name in problem.space])
    inside = ((points >= low) & (points <= high)).all(axis=1)
    return points[inside], shells.volumes[inside]


def event_times(problem: Problem, feature: DataFeature) -> tuple[Array, Array]:
    """Return times [k] about a feature, or a few where it lasts, and the share of the time that each stands for."""
    if problem.time is None:
        return np.zeros(1), np.ones(1)
    start, end = problem.time
    if not feature.short:
        times = sample_times(problem, _MOMENTS)
        return times, np.full(len(times), 1 / len(times))
    shells = Shells.about(np.array([feature.time]), np.array([end - start]), feature.duration)
    inside = (shells.points[:, 0] >= start) & (shells.points[:, 0] <= end)
    return shells.points[inside, 0], shells.volumes[inside]
