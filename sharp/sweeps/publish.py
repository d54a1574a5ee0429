"""Writing what people read of a sweep: table and report, whenever a run has come to rest."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hpc.files import write_atomic
from sharp.report.html import render_html
from sharp.report.markdown import render_markdown
from sharp.sweeps.file import read_sweep
from sharp.sweeps.folder import sweep_file
from sharp.sweeps.page import compose
from sharp.sweeps.record import SweepRecord, read_record
from sharp.sweeps.table import columns_of, lines_of, write_csv, write_parquet

# A large sweep shall not spend its time on writing tables: so many times what the last writing took passes first.
_PAUSE = 20


@dataclass(frozen=True)
class SweepFiles:
    """Where table and report are; `parquet` None where pyarrow is not installed."""

    csv: Path
    parquet: Path | None
    markdown: Path
    html: Path


def publish(folder: Path, name: str, description: str, record: SweepRecord) -> SweepFiles:
    """Write table and report of a sweep, each file replaced as a whole; raises what writing raises."""
    lines = lines_of(record)
    table = columns_of(lines)
    csv, parquet = folder / "table.csv", folder / "table.parquet"
    markdown, html = folder / "report.md", folder / "report.html"
    write_csv(csv, table)
    has_parquet = write_parquet(parquet, table)
    report = compose(name, description, lines)
    write_atomic(html, render_html(report).encode())
    write_atomic(markdown, render_markdown(report).encode())
    return SweepFiles(csv, parquet if has_parquet else None, markdown, html)


def publish_again(folder: Path) -> SweepFiles:
    """Write table and report of a sweep from its directory alone."""
    form = read_sweep(sweep_file(folder)).form
    return publish(folder, form.name, form.description, read_record(folder))


class Publisher:
    """Writes at every call, unless that would take more than a small share of the time; `clock` counts seconds."""

    def __init__(self, write: Callable[[], SweepFiles], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._next = clock()

    def due(self) -> None:
        """Write now, or leave it to a later call."""
        if self._clock() >= self._next:
            self.now()

    def now(self) -> SweepFiles:
        """Write now."""
        began = self._clock()
        files = self._write()
        ended = self._clock()
        self._next = ended + _PAUSE * (ended - began)
        return files
