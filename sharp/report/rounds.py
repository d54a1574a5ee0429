"""What judges chose and did in each round and why a cycle ended; and the steps of a search without judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import inf, isfinite

from sharp.document import (
    MISSING,
    Block,
    Bullets,
    Details,
    Heading,
    Note,
    Paragraph,
    Section,
    Table,
    count_text,
    duration_text,
    error_text,
    number_text,
    plural,
    share_text,
)
from sharp.report.report_data import MAKING, ReportData, root_of
from sharp.tournament import Aim, JudgeTurn, SearchStep, Selection, best_first, not_read_in_full

SHOWN = 20  # rows of long tables that are not folded away
SEARCHES = {
    "codepde-refine": "CodePDE's best programs were shown together and better ones asked for, independently of one "
    "another. The best of these refinements is reported, even where one of the programs shown was better.",
    "funsearch": "Programs were written one after the other. Each prompt showed programs of one island, worst first; "
    "what ran was added to that island. Now and then the worse half of the islands began again with the best program "
    "of another.",
    "aide": "Each step wrote one program: a draft from nothing, the correction of a failed program, or an improvement "
    "of the best program so far.",
}
_ERRORS = ("error", "against reference", "residual")


def strategies(evidence: ReportData) -> Section:
    """Return how each judge began: its criteria, its short list and its nominee, and how far the judges agree."""
    title, selections = "Strategy of each judge", evidence.state.selections
    if not selections:
        return Section("strategies", title, (Paragraph(_no_selections(evidence)),))
    columns = ("cycle", "judge", "model", "shown", "short list", "criteria", "nominee", "reason")
    rows = []
    for s in selections:
        numbers = (str(s.cycle), str(s.judge), s.model, str(len(s.shown)), str(len(s.shortlist)))
        rows.append((*numbers, "; ".join(s.criteria) or MISSING, s.nominee, s.nominee_reason))
    table = Table(columns, tuple(rows), ("shown", "short list"))
    agreement = Bullets(tuple(_agreement(selections)))
    partly = tuple(
        f"Cycle {s.cycle}, judge {s.judge}: {not_read}"
        for s in selections
        if (not_read := not_read_in_full(s))
    )
    reading = (Heading("What judges did not read in full"), Bullets(partly)) if partly else ()
    return Section("strategies", title, (table, *reading, Heading("Agreement of the judges"), agreement))


def reasons(evidence: ReportData) -> Section:
    """Return the reason for every place on every short list."""
    folded = []
    for s in evidence.state.selections:
        listed = ", ".join(name for name, _ in s.shortlist)
        ranked = tuple((str(rank), *entry) for rank, entry in enumerate(s.shortlist, start=1))
        title = f"Cycle {s.cycle}, judge {s.judge} ({evidence.author(s.model)}): {listed}"
        folded.append(Details(title, (Table(("rank", "program", "reason"), ranked, ("rank",)),)))
    blocks: tuple[Block, ...] = tuple(folded) or (Paragraph(_no_selections(evidence)),)
    return Section("reasons", "Reasons for the short lists", blocks)


def _no_selections(evidence: ReportData) -> str:
    if evidence.run.config.synthesis.mode == "best-of-n":
        return "No judge took part: every candidate was run and the best was taken."
    return "No judge has spoken."


def _agreement(selections: tuple[Selection, ...]) -> Iterator[str]:
    for cycle in sorted({selection.cycle for selection in selections}):
        ours = [selection for selection in selections if selection.cycle == cycle]
        lists = [{name for name, _ in selection.shortlist} for selection in ours]
        shared, union = set.intersection(*lists), set.union(*lists)
        named = ", ".join(dict.fromkeys(selection.nominee for selection in ours))
        yield (
            f"Cycle {cycle}: {len(shared)} of {plural(len(union), 'program')} are on all {len(lists)} short lists; "
            f"nominated: {named}."
        )
        for (first, a), (second, b) in combinations(zip(ours, lists, strict=True), 2):
            # The Jaccard index, with its two counts.
            overlap = f"{len(a & b)} of {len(a | b)} programs ({share_text(len(a & b) / len(a | b))})"
            yield f"Cycle {cycle}, judges {first.judge} and {second.judge} share {overlap}."


def rounds(evidence: ReportData) -> Section:
    """Return every turn of every judge with its result, and the decisions to go on or to stop."""
    if not evidence.state.entries:
        why = "There were no rounds. Programs by their result on validation data:"
        intro = [Paragraph(why)] if evidence.runs else []
        return Section("rounds", "Rounds", (*intro, *_ranking(evidence)))
    numbers = (*_ERRORS, "dt", "steps", "run time", "error / baseline", "repairs")
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


def _turn(evidence: ReportData, entry: JudgeTurn) -> tuple[str, ...]:
    name, made = evidence.program_of(entry), entry.action in MAKING
    return (
        f"{entry.cycle}.{entry.round}",
        str(entry.judge),
        entry.action,
        name or MISSING,
        entry.base if entry.base and made else MISSING,
        *_result_cells(evidence, name),
        number_text(_ratio(evidence, entry, name)),
        str(entry.repairs or MISSING),
        "\n".join(_remarks(evidence, entry, name)) or MISSING,
    )


def _remarks(evidence: ReportData, entry: JudgeTurn, name: str | None) -> Iterator[str]:
    """Yield the changes of a turn with their reasons, and what is to be noted of it."""
    # A repair carries no changes of its own: those of the program that it repairs are meant.
    program = evidence.state.candidates.get(root_of(name)) if name and entry.action in MAKING else None
    for change in program.changes if program else ():
        sources = f" (from {', '.join(change.sources)})" if change.sources else ""
        yield f"{change.what}: {change.why}{sources}"
    if entry.note:
        yield f"Note: {entry.note}"
    twin = evidence.run_for(name)
    if twin is not None and twin != name and twin not in entry.note:
        yield f"Note: same program as {twin}; result reused"


def _ratio(evidence: ReportData, entry: JudgeTurn, name: str | None) -> float | None:
    error, first = evidence.ranked_by(name), evidence.baseline_of(entry.judge)
    baseline = evidence.ranked_by(first.candidate) if first else None
    return error / baseline if error is not None and baseline else None


def _result_cells(evidence: ReportData, name: str | None) -> tuple[str, ...]:
    """Return a program's errors and residual, internal time step, number of steps and run time for a table."""
    run, scores = evidence.evaluation_of(name), evidence.scores_of(name)
    if run is None:
        return (MISSING,) * 6
    errors: tuple[str, ...] = (MISSING,) * 3
    if run.failure is not None:
        errors = (f"failed: {run.failure.kind}", MISSING, MISSING)
    elif scores is not None:
        errors = tuple(map(error_text, (scores.nrmse, scores.nrmse_reference, scores.residual)))
    steps = count_text(run.internal_steps)
    return (*errors, number_text(run.internal_dt), steps, duration_text(run.steady_time_s))


