"""Records of sweeps that were never run, and what is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pandas import DataFrame

from sharp.document import Report
from sharp.experiments.run_summary import RunSummary
from sharp.experiments.sweeps.sweep_log import KnownCell, SweepRecord
from sharp.experiments.sweeps.sweep_report import build_report, sweep_rows


@dataclass(frozen=True)
class Line:
    """One cell: its name, its values on the axes, and its row (None: not finished)."""

    cell: str
    values: Mapping[str, Any]
    row: RunSummary | None


def record_of(lines: Iterable[Line]) -> SweepRecord:
    """The record of a sweep with these cells."""
    lines = list(lines)
    cells = {each.cell: KnownCell("w", candidates=4, values=each.values) for each in lines}
    return SweepRecord(cells, tuple(cells), {each.cell: each.row for each in lines if each.row})


def frame(lines: Iterable[Line]) -> DataFrame:
    """Its rows."""
    return sweep_rows(record_of(lines))


def compose(name: str, description: str, lines: Iterable[Line]) -> Report:
    """Its page."""
    record = record_of(lines)
    return build_report(name, description, record, sweep_rows(record))
