"""The programs as they were written: how many are distinct, who wrote them, for which methods authors were asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import isfinite

from sharp.document import (
    MISSING,
    Block,
    Bullets,
    Details,
    Paragraph,
    Section,
    Table,
    count_text,
    error_text,
    plural,
    share_text,
)
from sharp.report.report_data import ReportData
from sharp.tournament import author_records, differences, distinct, variants

_SHOWN = 12  # variants of which the constants are told


def variety(evidence: ReportData) -> Section:
    """Return how the first programs differ from each other, and what is known of them by author and by method."""
    title = "Programs as they were written"
    if not any(program.origin == "genesis" for program in evidence.state.candidates.values()):
        return Section(
            "variety", title, (Paragraph("No program has been written from nothing."), *_authors(evidence))
        )
    blocks = (*_distinct(evidence), *_smoke(evidence), *_authors(evidence), *_assignments(evidence))
    return Section("variety", title, blocks)


def _distinct(evidence: ReportData) -> Iterator[Block]:
    first = [item for item in evidence.state.candidates.values() if item.origin == "genesis"]
    programs = distinct(first, evidence.run.problem.interface.function)
    alike = variants(programs)
    count = f" Groups of variants, which differ in constants alone: {len(alike)}." if alike else ""
    yield Paragraph(
        f"{plural(len(first), 'program')} written first, {len(programs)} of them distinct: programs that differ in "
        f"names, comments, layout and the order of imports alone count once.{count}"
    )
    same = [f"{one.candidate.id} = {' = '.join(o.id for o in one.others)}" for one in programs if one.others]
    told = [
        f"{other.candidate.id} is {group[0].candidate.id} with {differences(other, group[0])}"
        for group in alike
        for other in group[1:]
    ]
    if same:
        yield Bullets(tuple(same))
    if told:
        yield Details("Variants", (Bullets(tuple(told[:_SHOWN])),))


def _smoke(evidence: ReportData) -> Iterator[Block]:
    if not evidence.state.smoke:
        return
    failed = Counter(
        run.evaluation.failure.kind
        for run in evidence.state.smoke.values()
        if run.evaluation.failure is not None
    )
    passed = len(evidence.state.smoke) - failed.total()
    kinds = "".join(f"; {kind}: {count}" for kind, count in sorted(failed.items()))
    yield Paragraph(
        f"Short runs before judging: {passed} of {plural(len(evidence.state.smoke), 'program')} passed{kinds}. "
        "Programs that failed were judged with the others."
    )


def _authors(evidence: ReportData) -> Iterator[Block]:
    """Yield who wrote what with what success, where several models write."""
    config, state = evidence.run.config, evidence.state
    if len(config.models.authors) == 1:
        return
    written = Counter(
        item.author for item in state.candidates.values() if item.origin in ("genesis", "search")
    )
    columns = ("programs", "tried", "ran", "in the better half", "share of tried", "best", "dollars")
    rows = []
    for one in author_records(config, state):
        account = evidence.ledger.by_model.get(one.model)
        dollars = account.dollars if account else 0.0
        rows.append(
            (
                one.model,
                *map(count_text, (written[one.model], one.tried, one.ran, one.successes)),
                share_text(one.successes / one.tried if one.tried else None),
                error_text(one.best) if isfinite(one.best) else MISSING,
                "unknown" if dollars is None else f"{dollars:.4g}",
            )
        )
    yield Table(
        ("author", *columns), tuple(rows), columns, "Authors of programs, repairs and hybrids not counted"
    )
    yield Paragraph(
        "Tried are programs that were run and replies that held none. The better half are programs whose result, as "
        "last repaired, is at most the median of all that ran. Dollars are those of all calls of the model in this run."
    )


def _assignments(evidence: ReportData) -> Iterator[Block]:
    """Yield which method each author was asked for, with what is known of the program."""
    asked = [
        item for item in evidence.state.candidates.values() if item.origin == "genesis" and item.assignment
    ]
    if not asked:
        return
    columns = ("program", "discretisation", "integrator", "transformation", "library", "strategy", "result")
    rows = []
    for item in asked:
        name = evidence.state.latest_version(item.id)
        evaluation, scores = evidence.evaluation_of(name), evidence.scores_of(name)
        failed = f"failed: {evaluation.failure.kind}" if evaluation and evaluation.failure else "not run"
        rows.append(
            (
                item.id,
                *vars(item.assignment).values(),
                item.strategy,
                error_text(scores.nrmse) if scores else failed,
            )
        )
    table = Table(
        columns, tuple(rows), ("result",), "Methods that authors were asked for; results as last repaired"
    )
    yield Details(f"The methods that {plural(len(asked), 'author')} were asked for", (table,))
