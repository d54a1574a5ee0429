"""A solution as a matplotlib figure, without pyplot and its global state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sharp.errors import InputError
from sharp.problems.problem import Problem
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.figures import FINE, LINE_TIMES, MAP_TIMES, PIXELS
from sharp.solvers.output import on_grid
from sharp.solvers.sample_points import lengths, sample_times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

_SIDE = 3.2  # inches of a panel


def draw(problem: Problem, solution: DiscreteSolution) -> Figure:
    """Return a figure with a row for each field: lines at several times, or maps at several times."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("plots need matplotlib; install it with: pip install matplotlib") from None
    shares = (LINE_TIMES if len(problem.space) == 1 else MAP_TIMES) if problem.time else (0.0,)
    times = sample_times(problem, shares)
    columns = 1 if len(problem.space) == 1 else len(times)
    rows = len(problem.fields)
    width = _SIDE * (1.6 if columns == 1 else columns)
    figure = Figure(figsize=(width, _SIDE * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    figure.suptitle(problem.title)
    if len(problem.space) == 1:
        _lines(problem, solution, times, panels[:, 0])
    else:
        _maps(problem, solution, times, panels)
    return figure


def _lines(problem: Problem, solution: DiscreteSolution, times: Array, panels: Iterable[Any]) -> None:
    (axis,) = problem.space
    x = np.linspace(*problem.bounds[axis], FINE)
    for field, values, panel in zip(
        problem.fields, on_grid(problem, solution, (x,), times), panels, strict=True
    ):
        for time, line in zip(times, values, strict=True):
            panel.plot(x, line, label=_time_label(problem, time))
        panel.set_xlabel(_label(problem, axis))
        panel.set_ylabel(_label(problem, field))
        if problem.time is not None:
            panel.legend(fontsize="small")


def _maps(problem: Problem, solution: DiscreteSolution, times: Array, panels: Any) -> None:
    """Draw maps over the first two coordinates, half-way along the third if there is one."""
    extent = lengths(problem)[:2]
    counts = np.maximum(PIXELS * extent / np.max(extent), 12).astype(int)
    axes = [np.linspace(*problem.bounds[axis], n) for axis, n in zip(problem.space, counts, strict=False)]
    axes += [np.array([sum(problem.bounds[axis]) / 2]) for axis in problem.space[2:]]
    values = on_grid(problem, solution, tuple(axes), times).reshape(-1, len(times), *counts)
    first, second = problem.space[:2]
    for row, field, planes in zip(panels, problem.fields, values, strict=True):
        # One scale for all times of a field, so that its maps can be compared.
        low, high = np.nanmin(planes), np.nanmax(planes)
        for panel, time, plane in zip(row, times, planes, strict=True):
            image = panel.pcolormesh(axes[0], axes[1], plane.T, vmin=low, vmax=high, shading="gouraud")
            panel.set_aspect("equal")
            panel.set_title(_time_label(problem, time), fontsize="medium")
            panel.set_xlabel(_label(problem, first))
        row[0].set_ylabel(_label(problem, second))
        panels[0, 0].figure.colorbar(image, ax=list(row), label=_label(problem, field))


def _time_label(problem: Problem, time: float) -> str:
    return f"{problem.time_name} = {time:.4g}" if problem.time is not None else ""


def _label(problem: Problem, name: str) -> str:
    unit = problem.specification.units.get(name)
    return f"{name} [{unit}]" if unit else name
