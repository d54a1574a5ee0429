"""Cells of a sweep put together as a view wants them: rows, columns, and what is pooled between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

from sharp.report.text import plural
from sharp.statistics.spread import Spread, spread
from sharp.studies.form import View
from sharp.studies.measures import Measure
from sharp.sweeps.row import Row
from sharp.sweeps.table import Line, axes_of

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Sample:
    """The cells that stand in one place of a table, and what a measure says of those that are finished."""

    lines: tuple[Line, ...]

    @cached_property
    def finished(self) -> tuple[Row, ...]:
        """The rows of finished runs."""
        return tuple(line.row for line in self.lines if line.row is not None and line.row.state == "finished")

    @property
    def failed(self) -> int:
        """How many cells failed before they had a result."""
        return sum(line.row is not None and line.row.state == "failed" for line in self.lines)

    @property
    def missing(self) -> int:
        """How many cells have not come to rest."""
        return len(self.lines) - len(self.finished) - self.failed

    @property
    def below_floor(self) -> int:
        """In how many the error is smaller than the data's own."""
        return sum(row.flag == "below" for row in self.finished)

    @property
    def at_floor(self) -> int:
        """In how many the error is that of the true solution."""
        return sum(row.flag == "at" for row in self.finished)

    def values(self, measure: Measure) -> tuple[float, ...]:
        """Return the measure of each run that has it."""
        values = (measure.value(row) for row in self.finished)
        return tuple(value for value in values if value is not None and isfinite(value))

    def spread(self, measure: Measure) -> Spread | None:
        """Return the spread of a measure; a finished run without an error has failed. None without any run."""
        if measure.kind == "error":
            return spread(measure.value(row) for row in self.finished) if self.finished else None
        values = self.values(measure)
        return spread(values) if values else None


@dataclass(frozen=True)
class Grid:
    """The samples of a view by row and column, and the values of rows and columns in the order of the sweep file."""

    samples: Mapping[tuple[Key, Any], Sample]
    rows: tuple[Key, ...]
    columns: tuple[Any, ...]
    shown: tuple[int, ...]
    pooled: str

    def row(self, key: Key) -> Iterator[Sample]:
        """Yield the samples of a row, empty ones where the sweep has no such cell."""
        return (self.samples.get((key, column), Sample(())) for column in self.columns)

    def label(self, key: Key) -> str:
        """Return the name of a row: its values on the axes that differ between rows."""
        return " · ".join(str(key[index]) for index in self.shown)


def grid_of(view: View, lines: Sequence[Line]) -> Grid:
    """Return the cells of a view, finished or not."""
    chosen = [line for line in lines if fits(line, view.where)]
    groups: dict[tuple[Key, Any], list[Line]] = {}
    for line in chosen:
        groups.setdefault((_key(view, line), _column(view, line)), []).append(line)
    rows = tuple(dict.fromkeys(row for row, _ in groups))
    return Grid(
        {place: Sample(tuple(group)) for place, group in groups.items()},
        rows,
        tuple(dict.fromkeys(column for _, column in groups)),
        _differing(rows, len(view.rows)),
        _pooled(view, chosen),
    )


def fits(line: Line, where: Mapping[str, Any]) -> bool:
    """Whether a cell has one of the wanted values on each axis."""
    lists = {axis: wanted if isinstance(wanted, list) else [wanted] for axis, wanted in where.items()}
    return all(line.values.get(axis) in wanted for axis, wanted in lists.items())


def values_on(axis: str, lines: Iterable[Line]) -> tuple[Any, ...]:
    """Return the values on an axis, in their order."""
    return tuple(dict.fromkeys(line.values.get(axis) for line in lines))


def grouped(lines: Iterable[Line], key: Callable[[Line], Any]) -> dict[Any, Sample]:
    """Return samples by a key, in the order in which it comes up."""
    groups: dict[Any, list[Line]] = {}
    for line in lines:
        groups.setdefault(key(line), []).append(line)
    return {name: Sample(tuple(group)) for name, group in groups.items()}


def _key(view: View, line: Line) -> Key:
    return tuple(line.values.get(axis) for axis in view.rows)


def _column(view: View, line: Line) -> Any:
    return line.values.get(view.columns) if view.columns else ""


def _differing(rows: Sequence[Key], count: int) -> tuple[int, ...]:
    """Return which parts of the keys differ between rows; the first where none does."""
    differing = tuple(index for index in range(count) if len({row[index] for row in rows}) > 1)
    return differing or (0,)


def _pooled(view: View, lines: Sequence[Line]) -> str:
    """Return in words what is pooled: `3 seeds`, `5 problems and 3 seeds`; empty where nothing is."""
    named = {*view.rows, view.columns, view.against}
    counts = {axis: len(values_on(axis, lines)) for axis in axes_of(lines) if axis not in named}
    return " and ".join(plural(count, axis.rpartition(".")[2]) for axis, count in counts.items() if count > 1)
