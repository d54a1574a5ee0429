"""Wrong solutions of problems whose solution is known: what a faulty solver or an optimistic user might hand in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator

from sharp.experiments.verification_suite.generator import GeneratedProblem
from sharp.experiments.verification_suite.known_solutions import Place, Values, relative_error
from sharp.solvers import (
    Array,
    DiscreteSolution,
    RefinementStudy,
    ResolutionAttempt,
    interior_points,
    sample_times,
)

Route = Literal["solver output", "claim"]
# Errors of wrong solutions are log-uniform between so many accuracies and this share of the solution.
_LEAST, _LARGEST = 30.0, 0.5
# Narrow perturbations, as shares of the domain, and short ones, of the time.
_WIDTHS = (0.002, 0.05)
_BRIEF = (0.003, 0.05)
_NODES = {1: 33, 2: 17, 3: 9}


@dataclass(frozen=True)
class Sabotage:
    """What is wrong, how it is handed in, and the wrong values or eigenvalues; `places` are where they are wrong."""

    kind: str
    route: Route
    values: Values | None = None
    eigenvalues: tuple[float, ...] = ()
    places: tuple[Place, ...] = ()

    def study(self, problem: GeneratedProblem) -> RefinementStudy:
        """Return the wrong solution as the output of a solver that is sure of itself."""
        accuracy = problem.problem.specification.accuracy
        values = self.values or (lambda points, times: np.zeros((1, len(times), len(points))))
        solution = DiscreteSolution("given", 2, values, 2, self.eigenvalues)
        attempts = (
            ResolutionAttempt("given", 1, 0.1, 1),
            ResolutionAttempt("given", 2, 0.1, 2, difference=accuracy / 10),
        )
        return RefinementStudy("given", attempts, solution, accuracy / 10, None, True)


def draw_sabotage(problem: GeneratedProblem, random: Generator) -> Sabotage:
    """Return something wrong with the solution of a problem."""
    route: Route = "claim" if random.random() < 0.5 else "solver output"
    if problem.eigenvalues:
        return _wrong_eigenvalues(problem, random, route)
    known = problem.known_solutions[int(random.integers(len(problem.known_solutions)))].values(
        problem.problem
    )
    kinds = ["narrow", "scaled", "mode", "coarse grid", "shifted"]
    kinds += ["brief"] * 2 if problem.problem.time else []
    kinds += ["feature missed"] * 2 if problem.lesser is not None and problem.feature != "none" else []
    kind = kinds[int(random.integers(len(kinds)))]
    if kind == "feature missed":
        assert problem.lesser is not None
        return Sabotage(kind, route, problem.lesser.values(problem.problem))
    if kind == "coarse grid":
        return Sabotage(kind, route, _interpolated(problem, known))
    shape, places = _perturbation(problem, random, kind, known)
    accuracy = problem.problem.specification.accuracy
    target = np.exp(random.uniform(np.log(_LEAST * accuracy), np.log(max(_LARGEST, 40 * accuracy))))

    def unscaled(points: Array, times: Array) -> Array:
        return known(points, times) + shape(points, times)

    size = relative_error(problem.problem, known, unscaled, places, _NODES[problem.dimension])
    factor = target / size if 0 < size < np.inf else target

    def wrong(points: Array, times: Array) -> Array:
        return np.asarray(known(points, times) + factor * shape(points, times))

    return Sabotage(kind, route, wrong, places=places)


def _wrong_eigenvalues(problem: GeneratedProblem, random: Generator, route: Route) -> Sabotage:
    assert problem.problem.specification.eigenvalue is not None
    count, known = problem.problem.specification.eigenvalue.count, list(problem.eigenvalues)
    kind = ("missed eigenvalue", "missed eigenvalue", "shifted eigenvalue")[int(random.integers(3))]
    which = int(random.integers(min(count, len(known))))
    if kind == "missed eigenvalue" and len(known) > count:
        del known[which]
    else:
        kind = "shifted eigenvalue"
        known[which] += float(10 ** random.uniform(-3, -1)) * (abs(known[which]) or abs(known[-1]))
    return Sabotage(kind, route, eigenvalues=tuple(sorted(known)[:count]))


def _perturbation(
    problem: GeneratedProblem, random: Generator, kind: str, known: Values
) -> tuple[Values, tuple[Place, ...]]:
    """Return the shape of a perturbation [fields, k, m], and where it is narrow."""
    stated = problem.problem
    widths = _BRIEF if kind == "brief" else _WIDTHS
    width = float(np.exp(random.uniform(*np.log(widths))))
    sample = interior_points(stated, 20, start=int(random.integers(1000)))
    center = sample[int(random.integers(len(sample)))]
    moment = sample_times(stated, [random.uniform(0.03, 0.97)])[0]
    span = stated.time[1] - stated.time[0] if stated.time else 1.0
    extents = np.array([high - low for low, high in stated.bounds.values()])
    level = float(np.sqrt(np.mean(known(sample, sample_times(stated, [0.4, 0.9])) ** 2)))
    if kind == "narrow":
        places = tuple(
            Place(axis, float(at), width * float(extent))
            for axis, at, extent in zip(stated.space, center, extents, strict=True)
        )

        def narrow(points: Array, times: Array) -> Array:
            bump = np.exp(-(((points - center) / extents / width) ** 2).sum(axis=1))
            return np.broadcast_to(level * bump, (len(stated.fields), len(times), len(points)))

        return narrow, places
    if kind == "brief":

        def brief(points: Array, times: Array) -> Array:
            bump = np.exp(-(((times - moment) / span / width) ** 2))[:, None]
            bump = bump * np.cos(2 * (points - center) / extents).prod(axis=1)
            return np.broadcast_to(level * bump, (len(stated.fields), len(times), len(points)))

        return brief, (Place(str(stated.time_name), float(moment), width * span),)
    if kind == "scaled":
        return known, ()
    if kind == "mode":
        wave = random.integers(1, 4, len(extents))

        def mode(points: Array, times: Array) -> Array:
            low = np.array([low for low, _ in stated.bounds.values()])
            wavy = np.sin(np.pi * wave * (points - low) / extents).prod(axis=1)
            return np.broadcast_to(level * wavy, (len(stated.fields), len(times), len(points)))

        return mode, ()
    step = float(random.uniform(0.002, 0.03))

    def shifted(points: Array, times: Array) -> Array:
        if stated.time is not None:
            return known(points, times + step * span) - known(points, times)
        return known(points + step * extents, times) - known(points, times)

    return shifted, problem.places


def _interpolated(problem: GeneratedProblem, known: Values) -> Values:
    """Return a known solution at the nodes of a coarse grid, interpolated: a solver that was content too soon."""
    from scipy.interpolate import RegularGridInterpolator

    stated, count = problem.problem, _NODES[problem.dimension]
    time = [stated.time] if stated.time else []
    axes = [np.linspace(*bounds, count) for bounds in (*time, *stated.bounds.values())]
    grid = np.stack([each.ravel() for each in np.meshgrid(*axes[len(time) :], indexing="ij")], axis=1)
    with np.errstate(all="ignore"):
        nodes = known(grid, axes[0] if time else np.zeros(1))
    shape = tuple(len(axis) for axis in axes)
    functions = [RegularGridInterpolator(axes, np.nan_to_num(each.reshape(shape))) for each in nodes]

    def values(points: Array, times: Array) -> Array:
        if not time:
            return np.stack([f(points)[None].repeat(len(times), 0) for f in functions])
        late = np.repeat(times, len(points))[:, None]
        places = np.hstack([late, np.tile(points, (len(times), 1))])
        low, high = np.transpose([[axis[0], axis[-1]] for axis in axes])
        clipped = np.clip(places, low, high)
        return np.stack([f(clipped).reshape(len(times), len(points)) for f in functions])

    return values
