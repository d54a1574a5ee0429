"""Figures of a solution: lines at several times, maps of planes, a map over space and time.

`figures` gives them as blocks of a document, `draw` as one matplotlib figure, without pyplot and its global state.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sharp.document import Curve, CurvePanel, Figure, MapPanel, Panels, number_text
from sharp.errors import InputError
from sharp.problems import Problem
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.grid import Array
from sharp.solvers.output import on_grid
from sharp.solvers.sample_points import evaluate, interior_points, lengths, sample_times

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

FINE = 241  # points of a line
PIXELS = 96  # along the longer side of a map
LINE_TIMES: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
MAP_TIMES: tuple[float, ...] = (0.0, 0.2, 0.5, 1.0)
# Times are shares of the time in which the solution varies over the domain by at least this part of what it ever does.
FLAT = 0.25
_PROBES, _MOMENTS = 200, 61  # points and times that tell how much it varies
_SIDE = 3.2  # inches of a panel


def figures(problem: Problem, solution: DiscreteSolution) -> Iterator[Figure]:
    """Yield the figures of all fields."""
    axes, times, values = _sampled(problem, solution)
    for index, field in enumerate(problem.fields):
        if len(axes) > 1:
            yield _maps(problem, index, times, values[index])
            continue
        names = [_time_text(problem, time) or field for time in times]
        curves = tuple(Curve.of(name, axes[0], line) for name, line in zip(names, values[index], strict=True))
        panel = CurvePanel(field, curves, logarithmic=False)
        chart = Panels(f"lines-{index}", field, field, (panel,), problem.space[0], wide=True)
        caption = f"{field} along {problem.space[0]}" + (" at several times." if problem.time else ".")
        caption += _flat_text(problem, times[-1])
        yield Figure(chart, caption, _range_text(field, values[index]))
        if problem.time is not None:
            yield _over_time(problem, solution, index)


def _sampled(problem: Problem, solution: DiscreteSolution) -> tuple[list[Array], Array, Array]:
    """Return axes, times [k] and values [fields, k, n] or [fields, k, nx, ny], half-way along a third coordinate."""
    if len(problem.space) == 1:
        counts, shares = [FINE], LINE_TIMES
    else:
        extent = lengths(problem)[:2]
        counts = np.maximum(PIXELS * extent / np.max(extent), 12).astype(int).tolist()
        shares = MAP_TIMES
    times = sample_times(problem, varied_share(problem, solution) * np.array(shares))
    axes = [np.linspace(*problem.bounds[axis], n) for axis, n in zip(problem.space, counts, strict=False)]
    middle = [np.array([sum(problem.bounds[axis]) / 2]) for axis in problem.space[2:]]
    values = on_grid(problem, solution, (*axes, *middle), times)
    return axes, times, values.reshape(len(problem.fields), len(times), *counts)


def varied_share(problem: Problem, solution: DiscreteSolution) -> float:
    """Return the share of the time interval after which the solution is as good as constant over the domain; else 1."""
    if problem.time is None:
        return 1.0
    shares = np.linspace(0.0, 1.0, _MOMENTS)
    found = evaluate(solution, interior_points(problem, _PROBES), sample_times(problem, shares))
    spread = np.nanstd(found, axis=2)
    largest = np.max(spread, axis=1, keepdims=True)
    varied = np.any((spread >= FLAT * largest) & (largest > 0), axis=0)
    return float(max(shares[varied][-1], shares[1])) if varied.any() else 1.0


def _over_time(problem: Problem, solution: DiscreteSolution, index: int) -> Figure:
    field, axis, times = (
        problem.fields[index],
        problem.space[0],
        sample_times(problem, np.linspace(0, 1, PIXELS)),
    )
    values = on_grid(problem, solution, (np.linspace(*problem.bounds[axis], PIXELS),), times)[index]
    extent = (*problem.bounds[axis], float(times[0]), float(times[-1]))
    panel = MapPanel(f"{field} over {axis} and {problem.time_name}", values.T, extent)
    chart = Panels(f"over-time-{index}", panel.title, field, (panel,), axis)
    caption = f"{field}, {axis} to the right and {problem.time_name} upwards."
    return Figure(chart, caption, _range_text(field, values))


def _maps(problem: Problem, index: int, times: Array, values: Array) -> Figure:
    field, (first, second, *others) = problem.fields[index], problem.space
    place = "".join(f"{axis} = {number_text(sum(problem.bounds[axis]) / 2)}" for axis in others)
    names = [", ".join(filter(None, (place, _time_text(problem, time)))) or "value" for time in times]
    ends = (*problem.bounds[first], *problem.bounds[second])
    panels = tuple(MapPanel(name, plane, ends) for name, plane in zip(names, values, strict=True))
    chart = Panels(f"maps-{index}", field, field, panels, first)
    caption = f"{field}, {first} to the right and {second} upwards.{_flat_text(problem, times[-1])}"
    return Figure(chart, caption, _range_text(field, values))


def _flat_text(problem: Problem, last: float) -> str:
    """Return that later times show nothing, where the last one that is shown is not the last of the problem."""
    if problem.time is None or np.isclose(last, problem.time[1]):
        return ""
    return (
        f" After {problem.time_name} = {number_text(last)} it varies by less than {FLAT:.0%} of what it did."
    )


def _time_text(problem: Problem, time: float) -> str:
    return f"{problem.time_name} = {number_text(float(time))}" if problem.time is not None else ""


def _range_text(field: str, values: Array) -> str:
    return f"{field} lies between {number_text(float(np.nanmin(values)))} and {number_text(float(np.nanmax(values)))}."


def draw(problem: Problem, solution: DiscreteSolution) -> MatplotlibFigure:
    """Return a matplotlib figure with a row for each field: lines at several times, or maps at several times."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("plots need matplotlib; install it with: pip install matplotlib") from None
    axes, times, values = _sampled(problem, solution)
    rows, columns = len(problem.fields), 1 if len(axes) == 1 else len(times)
    figure = Figure(figsize=(_SIDE * (1.6 if columns == 1 else columns), _SIDE * rows), layout="constrained")
    figure.suptitle(problem.title)
    for row, field, found in zip(
        figure.subplots(rows, columns, squeeze=False), problem.fields, values, strict=True
    ):
        if len(axes) == 1:
            _draw_lines(problem, row[0], field, axes[0], times, found)
        else:
            _draw_maps(problem, row, field, axes, times, found)
    return figure


