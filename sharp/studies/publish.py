"""Writing a study from the record of its sweep: page, Markdown, CSV, and each figure as a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc.errors import RunDirectoryError
from hpc.files import write_atomic
from sharp.report.blocks import Report
from sharp.report.html import render_html
from sharp.report.markdown import render_markdown
from sharp.report.panel_figure import svg_file
from sharp.studies.form import StudyFile
from sharp.studies.page import compose, show
from sharp.studies.shown import Record, Shown
from sharp.sweeps.file import read_sweep
from sharp.sweeps.folder import is_sweep, sweep_file
from sharp.sweeps.record import read_record
from sharp.sweeps.table import lines_of

_COLUMNS = (
    *("view", "row", "column", "measure", "part", "step", "published"),
    *("runs", "median", "least", "most", "below_floor", "failed", "missing"),
)


@dataclass(frozen=True)
class StudyPage:
    """A study that was rendered, and where it lies; `figures` are SVG files, one for each view that has one."""

    report: Report
    shown: tuple[Shown, ...]
    html: Path
    markdown: Path
    csv: Path
    figures: tuple[Path, ...]


def render_study(file: StudyFile, folder: Path) -> StudyPage:
    """Write the page of a study into the directory of its sweep, from the record of the sweep alone.

    Raises `RunDirectoryError` where there is no sweep, and `ConfigurationError` where it is another study's.
    """
    if not is_sweep(folder):
        raise RunDirectoryError(f"{folder} holds no sweep (there is no {sweep_file(folder)})")
    sweep = read_sweep(sweep_file(folder))
    file.check_axes(sweep)
    lines = lines_of(read_record(folder))
    shown = tuple(
        show(file.study, view, lines, f"{file.study.name}-{number}")
        for number, view in enumerate(file.study.views, start=1)
    )
    report = compose(file, sweep, lines, shown)
    return _written(file.study.name, folder, report, shown)


def _written(name: str, folder: Path, report: Report, shown: tuple[Shown, ...]) -> StudyPage:
    html, markdown, table = (folder / f"{name}.{ending}" for ending in ("html", "md", "csv"))
    write_atomic(html, render_html(report).encode())
    write_atomic(markdown, render_markdown(report).encode())
    write_atomic(table, _csv([record for each in shown for record in each.records]))
    return StudyPage(report, shown, html, markdown, table, tuple(_figures(folder, shown)))


def _figures(folder: Path, shown: Sequence[Shown]) -> list[Path]:
    paths = []
    for each in shown:
        if each.panels is not None and each.figure is not None:
            path = folder / f"{each.panels.anchor}.svg"
            write_atomic(path, svg_file(each.panels, each.figure.caption))
            paths.append(path)
    return paths


def _csv(records: Sequence[Record]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()
