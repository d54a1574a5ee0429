"""How far two solutions are apart: integrated over space and time, with what is narrow or short looked for.

The points at which resolutions are compared are too few to meet every place where one of two solutions is wrong. Here
many places are compared at some times, some places at many times, the neighbourhoods of the data's narrow features by
shells, and where the difference is largest it is looked at more closely, in boxes that shrink. A function that is known
by its values alone may hold a needle anywhere: it is scanned more densely, in space where it is least smooth.
"""

from __future__ import annotations

import time
from itertools import chain
from math import inf

import numpy as np

from sharp.plugins import plugin_names
from sharp.problems import Problem
from sharp.solvers.data_features import (
    DataFeature,
    boundary_features,
    equation_features,
    initial_features,
)
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.feature_checks import Shells, event_times
from sharp.solvers.field_sizes import relative_distance, sizes, usual_sizes
from sharp.solvers.grid import Array
from sharp.solvers.refine import eigenvalue_distance, norm_of
from sharp.solvers.sample_points import (
    compared_after,
    evaluate,
    interior_points,
    lengths,
    recurrence,
    sample_times,
)
from sharp.solvers.system import system_of

# Many places at some times; some places at many times.
PLACES, MOMENTS = {1: 6000, 2: 6000, 3: 12000}, 9
FEW_PLACES, MANY_MOMENTS = 48, 400
# So many of the worst points are looked at more closely: in boxes of half the mean distance of points, then of less.
WORST, LEVELS, SHRINKING = 6, 4, 3.0
IN_A_BOX, TIMES_OF_A_BOX = 150, 6
_FIRST = 50021
# What comes from no method of ours is scanned for needles at so many moments: by so many points in the plane, and in
# space on a lattice of so many points along each axis, of which each block of so many a side names its least smooth.
SCANNED_MOMENTS, IN_THE_PLANE, ALONG_AN_AXIS, BLOCK = 3, 40000, 160, 8
# A function that would take longer to scan, in seconds, is not told apart from one with a needle.
SCAN_SECONDS = 30.0


def solution_distance(problem: Problem, first: DiscreteSolution, second: DiscreteSolution) -> float:
    """Return the relative distance of two solutions, in L2 over space and time and the worst field.

    That of the eigenvalues where there are any; infinite where a value is not finite. Where jumps travel it is in L1,
    in which nothing narrow hides: two jumps apart count by their distance.
    """
    if second.eigenvalues:
        return eigenvalue_distance(first.eigenvalues, second.eigenvalues)
    if norm_of(problem) == "L1":
        points = interior_points(problem, PLACES[len(problem.space)], start=_FIRST)
        times = sample_times(problem, np.append(recurrence(MOMENTS - 1, 1)[:, 0], 1.0))
        values, reference = evaluate(first, points, times), evaluate(second, points, times)
        return relative_distance(problem, values, reference, "L1")
    with np.errstate(all="ignore"):
        return _Difference(problem, first, second).distance()


