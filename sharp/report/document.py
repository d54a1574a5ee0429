"""The whole report as a document, in its order."""

from __future__ import annotations

from collections.abc import Callable

from sharp.document import Report, Section
from sharp.report.analysis import analysis
from sharp.report.audit import data_audit
from sharp.report.composition import shares
from sharp.report.configuration import setting
from sharp.report.failures_and_costs import discarded, failures, ledger, second_scoring
from sharp.report.feedback_metrics import measured
from sharp.report.figures import errors, lineage
from sharp.report.order import order
from sharp.report.programs import programs
from sharp.report.report_data import ReportData
from sharp.report.report_summary import headline, notes, summary
from sharp.report.reproduction import reproduction
from sharp.report.rounds import reasons, results, rounds, strategies
from sharp.report.search import SEARCHES, search
from sharp.report.solution_plots import pictures

SECTIONS = (
    summary,
    setting,
    data_audit,
    errors,
    lineage,
    strategies,
    rounds,
    search,
    results,
    measured,
    programs,
    analysis,
    reasons,
    pictures,
    failures,
    second_scoring,
    order,
    ledger,
    discarded,
    shares,
    reproduction,
)


def build_report(evidence: ReportData) -> Report:
    """Return the report of a run, finished or not."""
    return Report(
        title=f"{evidence.run.problem.title}: report of {evidence.run.path.resolve().name}",
        headline=headline(evidence),
        notes=notes(evidence),
        sections=tuple(section(evidence) for section in sections_for(evidence.run.config.method)),
    )


def sections_for(method: str) -> tuple[Callable[[ReportData], Section], ...]:
    """Return the sections that have a meaning for a method, in the order of the report."""
    foreign = {search, results} if method == "pde-sharp" else {summary, strategies, rounds, analysis, reasons}
    if method not in SEARCHES:
        foreign.add(search)
    return tuple(section for section in SECTIONS if section not in foreign)
