"""What has become of a view: blocks for the page, and records for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sharp.report.blocks import Block, Figure, Table
from sharp.report.panels import Panels

Value = str | int | float | None
Record = Mapping[str, Value]


@dataclass(frozen=True)
class Shown:
    """A view as tables, a figure if there is something to draw, and records of one form for all views."""

    title: str
    tables: tuple[Table, ...]
    figure: Figure | None
    records: tuple[Record, ...]
    remarks: tuple[str, ...] = ()
    folded: tuple[Block, ...] = ()

    @property
    def panels(self) -> Panels | None:
        """The drawing of the figure."""
        drawn = None if self.figure is None else self.figure.drawing
        return drawn if isinstance(drawn, Panels) else None
