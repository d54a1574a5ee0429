"""The course of the tournament: what each judge chose, what it did in each round, and why a cycle ended."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from sharp.document import Block, Bullets, Details, Heading, Paragraph, Section, Table
from sharp.document.text import (
    MISSING,
    count_text,
    duration_text,
    error_text,
    number_text,
    plural,
    share_text,
)
from sharp.evaluation.protocol import Evaluation, Scores
from sharp.report.report_data import MAKING, ReportData, root_of
from sharp.tournament.state import JudgeTurn, Selection

SHOWN = 20  # rows of long tables that are not folded away


def strategies(evidence: ReportData) -> Section:
    """Return how each judge began: its criteria, its short list and its nominee, and how far the judges agree."""
    selections = evidence.state.selections
    if not selections:
        return Section("strategies", "Strategy of each judge", (Paragraph(_no_selections(evidence)),))
    columns = ("cycle", "judge", "model", "shown", "short list", "criteria", "nominee", "reason")
    rows = tuple(
        (
            str(s.cycle),
            str(s.judge),
            s.model,
            str(len(s.shown)),
            str(len(s.shortlist)),
            "; ".join(s.criteria) or MISSING,
            s.nominee,
            s.nominee_reason,
        )
        for s in selections
    )
    agreement = Bullets(tuple(_agreement(selections)))
    table = Table(columns, rows, ("shown", "short list"))
    return Section(
        "strategies", "Strategy of each judge", (table, Heading("Agreement of the judges"), agreement)
    )


def reasons(evidence: ReportData) -> Section:
    """Return the reason for every place on every short list."""
    folded = tuple(
        Details(
            f"Cycle {s.cycle}, judge {s.judge} ({evidence.author(s.model)}): {', '.join(i for i, _ in s.shortlist)}",
            (Table(("rank", "program", "reason"), _ranked(s), ("rank",)),),
        )
        for s in evidence.state.selections
    )
    blocks: tuple[Block, ...] = folded or (Paragraph(_no_selections(evidence)),)
    return Section("reasons", "Reasons for the short lists", blocks)


def rounds(evidence: ReportData) -> Section:
    """Return every turn of every judge with its result, and the decisions to go on or to stop."""
    if not evidence.state.entries:
        return Section("rounds", "Rounds", tuple(_runs(evidence)))
    numbers = (
        "error",
        "against reference",
        "residual",
        "dt",
        "steps",
        "run time",
        "error / baseline",
        "repairs",
    )
    columns = ("round", "judge", "action", "program", "base", *numbers, "changes and notes")
    table = Table(columns, tuple(_turn(evidence, entry) for entry in evidence.state.entries), numbers)
    explained = Paragraph(
        "Rounds are numbered cycle.round. Errors are those on validation data; the baseline is the judge's first "
        "nominee. A turn without a new program shows the result of the program that the judge stays with."
    )
    return Section("rounds", "Rounds", (explained, table, *_decisions(evidence)))


def results(evidence: ReportData) -> Section:
    """Return the programs that a method without judges has run, best first."""
    explained = Paragraph("By their errors on validation data, from which the method learns.")
    return Section("results", "Programs by their result", (explained, *_ranking(evidence)))


def _no_selections(evidence: ReportData) -> str:
    if evidence.run.config.synthesis.mode == "best-of-n":
        return "No judge took part: every candidate was run and the best was taken."
    return "No judge has spoken."


def _ranked(selection: Selection) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (str(rank), name, reason) for rank, (name, reason) in enumerate(selection.shortlist, start=1)
    )


def _agreement(selections: tuple[Selection, ...]) -> Iterator[str]:
    for cycle in sorted({selection.cycle for selection in selections}):
        ours = [selection for selection in selections if selection.cycle == cycle]
        lists = [_listed(selection) for selection in ours]
        shared, union = set.intersection(*lists), set.union(*lists)
        named = ", ".join(dict.fromkeys(selection.nominee for selection in ours))
        yield (
            f"Cycle {cycle}: {len(shared)} of {plural(len(union), 'program')} are on all {len(lists)} short lists; "
            f"nominated: {named}."
        )
        for first, second in combinations(ours, 2):
            yield f"Cycle {cycle}, judges {first.judge} and {second.judge} share {_overlap(first, second)}."


def _overlap(first: Selection, second: Selection) -> str:
    """Return how much of two short lists is on both: their Jaccard index, with its two counts."""
    both, either = _listed(first) & _listed(second), _listed(first) | _listed(second)
    return f"{len(both)} of {len(either)} programs ({share_text(len(both) / len(either))})"


def _listed(selection: Selection) -> set[str]:
    return {name for name, _ in selection.shortlist}


def _turn(evidence: ReportData, entry: JudgeTurn) -> tuple[str, ...]:
    name, made = evidence.program_of(entry), entry.action in MAKING
    return (
        f"{entry.cycle}.{entry.round}",
        str(entry.judge),
        entry.action,
        name or MISSING,
        entry.base if entry.base and made else MISSING,
        *error_cells(evidence, name),
        *course_cells(evidence.evaluation_of(name)),
        number_text(_ratio(evidence, entry, evidence.scores_of(name))),
        str(entry.repairs or MISSING),
        "\n".join(_remarks(evidence, entry, name)) or MISSING,
    )


def _remarks(evidence: ReportData, entry: JudgeTurn, name: str | None) -> Iterator[str]:
    """Yield the changes of a turn with their reasons, and what is to be noted of it."""
    # A repair carries no changes of its own: those of the program that it repairs are meant.
    program = evidence.state.candidates.get(root_of(name)) if name and entry.action in MAKING else None
    for change in program.changes if program else ():
        yield f"{change.what}: {change.why}" + (
            f" (from {', '.join(change.sources)})" if change.sources else ""
        )
    if entry.note:
        yield f"Note: {entry.note}"
    twin = evidence.run_for(name)
    if twin is not None and twin != name and twin not in entry.note:
        yield f"Note: same program as {twin}; result reused"


def error_cells(evidence: ReportData, name: str | None) -> tuple[str, str, str]:
    """Return a program's errors against data set and true solution and its residual for a table."""
    evaluation, scores = evidence.evaluation_of(name), evidence.scores_of(name)
    if evaluation is not None and evaluation.failure is not None:
        return f"failed: {evaluation.failure.kind}", MISSING, MISSING
    if scores is None:
        return MISSING, MISSING, MISSING
    return error_text(scores.nrmse), error_text(scores.nrmse_reference), error_text(scores.residual)


