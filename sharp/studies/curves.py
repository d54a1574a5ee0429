"""Errors along something: rounds, evaluations, or the values of an axis such as the number of candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any

from sharp.comparison.figure import course_curve
from sharp.report.blocks import Figure, Table
from sharp.report.panels import Curve, CurvePanel, Panels, Point
from sharp.report.text import MISSING
from sharp.statistics.spread import spread
from sharp.studies.cited import NOT_KNOWN
from sharp.studies.form import Study, View
from sharp.studies.groups import Grid, Key, Sample, grid_of, grouped
from sharp.studies.measures import MEASURES, SERIES, short_error
from sharp.studies.shown import Record, Shown
from sharp.studies.values import caption_of, floors, place, show_values
from sharp.sweeps.table import Line

# Of a long course a table shows these steps.
_STEPS = (1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 24, 32, 44, 64, 96, 128)
_Points = Mapping[tuple[Key, Any], tuple[Point, ...]]


def show_series(view: View, lines: Sequence[Line], anchor: str) -> Shown:
    """Return how an error came down: by round, or by evaluation, where a run that has ended keeps what it had."""
    grid, series = grid_of(view, lines), SERIES[view.measure]
    points = {place: tuple(_points(sample, view)) for place, sample in grid.samples.items()}
    return Shown(
        view.title,
        (_table(view, grid, points),),
        _figure(view, grid, points, anchor, (series.title, series.step)),
        tuple(_records(view, points)),
        (f"Published: {NOT_KNOWN}.",),
    )


def show_against(study: Study, view: View, lines: Sequence[Line], anchor: str) -> Shown:
    """Return a measure along an axis of numbers, with the table of all its values."""
    assert view.against is not None
    axis = view.against
    grid, measure = grid_of(view, lines), MEASURES[view.measure]
    points = {place: tuple(_along(sample, axis, view.measure)) for place, sample in grid.samples.items()}
    flat = view.model_copy(update={"rows": (*view.rows, axis), "show": "values", "against": None})
    values = show_values(study, flat, lines, anchor)
    names = (measure.title, axis.rpartition(".")[2])
    doubling = _doubles(sorted({point.x for each in points.values() for point in each}))
    figure = _figure(view, grid, points, anchor, names, doubling=doubling, floor=view.measure == "nrmse")
    return Shown(view.title, values.tables, figure, values.records, values.remarks)


def _points(sample: Sample, view: View) -> Iterator[Point]:
    courses = [tuple(course) for row in sample.finished if (course := SERIES[view.measure].values(row))]
    if view.show == "progress":
        yield from course_curve("", courses).points
        return
    for step in range(max(map(len, courses), default=0)):
        yield from _point(step + 1, [course[step] for course in courses if step < len(course)])


def _along(sample: Sample, axis: str, name: str) -> Iterator[Point]:
    for value, part in sorted(grouped(sample.lines, lambda line: line.values.get(axis)).items()):
        yield from _point(float(value), [MEASURES[name].value(row) for row in part.finished])


def _point(x: float, values: Sequence[float | None]) -> Iterator[Point]:
    """Yield the median, if as many as that have a value, and the range of those that have one."""
    over = spread(values) if values else None
    if over is not None and isfinite(over.median):
        most = max(value for value in values if value is not None and isfinite(value))
        yield Point(x, over.median, over.least, most)


def _doubles(values: Sequence[float]) -> bool:
    return len(values) > 2 and all(2 * one == other for one, other in pairwise(values))


def _figure(
    view: View,
    grid: Grid,
    points: _Points,
    anchor: str,
    names: tuple[str, str],
    *,
    doubling: bool = False,
    floor: bool = False,
) -> Figure | None:
    if not any(points.values()):
        return None
    known = floors(grid) if floor else [None] * len(grid.columns)
    panels = tuple(
        CurvePanel(
            str(column),
            tuple(Curve(grid.label(key), points.get((key, column), ())) for key in grid.rows),
            level,
            doubling,
        )
        for column, level in zip(grid.columns, known, strict=True)
    )
    drawing = Panels(anchor, view.title, names[0], panels, names[1])
    return Figure(
        drawing,
        caption_of(grid, f"{names[0]} against {names[1]}", "median and range"),
        "The table has the numbers.",
    )


def _table(view: View, grid: Grid, points: _Points) -> Table:
    there = {point.x for each in points.values() for point in each}
    steps = [step for step in _steps(max(there, default=0)) if step in there]
    heads = tuple(view.rows[index].rpartition(".")[2] for index in grid.shown)
    middle = (view.columns.rpartition(".")[2],) if view.columns else ()
    rows = tuple(
        (
            *(str(key[index]) for index in grid.shown),
            *((str(column),) if view.columns else ()),
            *(_at(points.get((key, column), ()), step) for step in steps),
        )
        for key in grid.rows
        for column in grid.columns
    )
    series = SERIES[view.measure]
    numbers = tuple(f"{series.step} {step:g}" if step == steps[0] else f"{step:g}" for step in steps)
    over = f", median over {grid.pooled}" if grid.pooled else ""
    return Table((*heads, *middle, *numbers), rows, numbers, f"{series.title}{over}")


def _steps(longest: float) -> list[float]:
    return sorted({*(step for step in _STEPS if step <= longest), longest})


def _at(points: Sequence[Point], step: float) -> str:
    return next((short_error(point.median) for point in points if point.x == step), MISSING)


def _records(view: View, points: _Points) -> Iterator[Record]:
    for (key, column), curve in points.items():
        for point in curve:
            yield {
                "view": view.title,
                "measure": view.measure,
                "step": point.x,
                "median": point.median,
                "least": point.low,
                "most": point.high,
                **place(view, key, column),
            }
