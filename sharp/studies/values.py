"""Single figures over rows and columns: a table with spread and flags, and panels of dots or bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from statistics import median
from typing import Any

from sharp.report.blocks import Figure, Table
from sharp.report.panels import Bar, BarPanel, Panels
from sharp.report.panels import Cited as Mark
from sharp.report.text import MISSING
from sharp.studies.cited import NOT_KNOWN, cited_besides, cited_for, value_in
from sharp.studies.form import Cited, Study, View
from sharp.studies.groups import Grid, Key, Sample, grid_of
from sharp.studies.measures import MEASURES, Measure
from sharp.studies.shown import Record, Shown
from sharp.sweeps.table import Line

FLOOR = "the data's own distance from the true solution"


def show_values(study: Study, view: View, lines: Sequence[Line], anchor: str) -> Shown:
    """Return a measure of the winners by row and column, beside what was published."""
    grid, measure = grid_of(view, lines), MEASURES[view.measure]
    cited = cited_for(study, view, grid)
    besides = cited_besides(study, view, grid)
    figure = Panels(anchor, view.title, measure.title, tuple(_panels(grid, measure, cited)))
    known = any(cited.values()) or bool(besides)
    return Shown(
        view.title,
        (_table(view, grid, measure, cited, besides),),
        Figure(
            figure, caption_of(grid, measure.title, "median and single runs"), "The table has the numbers."
        )
        if grid.rows
        else None,
        tuple(_records(view, grid, measure, cited)),
        () if known else (f"Published: {NOT_KNOWN}.",),
    )


def caption_of(grid: Grid, title: str, of: str) -> str:
    """Return what stands below a figure; `of` says what is drawn of that which is pooled."""
    pooled = f": {of} over {grid.pooled}" if grid.pooled else ""
    return f"{title[:1].upper()}{title[1:]}{pooled}."


def cell_text(sample: Sample, measure: Measure) -> str:
    """Return median, range, flags, and what is missing, one below the other."""
    return "\n".join(_cell(sample, measure)) or MISSING


def floors(grid: Grid) -> list[float | None]:
    """Return the data's floor by column: the median over all runs, which have the same test data."""
    return [_floor(grid, column) for column in grid.columns]


def remark_of(sample: Sample) -> str:
    """Return what is missing of a sample; empty where nothing is."""
    if not sample.lines:
        return ""
    of = "" if len(sample.lines) == 1 else f" of {len(sample.lines)}"
    parts = ((sample.missing, "to do"), (sample.failed, "failed"))
    return ", ".join(f"{count}{of} {what}" if of else what for count, what in parts if count)


def column_names(view: View, grid: Grid) -> tuple[str, ...]:
    """Return the names of the columns of values."""
    return tuple(str(column) or MEASURES[view.measure].title for column in grid.columns)


def _cell(sample: Sample, measure: Measure) -> Iterator[str]:
    spread = sample.spread(measure)
    if spread is not None:
        yield measure.text(spread.median) if isfinite(spread.median) else "no result"
        if spread.count > 1 and isfinite(spread.least) and spread.least != spread.most:
            most = measure.text(spread.most) if isfinite(spread.most) else "none"
            yield f"({measure.text(spread.least)} to {most})"
    if measure is MEASURES["nrmse"]:
        yield from _flags(sample)
    remark = remark_of(sample)
    if remark:
        yield remark


def _flags(sample: Sample) -> Iterator[str]:
    for count, what in ((sample.below_floor, "below floor"), (sample.at_floor, "at floor")):
        if count:
            yield what if len(sample.lines) == 1 else f"{count} of {len(sample.lines)} {what}"


