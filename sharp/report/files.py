"""The files of a report: HTML, Markdown and the solver, each replaced as a whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharp.runs import RunDirectory
    from sharp.tournament import Tournament


@dataclass(frozen=True)
class ReportFiles:
    """Where the report and the solver are; a run without a winner has no solver.

    `front` has the folders of programs on the front of error against run time, as far as they were asked for, and
    `remark` what is to be said of them.
    """

    html: Path
    markdown: Path
    solver: Path | None
    front: tuple[Path, ...] = ()
    remark: str = ""


def write_report(run: RunDirectory, state: Tournament, error_below: float | None = None) -> ReportFiles:
    """Write `report.html`, `report.md` and `solver/` of a run, finished or not.

    With the objective `front` all its programs are written below `front/`, and so is, given an error, the fastest
    program with at most that one on validation data, or the most accurate if none has. Each file is replaced as a
    whole. Raises `RunDirectoryError` where the record cannot be read or a file not be written, and `StorageFull`.
    """
    from hpc.files import write_atomic
    from hpc.journal import read_run
    from sharp.document import render_html, render_markdown
    from sharp.report.document import build_report
    from sharp.report.report_data import ReportData
    from sharp.report.solver_folder import write_front, write_member, write_solver

    evidence = ReportData(run, state, read_run(run.path))
    report = build_report(evidence)
    html, markdown = run.path / "report.html", run.path / "report.md"
    write_atomic(html, render_html(report).encode())
    write_atomic(markdown, render_markdown(report).encode())
    files = ReportFiles(html, markdown, write_solver(evidence))
    if run.config.objective == "front":
        files = replace(files, front=tuple(write_front(evidence)))
    if error_below is None:
        return files
    program, reached = evidence.fastest_below(error_below)
    if program is None:
        return replace(files, remark="No program ran successfully.")
    remark = f"The fastest program with an error of at most {error_below:g}: {program.id}"
    if not reached:
        remark = f"No program has an error of at most {error_below:g}; the most accurate: {program.id}"
    return replace(files, front=(write_member(evidence, program),), remark=remark)