def _ranking(evidence: ReportData) -> Iterator[Block]:
    """Yield the programs that were run, best first, those beyond the first ones folded away."""
    ranked = sorted(evidence.runs, key=lambda name: (evidence.runs[name].metric, name))
    columns = ("program", "strategy", *_ERRORS, "dt", "steps", "run time")
    rows = tuple(
        (name, evidence.state.candidates[name].strategy, *_result_cells(evidence, name)) for name in ranked
    )
    if not rows:
        yield Paragraph("No program was run.")
        return
    yield Table(columns, rows[:SHOWN], columns[2:])
    if rest := rows[SHOWN:]:
        yield Details(f"The other {plural(len(rest), 'program')}", (Table(columns, rest, columns[2:]),))


def _decisions(evidence: ReportData) -> Iterator[Block]:
    columns = ("cycle", "round", "best before", "best after", "gain", "stale rounds", "decision")
    rows, measured = [], Aim.of(evidence.run.config).measured
    for s in evidence.state.saturations:
        errors, stale = (
            map(error_text, (s.best_before, s.best_by_evaluation)) if measured else (MISSING, MISSING),
            f"{s.stale_rounds} of {s.patience}",
        )
        rows.append(
            (str(s.cycle), str(s.round), *errors, f"{s.gain:.1%}" if measured else MISSING, stale, s.reason)
        )
    if rows:
        caption = "Saturation, by the metric that the judges were shown"
        yield Table(columns, tuple(rows), columns[:6], caption)


