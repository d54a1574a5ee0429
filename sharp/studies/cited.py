"""Published values beside ours: which of them belong to which row of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sharp.studies.form import GENERATOR, Cited, Study, View
from sharp.studies.groups import Grid, Key

NOT_KNOWN = "not known to us"
ALL = "all"


def cited_for(study: Study, view: View, grid: Grid) -> dict[Key, tuple[Cited, ...]]:
    """Return the published values by row; a row of a model that was published has those of this model alone."""
    found = _of_view(study, view)
    return {
        row: _of_row(view, row, [each for each in found if _stands(view, each, row)]) for row in grid.rows
    }


def cited_besides(study: Study, view: View, grid: Grid) -> tuple[Cited, ...]:
    """Return the published values that would stand in rows which the sweep does not have."""
    return tuple(
        each for each in _of_view(study, view) if not any(_stands(view, each, row) for row in grid.rows)
    )


def value_in(cited: Cited, column: Any) -> float | None:
    """Return the published value in a column, or that for all of them, if either is known to us."""
    return cited.values.get(str(column), cited.values.get(ALL))


def _of_view(study: Study, view: View) -> list[Cited]:
    """Return the values of the view's measure that are placed by its rows alone."""
    figures = study.published.figures if view.show in ("values", "against") else ()
    return [each for each in figures if each.measure == view.measure and set(each.at) <= set(view.rows)]


def _stands(view: View, cited: Cited, row: Key) -> bool:
    values = dict(zip(view.rows, row, strict=False))
    return all(values[axis] == value for axis, value in cited.at.items())


def _of_row(view: View, row: Key, found: Sequence[Cited]) -> tuple[Cited, ...]:
    generator = dict(zip(view.rows, row, strict=False)).get(GENERATOR)
    same = [each for each in found if each.by is not None and each.by == generator]
    return tuple(same or found)
