"""The files of a report: HTML, Markdown and the solver, each replaced as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharp.runs import RunDirectory
    from sharp.tournament import Tournament


@dataclass(frozen=True)
class ReportFiles:
    """Where the report and the solver are; a run without a winner has no solver."""

    html: Path
    markdown: Path
    solver: Path | None


def write_report(run: RunDirectory, state: Tournament) -> ReportFiles:
    """Write `report.html`, `report.md` and `solver/` of a run, finished or not.

    Each file is replaced as a whole. Raises `RunDirectoryError` where the record cannot be read or a file not be
    written, and `StorageFull`.
    """
    from hpc.files import write_atomic
    from hpc.journal import read_run
    from sharp.document import render_html, render_markdown
    from sharp.report.document import build_report
    from sharp.report.report_data import ReportData
    from sharp.report.solver_folder import write_solver

    evidence = ReportData(run, state, read_run(run.path))
    report = build_report(evidence)
    html, markdown = run.path / "report.html", run.path / "report.md"
    write_atomic(html, render_html(report).encode())
    write_atomic(markdown, render_markdown(report).encode())
    return ReportFiles(html, markdown, write_solver(evidence))
