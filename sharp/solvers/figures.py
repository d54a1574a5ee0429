"""What the figures of a solution show: lines at several times, maps of planes, a map over space and time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sharp.document import Curve, CurvePanel, Figure, MapPanel, Panels
from sharp.document.text import number_text
from sharp.problems.problem import Problem
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.output import on_grid
from sharp.solvers.sample_points import lengths, sample_times

Array = NDArray[np.float64]

FINE = 241  # points of a line
PIXELS = 96  # along the longer side of a map
LINE_TIMES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
MAP_TIMES = (0.0, 0.2, 0.5, 1.0)


def figures(problem: Problem, solution: DiscreteSolution) -> Iterator[Figure]:
    """Yield the figures of all fields."""
    for index, field in enumerate(problem.fields):
        if len(problem.space) == 1:
            yield _lines(problem, solution, index, field)
            if problem.time is not None:
                yield _over_time(problem, solution, index, field)
        else:
            yield _maps(problem, solution, index, field)


def _lines(problem: Problem, solution: DiscreteSolution, index: int, field: str) -> Figure:
    axis, times = problem.space[0], sample_times(problem, LINE_TIMES if problem.time else (0.0,))
    x = _along(problem, axis, FINE)
    values = on_grid(problem, solution, (x,), times)[index]
    names = [_time_text(problem, time) or field for time in times]
    curves = tuple(Curve.of(name, x, line) for name, line in zip(names, values, strict=True))
    panel = CurvePanel(field, curves, logarithmic=False)
    chart = Panels(f"lines-{index}", field, field, (panel,), axis, wide=True)
    caption = f"{field} along {axis}" + (" at several times." if problem.time else ".")
    return Figure(chart, caption, _range_text(field, values))


def _over_time(problem: Problem, solution: DiscreteSolution, index: int, field: str) -> Figure:
    axis, times = problem.space[0], sample_times(problem, np.linspace(0, 1, PIXELS))
    values = on_grid(problem, solution, (_along(problem, axis, PIXELS),), times)[index]
    extent = (*problem.bounds[axis], float(times[0]), float(times[-1]))
    panel = MapPanel(f"{field} over {axis} and {problem.time_name}", values.T, extent)
    chart = Panels(f"over-time-{index}", panel.title, field, (panel,), axis)
    caption = f"{field}, {axis} to the right and {problem.time_name} upwards."
    return Figure(chart, caption, _range_text(field, values))


def _maps(problem: Problem, solution: DiscreteSolution, index: int, field: str) -> Figure:
    """Return maps over the first two coordinates, half-way along the third where there is one."""
    extent = lengths(problem)[:2]
    counts = np.maximum(PIXELS * extent / np.max(extent), 12).astype(int)
    axes = [_along(problem, axis, count) for axis, count in zip(problem.space, counts, strict=False)]
    place = ""
    for axis in problem.space[2:]:
        middle = sum(problem.bounds[axis]) / 2
        axes.append(np.array([middle]))
        place = f"{axis} = {number_text(middle)}"
    times = sample_times(problem, MAP_TIMES if problem.time else (0.0,))
    values = on_grid(problem, solution, tuple(axes), times)[index].reshape(len(times), *counts)
    names = [", ".join(filter(None, (place, _time_text(problem, time)))) or "value" for time in times]
    first, second = problem.space[:2]
    ends = (*problem.bounds[first], *problem.bounds[second])
    panels = tuple(MapPanel(name, plane, ends) for name, plane in zip(names, values, strict=True))
    chart = Panels(f"maps-{index}", field, field, panels, first)
    return Figure(chart, f"{field}, {first} to the right and {second} upwards.", _range_text(field, values))


def _along(problem: Problem, axis: str, count: int) -> Array:
    low, high = problem.bounds[axis]
    return np.linspace(low, high, int(count))


def _time_text(problem: Problem, time: float) -> str:
    return f"{problem.time_name} = {number_text(float(time))}" if problem.time is not None else ""


def _range_text(field: str, values: Array) -> str:
    return f"{field} lies between {number_text(float(np.nanmin(values)))} and {number_text(float(np.nanmax(values)))}."
