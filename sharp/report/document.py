"""The whole report as a document, in its order."""

from __future__ import annotations

from collections.abc import Callable

from sharp.report.accounts import discarded, failures, ledger, second_scoring
from sharp.report.analysis import analysis
from sharp.report.audit import data_audit
from sharp.report.blocks import Report, Section
from sharp.report.course import reasons, results, rounds, strategies
from sharp.report.evidence import Evidence
from sharp.report.figures import errors, lineage
from sharp.report.measured import measured
from sharp.report.opening import notes, summary, verdict
from sharp.report.order import order
from sharp.report.pictures import pictures
from sharp.report.programs import programs
from sharp.report.reproduction import reproduction
from sharp.report.search import SEARCHES, search
from sharp.report.setting import setting
from sharp.report.shares import shares

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


def compose(evidence: Evidence) -> Report:
    """Return the report of a run, finished or not."""
    return Report(
        title=f"{evidence.run.problem.title}: report of {evidence.run.path.resolve().name}",
        verdict=verdict(evidence),
        notes=notes(evidence),
        sections=tuple(section(evidence) for section in sections_for(evidence.run.config.method)),
    )


def sections_for(method: str) -> tuple[Callable[[Evidence], Section], ...]:
    """Return the sections that have a meaning for a method, in the order of the report."""
    foreign = {search, results} if method == "pde-sharp" else {summary, strategies, rounds, analysis, reasons}
    if method not in SEARCHES:
        foreign.add(search)
    return tuple(section for section in SECTIONS if section not in foreign)
