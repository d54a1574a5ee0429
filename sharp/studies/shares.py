"""What runs consist of: strategies and libraries, as shares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sharp.report.blocks import Figure, Table
from sharp.report.panels import Panels, Stack, StackPanel
from sharp.report.text import MISSING, share_text
from sharp.studies.cited import NOT_KNOWN
from sharp.studies.form import View
from sharp.studies.groups import Grid, Key, Sample, grid_of
from sharp.studies.measures import SHARES
from sharp.studies.shown import Record, Shown
from sharp.studies.values import caption_of, place, remark_of
from sharp.sweeps.table import Line


def show_shares(view: View, lines: Sequence[Line], anchor: str) -> Shown:
    """Return mean shares by row and column; each run counts the same, however many parts it has."""
    grid, shares = grid_of(view, lines), SHARES[view.measure]
    means = {place: _mean(sample, view.measure) for place, sample in grid.samples.items()}
    panels = tuple(_panel(grid, column, means) for column in grid.columns)
    figure = Panels(anchor, view.title, shares.title, panels)
    drawn = any(means.values())
    return Shown(
        view.title,
        (_table(view, grid, means),),
        Figure(figure, caption_of(grid, shares.title, "mean"), "The table has the numbers.")
        if drawn
        else None,
        tuple(_records(view, grid, means)),
        (f"Published: {NOT_KNOWN}.",),
    )


Means = Mapping[tuple[Key, Any], Mapping[str, float]]


def _mean(sample: Sample, name: str) -> dict[str, float]:
    """Return the mean over runs of the shares, which add up to one; empty where no run has any."""
    sums: defaultdict[str, float] = defaultdict(float)
    runs = [parts for row in sample.finished if sum((parts := SHARES[name].parts(row)).values()) > 0]
    for parts in runs:
        for part, count in parts.items():
            sums[part] += count / sum(parts.values()) / len(runs)
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _panel(grid: Grid, column: Any, means: Means) -> StackPanel:
    stacks = (
        Stack(
            grid.label(key),
            means.get((key, column), {}),
            remark_of(grid.samples.get((key, column), Sample(()))) if not means.get((key, column)) else "",
        )
        for key in grid.rows
    )
    return StackPanel(str(column), tuple(stacks))


def _table(view: View, grid: Grid, means: Means) -> Table:
    parts = tuple(dict.fromkeys(part for shares in means.values() for part in shares))
    heads = tuple(view.rows[index].rpartition(".")[2] for index in grid.shown)
    middle = (view.columns.rpartition(".")[2],) if view.columns else ()
    rows = tuple(
        (
            *(str(key[index]) for index in grid.shown),
            *((str(column),) if view.columns else ()),
            *(_share(means.get((key, column), {}), part) for part in parts),
            remark_of(grid.samples.get((key, column), Sample(()))),
        )
        for key in grid.rows
        for column in grid.columns
    )
    numbered = tuple(parts)
    over = f"mean over {grid.pooled}" if grid.pooled else "one run a cell"
    return Table(
        (*heads, *middle, *parts, "missing"), rows, numbered, f"{SHARES[view.measure].title}: {over}"
    )


def _share(shares: Mapping[str, float], part: str) -> str:
    return share_text(shares.get(part, 0.0)) if shares else MISSING


def _records(view: View, grid: Grid, means: Means) -> Iterator[Record]:
    for (key, column), shares in means.items():
        for part, share in shares.items():
            runs = len(grid.samples[key, column].finished)
            yield {
                "view": view.title,
                "measure": view.measure,
                "part": part,
                "median": share,
                "runs": runs,
                **place(view, key, column),
            }
