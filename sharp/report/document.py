"""The whole report as a document, in its order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sharp.document import Report, Section
from sharp.report.configuration import data_audit, reproduction, setting
from sharp.report.costs import ledger
from sharp.report.figures import front, lineage, pictures
from sharp.report.glance import glance
from sharp.report.programs import discarded, failures, measured, order, programs, second_scoring, shares
from sharp.report.report_data import ReportData
from sharp.report.report_summary import analysis, headline, notes, summary
from sharp.report.rounds import SEARCHES, reasons, results, rounds, search, strategies
from sharp.report.story import story
from sharp.report.variety import variety

STORY = (story, lineage, front, summary)
EVIDENCE = (
    *(setting, data_audit, strategies, rounds, search, results, measured, programs),
    *(analysis, reasons, pictures, failures, second_scoring, order),
    *(ledger, discarded, variety, shares, reproduction),
)


def build_report(evidence: ReportData) -> Report:
    """Return the report of a run, finished or not: the first screen, the story, and the evidence folded away."""
    return Report(
        title=f"{evidence.run.problem.title}: report of {evidence.run.path.resolve().name}",
        headline=headline(evidence),
        notes=tuple(notes(evidence)),
        sections=tuple(sections(evidence)),
        glance=glance(evidence),
    )


def sections(evidence: ReportData) -> Iterator[Section]:
    """Yield the sections that have a meaning for the run's method, in the order of the report."""
    for section in sections_for(evidence.run.config.method):
        yield replace(section(evidence), folded=section in EVIDENCE)


def sections_for(method: str) -> tuple[Callable[[ReportData], Section], ...]:
    """Return what makes the sections that have a meaning for a method, in the order of the report."""
    foreign = {search, results} if method == "pde-sharp" else {summary, strategies, rounds, analysis, reasons}
    if method not in SEARCHES:
        foreign.add(search)
    return tuple(section for section in (*STORY, *EVIDENCE) if section not in foreign)
