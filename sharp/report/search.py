"""The course of a search without judges: its steps, and those that found a better program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf, isfinite

from sharp.document import Block, Bullets, Details, Heading, Note, Paragraph, Section, Table
from sharp.document.text import MISSING, plural
from sharp.report.report_data import ReportData, root_of
from sharp.report.rounds import SHOWN, course_cells, error_cells
from sharp.tournament.finalize import best_first
from sharp.tournament.state import SearchStep

SEARCHES = {
    "codepde-refine": "CodePDE's best programs were shown together and better ones asked for, independently of one "
    "another. The best of these refinements is reported, even where one of the programs shown was better.",
    "funsearch": "Programs were written one after the other. Each prompt showed programs of one island, worst first; "
    "what ran was added to that island. Now and then the worse half of the islands began again with the best program "
    "of another.",
    "aide": "Each step wrote one program: a draft from nothing, the correction of a failed program, or an improvement "
    "of the best program so far.",
}
COLUMNS = (
    "step",
    "move",
    "shown",
    "program",
    "error",
    "against reference",
    "residual",
    "run time",
    "repairs",
    "note",
)
_NUMBERS = COLUMNS[4:9]


def search(evidence: ReportData) -> Section:
    """Return how the search went, step by step."""
    steps = evidence.state.search
    blocks: list[Block] = [Paragraph(SEARCHES[evidence.run.config.method]), *_winner(evidence)]
    if steps:
        blocks += [Bullets(tuple(_counts(steps))), *_tables(evidence)]
    else:
        blocks.append(Paragraph(_no_steps(evidence)))
    return Section("search", "Course of the search", tuple(blocks))


def improving(steps: Sequence[SearchStep], best: float = inf) -> tuple[SearchStep, ...]:
    """Return the steps that found a better program than any step before them, and than `best`."""
    found = []
    for step in steps:
        if step.metric < best:
            best = step.metric
            found.append(step)
    return tuple(found)


def _winner(evidence: ReportData) -> Iterator[Block]:
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
        ours = [step for step in steps if step.move == move]
        if move == "reset":
            yield f"reset: {number}"
            continue
        written = [step for step in ours if step.candidate is not None]
        ran = sum(isfinite(step.metric) for step in written)
        lost = number - len(written)
        without = f", {lost} without a program" if lost else ""
        yield f"{move}: {plural(number, 'step')}, {plural(ran, 'program')} that ran{without}"


def _tables(evidence: ReportData) -> Iterator[Block]:
    steps = evidence.state.search
    whole = _table(evidence, steps)
    if len(steps) <= SHOWN:
        yield whole
        return
    better = improving(steps, _before(evidence))
    yield Heading("Steps that found a better program")
    yield _table(evidence, better) if better else Paragraph("None.")
    yield Details(f"All {len(steps)} steps", (whole,))


def _before(evidence: ReportData) -> float:
    """Return the best metric of the programs that the search began with."""
    steps = {step.candidate for step in evidence.state.search}
    first = (name for name in best_first(evidence.state) if name not in steps)
    return min((evidence.runs[name].metric for name in first), default=inf)


def _table(evidence: ReportData, steps: Sequence[SearchStep]) -> Table:
    return Table(COLUMNS, tuple(_row(evidence, step) for step in steps), _NUMBERS)


def _row(evidence: ReportData, step: SearchStep) -> tuple[str, ...]:
    name = step.candidate
    return (
        str(step.number),
        step.move,
        ", ".join(step.parents) or MISSING,
        name or MISSING,
        *error_cells(evidence, name),
        course_cells(evidence.evaluation_of(name))[2],
        _repairs(name),
        step.note or MISSING,
    )


def _repairs(name: str | None) -> str:
    return MISSING if name is None else name[len(root_of(name)) + 1 :] or MISSING


def _no_steps(evidence: ReportData) -> str:
    if not evidence.finished:
        return "No step is recorded yet."
    return "No program ran that the search could have begun with."