def _table(
    view: View, grid: Grid, measure: Measure, cited: dict[Key, tuple[Cited, ...]], besides: Sequence[Cited]
) -> Table:
    names = column_names(view, grid)
    heads = tuple(view.rows[index].rpartition(".")[2] for index in grid.shown)
    known = any(cited.values())
    rows: list[tuple[str, ...]] = []
    muted: list[int] = []
    for key in grid.rows:
        rows.append((*_heads(grid, key), *(cell_text(sample, measure) for sample in grid.row(key))))
        for each in cited[key]:
            muted.append(len(rows))
            rows.append(_cited_row(f"published, {each.name}", each, grid, measure, len(heads)))
        if known and not cited[key]:
            muted.append(len(rows))
            rows.append(("published", *[""] * (len(heads) - 1), *[NOT_KNOWN] * len(names)))
    for each in besides:
        muted.append(len(rows))
        where = ", ".join(map(str, each.at.values()))
        rows.append(_cited_row(f"{where}: published, {each.name}", each, grid, measure, len(heads)))
    if measure is MEASURES["nrmse"] and any(floor is not None for floor in floors(grid)):
        muted.append(len(rows))
        rows.append((FLOOR, *[""] * (len(heads) - 1), *(_text(measure, floor) for floor in floors(grid))))
    return Table((*heads, *names), tuple(rows), names, _caption(grid, measure), tuple(muted))


def _heads(grid: Grid, key: Key) -> tuple[str, ...]:
    return tuple(str(key[index]) for index in grid.shown)


def _caption(grid: Grid, measure: Measure) -> str:
    over = f"median over {grid.pooled}, with the least and the most" if grid.pooled else "one run a cell"
    return f"{measure.title}: {over}"


def _cited_row(label: str, cited: Cited, grid: Grid, measure: Measure, heads: int) -> tuple[str, ...]:
    values = (value_in(cited, column) for column in grid.columns)
    texts = (NOT_KNOWN if value is None else measure.text(value) for value in values)
    return (label, *[""] * (heads - 1), *texts)


def _text(measure: Measure, value: float | None) -> str:
    return MISSING if value is None else measure.text(value)


def _panels(grid: Grid, measure: Measure, cited: dict[Key, tuple[Cited, ...]]) -> Iterator[BarPanel]:
    has_floor = measure is MEASURES["nrmse"]
    for column in grid.columns:
        bars = tuple(_bar(grid, key, column, measure, cited[key]) for key in grid.rows)
        yield BarPanel(str(column), bars, measure.kind, _floor(grid, column) if has_floor else None)


def _bar(grid: Grid, key: Key, column: Any, measure: Measure, cited: Sequence[Cited]) -> Bar:
    sample = grid.samples.get((key, column), Sample(()))
    spread = sample.spread(measure)
    known = spread is not None and isfinite(spread.median)
    marks = ((value_in(each, column), each.name) for each in cited)
    return Bar(
        grid.label(key),
        sample.values(measure) if known else (),
        spread.median if spread is not None and known else None,
        tuple(Mark(value, name) for value, name in marks if value is not None),
        remark_of(sample) or ("" if known or not sample.finished else "no result"),
        has_flag(sample, measure),
    )


def has_flag(sample: Sample, measure: Measure) -> bool:
    """Whether the median of a sample's errors is below the floor."""
    return measure is MEASURES["nrmse"] and 2 * sample.below_floor > len(sample.finished)


def _floor(grid: Grid, column: Any) -> float | None:
    known = [
        row.floor
        for (_, name), sample in grid.samples.items()
        if name == column
        for row in sample.finished
        if row.floor is not None
    ]
    return median(known) if known else None


def _records(
    view: View, grid: Grid, measure: Measure, cited: dict[Key, tuple[Cited, ...]]
) -> Iterator[Record]:
    for key in grid.rows:
        for column in grid.columns:
            yield {
                **record_of(view, grid.samples.get((key, column), Sample(())), measure),
                **place(view, key, column),
            }
            for each in cited[key]:
                value = value_in(each, column)
                if value is not None:
                    yield {
                        "view": view.title,
                        "median": value,
                        "published": each.name,
                        **place(view, key, column),
                    }


def place(view: View, key: Key, column: Any) -> Record:
    """Return where a record stands."""
    row = ", ".join(f"{axis}={value}" for axis, value in zip(view.rows, key, strict=False))
    return {"row": row, "column": str(column)}


def record_of(view: View, sample: Sample, measure: Measure) -> Record:
    """Return a sample for programs."""
    spread = sample.spread(measure)
    figures = {} if spread is None else {"median": spread.median, "least": spread.least, "most": spread.most}
    return {
        "view": view.title,
        "measure": view.measure,
        "runs": len(sample.finished),
        **{name: value for name, value in figures.items() if isfinite(value)},
        "below_floor": sample.below_floor,
        "failed": sample.failed,
        "missing": sample.missing,
    }
