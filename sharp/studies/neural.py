"""Published errors of neural solvers on the problems of a study: quoted with what they mean, and no ranking."""

from __future__ import annotations

from collections.abc import Sequence

from sharp.neural.published import PublishedRow, published_rows
from sharp.report.blocks import Details, Paragraph, Section, Table
from sharp.studies.groups import values_on
from sharp.studies.measures import short_error
from sharp.sweeps.table import Line

_EXPLAINED = (
    "Errors of trained networks as they were published, for orientation. They were measured otherwise than the errors "
    "above: on other samples, and often without the first frames, which are input. They are no ranking; docs/neural.md "
    "says what each of them means."
)


def neural(lines: Sequence[Line]) -> Section:
    """Return the cited table for the problems of a sweep."""
    rows = [row for problem in values_on("problem", lines) for row in published_rows(str(problem))]
    columns = ("problem", "method", "nRMSE", "case", "comparable", "why", "source")
    table = Table(columns, tuple(map(_row, rows)), ("nRMSE",))
    measured = ("problem", "method", "how the error was formed", "how the network was trained", "read in")
    how = Table(measured, tuple(dict.fromkeys(map(_measured, rows))))
    return Section(
        "neural",
        "Neural solvers, as published",
        (Paragraph(_EXPLAINED), table, Details("How these were measured", (how,))),
    )


def _row(row: PublishedRow) -> tuple[str, ...]:
    return row.problem, row.method, short_error(row.value), row.case, row.comparable, row.note, row.source


def _measured(row: PublishedRow) -> tuple[str, ...]:
    return row.problem, row.method, row.metric, row.setting, row.read_in