class _Difference:
    def __init__(self, problem: Problem, first: DiscreteSolution, second: DiscreteSolution) -> None:
        self._problem, self._first, self._second = problem, first, second
        self._count = PLACES[len(problem.space)]
        self._places = interior_points(problem, self._count, start=_FIRST)
        values = evaluate(second, self._places[:500], self._moments(MOMENTS))
        self._scale = np.maximum(sizes(problem, values), usual_sizes(system_of(problem), values))

    def distance(self) -> float:
        """Return the square root of the largest mean square, and of what is found beside it."""
        many = self._squares(self._places, self._moments(MOMENTS))
        steady = self._problem.time is None
        found = [many.mean()]
        searched = [self._searched(self._places, self._moments(MOMENTS), many)]
        if not steady:
            late, places = self._moments(MANY_MOMENTS), self._places[:: self._count // FEW_PLACES]
            brief = self._squares(places, late)
            found.append(brief.mean())
            searched.append(self._searched(places, late, brief))
        features = chain.from_iterable(
            each(self._problem) for each in (equation_features, initial_features, boundary_features)
        )
        near = max(map(self._about, dict.fromkeys(features)), default=0.0)
        searched += [self._scanned(each) for each in (self._first, self._second) if _is_black_box(each)]
        total = max(found) + max(searched) + near
        return float(np.sqrt(total)) if np.isfinite(total) else inf

    def _moments(self, count: int) -> Array:
        if self._problem.time is None:
            return np.zeros(1)
        shares = np.append(np.sort(recurrence(count - 1, 1)[:, 0]), 1.0)
        return sample_times(self._problem, self._after + (1 - self._after) * shares)

    @property
    def _after(self) -> float:
        return compared_after(self._problem)

    def _squares(self, points: Array, times: Array) -> Array:
        """Return the squared difference [k, m] of the worst field, relative to the mean square of that."""
        apart = evaluate(self._first, points, times) - evaluate(self._second, points, times)
        worst = np.max((apart / self._scale[:, None, None]) ** 2, axis=0)
        return np.asarray(np.where(np.isnan(worst), inf, worst))

    def _searched(self, points: Array, times: Array, squares: Array) -> float:
        """Return the mean square that boxes about the worst points contribute."""
        return self._about_worst(points, times, squares, 0.5 * len(points) ** (-1 / points.shape[1]))

    def _about_worst(self, points: Array, times: Array, squares: Array, share: float) -> float:
        worst = np.argsort(squares, axis=None)[::-1][:WORST]
        late, which = np.unravel_index(worst, squares.shape)
        brief = 0.5 / len(times) if self._problem.time is not None else 1.0
        return max(
            self._in_boxes(points[place], times[moment], share, brief)
            for moment, place in dict.fromkeys(zip(late.tolist(), which.tolist(), strict=True))
        )

    def _scanned(self, solution: DiscreteSolution) -> float:
        """Return the mean square that needles of a function contribute which is known by its values alone."""
        dimension, times = len(self._problem.space), self._moments(SCANNED_MOMENTS)
        if dimension == 1:
            return 0.0  # where many places are dense enough
        if dimension == 2:
            points = interior_points(self._problem, IN_THE_PLANE, start=_FIRST)
            return self._searched(points, times, self._squares(points, times))
        found = [_least_smooth(self._problem, solution, moment) for moment in times]
        if any(points is None for points in found):
            return inf
        share = 1 / ALONG_AN_AXIS
        return max(
            self._about_worst(points, times[[k]], self._squares(points, times[[k]]), share)
            for k, points in enumerate(found)
            if points is not None
        )

    def _in_boxes(self, center: Array, moment: float, share: float, brief: float) -> float:
        """Return the largest contribution of boxes that shrink towards the worst place in each."""
        extents, time = lengths(self._problem), self._problem.time
        most = 0.0
        for _ in range(LEVELS):
            offsets = 2 * recurrence(IN_A_BOX, len(center)) - 1
            points = center + share * extents * offsets
            points = points[self._problem.domain.inside(points)]
            times = np.zeros(1)
            if time is not None:
                reach = brief * (time[1] - time[0])
                start = time[0] + self._after * (time[1] - time[0])
                times = np.linspace(max(moment - reach, start), min(moment + reach, time[1]), TIMES_OF_A_BOX)
            if not len(points):
                return most
            squares = self._squares(points, times)
            here = self._squares(center[None], np.array([moment]))[0, 0]
            volume = (2 * share) ** len(center) * min(1.0, 2 * brief if time is not None else 1.0)
            most = max(most, float(squares.mean()) * volume)
            late, place = np.unravel_index(np.argmax(squares), squares.shape)
            if squares[late, place] > here:
                center, moment = points[place], float(times[late])
            share, brief = share / SHRINKING, brief / SHRINKING if time is not None else brief
        return most

    def _about(self, feature: DataFeature) -> float:
        """Return the mean square that the neighbourhood of a feature contributes."""
        problem = self._problem
        shells = Shells.about(np.array(feature.place), lengths(problem), feature.width)
        inside = problem.domain.inside(shells.points)
        times, weights = event_times(problem, feature)
        order = np.argsort(times)
        squares = self._squares(shells.points[inside], times[order])
        return float(weights[order] @ squares @ shells.volumes[inside])


def _is_black_box(solution: DiscreteSolution) -> bool:
    return solution.method not in plugin_names("sharp.solvers")


def _least_smooth(problem: Problem, solution: DiscreteSolution, moment: float) -> Array | None:
    """Return from each block of a lattice of a box the point [m, 3] with the largest fourth difference along an axis.

    None where the function is too slow to be scanned.
    """
    low, high = np.transpose([problem.bounds[axis] for axis in problem.space])
    shares = (np.arange(ALONG_AN_AXIS) + 0.5) / ALONG_AN_AXIS
    x, y, z = (start + (end - start) * shares for start, end in zip(low, high, strict=True))
    plane = np.stack([each.ravel() for each in np.meshgrid(y, z, indexing="ij")], axis=1)
    planes, begin = [], time.monotonic()
    for along in x:
        if time.monotonic() - begin > SCAN_SECONDS:
            return None
        planes.append(solution.at(np.insert(plane, 0, along, axis=1), moment))
    values = np.stack(planes, axis=1).reshape(-1, *[ALONG_AN_AXIS] * 3)
    levels = np.sqrt(np.mean(values**2, axis=(1, 2, 3)))
    roughness = np.zeros(values.shape[1:])
    for field, level in zip(values, levels, strict=True):
        for axis in range(3):
            # An odd continuation has no kink at the ends.
            width = [(2, 2) if each == axis else (0, 0) for each in range(3)]
            padded = np.pad(field, width, mode="reflect", reflect_type="odd")
            np.maximum(roughness, np.abs(np.diff(padded, 4, axis)) / (level or 1.0), out=roughness)
    count = ALONG_AN_AXIS // BLOCK
    blocks = roughness.reshape([part for _ in range(3) for part in (count, BLOCK)])
    in_blocks = blocks.transpose(0, 2, 4, 1, 3, 5).reshape(count**3, BLOCK**3)
    which = np.stack(np.unravel_index(np.argmax(np.nan_to_num(in_blocks, nan=inf), axis=1), [BLOCK] * 3))
    corner = BLOCK * np.stack(np.unravel_index(np.arange(count**3), [count] * 3))
    return np.stack([axis[index] for axis, index in zip((x, y, z), corner + which, strict=True)], axis=1)