def search(evidence: ReportData) -> Section:
    """Return how a search without judges went, step by step."""
    steps = evidence.state.search
    blocks: list[Block] = [Paragraph(SEARCHES[evidence.run.config.method]), *_refined(evidence)]
    if steps:
        blocks += [Bullets(tuple(_counts(steps))), *_steps(evidence)]
    elif evidence.finished:
        blocks.append(Paragraph("No program ran that the search could have begun with."))
    else:
        blocks.append(Paragraph("No step is recorded yet."))
    return Section("search", "Course of the search", tuple(blocks))


def improving(steps: Sequence[SearchStep], best: float = inf) -> tuple[SearchStep, ...]:
    """Return the steps that found a better program than any step before them, and than `best`."""
    found = []
    for step in steps:
        if step.metric < best:
            best = step.metric
            found.append(step)
    return tuple(found)


def _refined(evidence: ReportData) -> Iterator[Block]:
    """Say of CodePDE-R what a reader would not expect of the program that is reported."""
    best = evidence.state.best
    if evidence.run.config.method != "codepde-refine" or best is None:
        return
    leader = best_first(evidence.state)[0]
    if evidence.state.candidates[root_of(best)].origin != "search":
        yield Note("No refinement ran, so the best of CodePDE's own programs is reported.", "warning")
    elif evidence.state.candidates[root_of(leader)].origin != "search":
        yield Note(f"The refinements are no better than {leader}, which CodePDE found before them.")


def _counts(steps: Sequence[SearchStep]) -> Iterator[str]:
    for move, number in Counter(step.move for step in steps).items():
        if move == "reset":
            yield f"reset: {number}"
            continue
        written = [step for step in steps if step.move == move and step.candidate is not None]
        ran = sum(isfinite(step.metric) for step in written)
        lost = number - len(written)
        without = f", {lost} without a program" if lost else ""
        yield f"{move}: {plural(number, 'step')}, {plural(ran, 'program')} that ran{without}"


def _steps(evidence: ReportData) -> Iterator[Block]:
    steps = evidence.state.search
    whole = _step_table(evidence, steps)
    if len(steps) <= SHOWN:
        yield whole
        return
    made = {step.candidate for step in steps}
    # What the search began with.
    first = (name for name in best_first(evidence.state) if name not in made)
    better = improving(steps, min((evidence.runs[name].metric for name in first), default=inf))
    yield Heading("Steps that found a better program")
    yield _step_table(evidence, better) if better else Paragraph("None.")
    yield Details(f"All {len(steps)} steps", (whole,))


def _step_table(evidence: ReportData, steps: Sequence[SearchStep]) -> Table:
    numbers = (*_ERRORS, "run time", "repairs")
    rows = []
    for step in steps:
        name = step.candidate
        *errors, _, _, time = _result_cells(evidence, name)
        repairs = name[len(root_of(name)) + 1 :] if name else ""
        first = (str(step.number), step.move, ", ".join(step.parents) or MISSING, name or MISSING)
        rows.append((*first, *errors, time, repairs or MISSING, step.note or MISSING))
    return Table(("step", "move", "shown", "program", *numbers, "note"), tuple(rows), numbers)