def course_cells(evaluation: Evaluation | None) -> tuple[str, str, str]:
    """Return internal time step, number of steps and run time of a program's run for a table."""
    if evaluation is None:
        return MISSING, MISSING, MISSING
    return (
        number_text(evaluation.internal_dt),
        count_text(evaluation.internal_steps),
        duration_text(evaluation.run_time_s),
    )


def _ratio(evidence: ReportData, entry: JudgeTurn, scores: Scores | None) -> float | None:
    first = evidence.baseline_of(entry.judge)
    baseline = evidence.scores_of(first.candidate) if first else None
    if scores is None or baseline is None or not baseline.nrmse:
        return None
    return scores.nrmse / baseline.nrmse


def _runs(evidence: ReportData) -> Iterator[Block]:
    """Say why there are no rounds; where every candidate was run, list what came of each."""
    if evidence.runs:
        yield Paragraph("There were no rounds. Programs by their result on validation data:")
    yield from _ranking(evidence)


def _ranking(evidence: ReportData) -> Iterator[Block]:
    """Yield the programs that were run, best first, those beyond the first ones folded away."""
    ranked = sorted(evidence.runs, key=lambda name: (evidence.runs[name].metric, name))
    columns = ("program", "strategy", "error", "against reference", "residual", "dt", "steps", "run time")
    rows = tuple(
        (
            name,
            evidence.state.candidates[name].strategy,
            *error_cells(evidence, name),
            *course_cells(evidence.evaluation_of(name)),
        )
        for name in ranked
    )
    if not rows:
        yield Paragraph("No program was run.")
        return
    yield Table(columns, rows[:SHOWN], columns[2:])
    if rest := rows[SHOWN:]:
        yield Details(f"The other {plural(len(rest), 'program')}", (Table(columns, rest, columns[2:]),))


def _decisions(evidence: ReportData) -> Iterator[Block]:
    columns = ("cycle", "round", "best before", "best after", "gain", "stale rounds", "decision")
    rows = tuple(
        (
            str(s.cycle),
            str(s.round),
            error_text(s.best_before),
            error_text(s.best_by_evaluation),
            f"{s.gain:.1%}",
            f"{s.stale_rounds} of {s.patience}",
            s.reason,
        )
        for s in evidence.state.saturations
    )
    if rows:
        yield Table(columns, rows, columns[:6], "Saturation, by the metric that the judges were shown")
