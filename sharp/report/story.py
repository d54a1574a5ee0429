"""The story of a run: who wrote what, what judges chose and why, and what each change did, with its diff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sharp.document import (
    Block,
    Bullets,
    Details,
    Diff,
    Heading,
    Paragraph,
    Section,
    error_text,
    plural,
    share_text,
)
from sharp.llm import render_diff
from sharp.report.programs import explanation
from sharp.report.report_data import MAKING, ReportData
from sharp.tournament import Aim, Candidate, JudgeTurn, best_first

_KINDS = {"debug": "repair", "search": "step of the search"}


def story(evidence: ReportData) -> Section:
    """Return the course of a run, round by round."""
    state = evidence.state
    later = [program for program in state.candidates.values() if program.parents]
    places = {(program.cycle, program.round) for program in later}
    places |= {(entry.cycle, entry.round) for entry in state.entries}
    places |= {(each.cycle, 1) for each in state.selections}
    blocks: list[Block] = [Paragraph(_beginning(evidence))]
    for cycle, number in sorted(places):
        if number == 1:
            blocks += _choices(evidence, cycle)
        made = [program for program in later if (program.cycle, program.round) == (cycle, number)]
        if made:
            blocks.append(Heading(f"Round {cycle}.{number}" if cycle else "Changes"))
        blocks += (change(evidence, program) for program in made)
        blocks += _others([turn for turn in state.entries if (turn.cycle, turn.round) == (cycle, number)])
        ends = (s for s in state.saturations if (s.cycle, s.round) == (cycle, number) and s.stop)
        blocks += (Paragraph(f"The cycle ends: {s.reason}.") for s in ends)
    return Section("story", "The story, round by round", tuple(blocks))


def _beginning(evidence: ReportData) -> str:
    """Return who wrote the first programs, how many ran, and which was the best if anything was measured."""
    first = [program for program in evidence.state.candidates.values() if not program.parents]
    if not first:
        return "No program has been written yet."
    authors = Counter(evidence.author(program.author) for program in first if program.author)
    given = sum(not program.author for program in first)
    written = ", ".join(f"{count} by {name}" for name, count in authors.items())
    parts = [f"{plural(len(first), 'program')} stood at the beginning: {written or 'none written'}"]
    parts += [f"{given} given to start from"] if given else []
    parts += (
        [f"{plural(len(evidence.state.discarded), 'answer')} held no program"]
        if evidence.state.discarded
        else []
    )
    ran = [p.id for p in first if (found := evidence.evaluation_of(p.id)) is not None and found.ok]
    parts.append(f"{len(ran)} of them ran")
    best = next((name for name in best_first(evidence.state) if name in ran), None)
    if best is not None and Aim.of(evidence.run.config).measured:
        parts.append(f"the best, {best}, had {error_text(evidence.ranked_by(best))}")
    return "; ".join(parts) + "."


def _choices(evidence: ReportData, cycle: int) -> Iterator[Block]:
    """Yield what each judge nominated in a cycle, with its reason."""
    chosen = [each for each in evidence.state.selections if each.cycle == cycle]
    if chosen:
        yield Heading(f"Cycle {cycle}: judges choose")
        yield Bullets(
            tuple(
                f"Judge {s.judge} ({evidence.author(s.model)}) nominates {s.nominee}: {s.nominee_reason}"
                for s in chosen
            )
        )


def change(evidence: ReportData, program: Candidate) -> Details:
    """Return what a program changed in its base, why, and what came of it, under one line that says all of it."""
    base = evidence.state.candidates.get(program.parents[0])
    kind = _KINDS.get(program.origin) or f"change by judge {program.judge}"
    outcomes = " → ".join(_outcome(evidence, name) for name in (program.parents[0], program.id))
    share = (
        "" if program.changed_share is None else f", {share_text(program.changed_share)} of the lines differ"
    )
    title = f"{program.parents[0]} → {program.id}, {kind}: {outcomes}{share}"
    reasons = tuple(f"{each.what}: {each.why}" for each in program.changes)
    diff = () if base is None else (Diff(render_diff(base.code, program.code, "solver.py")),)
    return Details(title, (*([Bullets(reasons)] if reasons else []), *explanation(evidence, program), *diff))


def _outcome(evidence: ReportData, name: str) -> str:
    evaluation = evidence.evaluation_of(name)
    if evaluation is not None and evaluation.failure is not None:
        return f"failed ({evaluation.failure.kind})"
    return error_text(evidence.ranked_by(name))


def _others(turns: list[JudgeTurn]) -> Iterator[Block]:
    """Yield the turns that made no program, a round's first nominations left out."""
    quiet = [turn for turn in turns if turn.action not in (*MAKING, "nominee")]
    if quiet:
        yield Bullets(tuple(_quiet(turn) for turn in quiet))


def _quiet(turn: JudgeTurn) -> str:
    kept = f" {turn.candidate}" if turn.candidate else ""
    return f"Judge {turn.judge}: {turn.action}{kept}" + (f" ({turn.note})" if turn.note else "")