def _draw_lines(problem: Problem, panel: Any, field: str, x: Array, times: Array, lines: Array) -> None:
    for time, line in zip(times, lines, strict=True):
        panel.plot(x, line, label=_time_label(problem, time))
    panel.set_xlabel(_label(problem, problem.space[0]))
    panel.set_ylabel(_label(problem, field))
    if problem.time is not None:
        panel.legend(fontsize="small")


def _draw_maps(
    problem: Problem, row: Any, field: str, axes: list[Array], times: Array, planes: Array
) -> None:
    # One scale for all times of a field, so that its maps can be compared.
    low, high = np.nanmin(planes), np.nanmax(planes)
    for panel, time, plane in zip(row, times, planes, strict=True):
        image = panel.pcolormesh(*axes, plane.T, vmin=low, vmax=high, shading="gouraud")
        panel.set_aspect("equal")
        panel.set_title(_time_label(problem, time), fontsize="medium")
        panel.set_xlabel(_label(problem, problem.space[0]))
    row[0].set_ylabel(_label(problem, problem.space[1]))
    row[0].figure.colorbar(image, ax=list(row), label=_label(problem, field))


def _time_label(problem: Problem, time: float) -> str:
    return f"{problem.time_name} = {time:.4g}" if problem.time is not None else ""


def _label(problem: Problem, name: str) -> str:
    unit = problem.specification.units.get(name)
    return f"{name} [{unit}]" if unit else name
