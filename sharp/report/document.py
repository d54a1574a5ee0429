"""The whole report as a document, in its order."""

from __future__ import annotations

from collections.abc import Callable

from sharp.document import Report, Section
from sharp.report.configuration import data_audit, reproduction, setting
from sharp.report.costs import ledger
from sharp.report.figures import errors, front, lineage, pictures
from sharp.report.programs import discarded, failures, measured, order, programs, second_scoring, shares
from sharp.report.report_data import ReportData
from sharp.report.report_summary import analysis, headline, notes, summary
from sharp.report.rounds import SEARCHES, reasons, results, rounds, search, strategies
from sharp.report.variety import variety

SECTIONS = (
    *(
        summary,
        setting,
        data_audit,
        errors,
        front,
        lineage,
        strategies,
        rounds,
        search,
        results,
        measured,
        programs,
    ),
    *(
        analysis,
        reasons,
        pictures,
        failures,
        second_scoring,
        order,
        ledger,
        discarded,
        variety,
        shares,
        reproduction,
    ),
)


def build_report(evidence: ReportData) -> Report:
    """Return the report of a run, finished or not."""
    return Report(
        title=f"{evidence.run.problem.title}: report of {evidence.run.path.resolve().name}",
        headline=headline(evidence),
        notes=tuple(notes(evidence)),
        sections=tuple(section(evidence) for section in sections_for(evidence.run.config.method)),
    )


def sections_for(method: str) -> tuple[Callable[[ReportData], Section], ...]:
    """Return the sections that have a meaning for a method, in the order of the report."""
    foreign = {search, results} if method == "pde-sharp" else {summary, strategies, rounds, analysis, reasons}
    if method not in SEARCHES:
        foreign.add(search)
    return tuple(section for section in SECTIONS if section not in foreign)
