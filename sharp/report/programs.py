"""The programs themselves: what each change did to its base, and the whole text of those that matter."""

from __future__ import annotations

from collections.abc import Iterator

from sharp.document import Block, Code, Details, Diff, ModelText, Paragraph, Section
from sharp.document.text import MISSING, error_text, share_text
from sharp.llm.patching import render_diff
from sharp.report.report_data import ReportData
from sharp.tournament.state import Candidate

_KINDS = {"debug": "repair", "search": "step of the search"}


def programs(evidence: ReportData) -> Section:
    """Return the winner's code, the nominees' code, and a diff from its base for every later program."""
    folded = (*_whole(evidence), *_diffs(evidence))
    blocks: tuple[Block, ...] = folded or (Paragraph("There is no winner, and no program led to another."),)
    return Section("programs", "Programs and their changes", blocks)


def _whole(evidence: ReportData) -> Iterator[Details]:
    winner, state = evidence.winner, evidence.state
    if winner is not None:
        yield Details(f"{winner.id}, the winner: whole program", (Code(winner.code),))
    nominees = dict.fromkeys(selection.nominee for selection in state.selections)
    for name in nominees:
        candidate = state.candidates[name]
        if candidate.origin == "genesis" and candidate is not winner:
            blocks = (*_said(evidence, candidate), Code(candidate.code))
            yield Details(f"{name}, nominated as written: whole program", blocks)


def _diffs(evidence: ReportData) -> Iterator[Details]:
    for candidate in evidence.state.candidates.values():
        base = evidence.state.candidates.get(candidate.parents[0]) if candidate.parents else None
        if base is not None:
            diff = Diff(render_diff(base.code, candidate.code, "solver.py"))
            yield Details(_title(evidence, candidate, base), (*_said(evidence, candidate), diff))


def _title(evidence: ReportData, candidate: Candidate, base: Candidate) -> str:
    kind = _KINDS.get(candidate.origin) or f"change by judge {candidate.judge}"
    results = " → ".join(_result(evidence, program.id) for program in (base, candidate))
    return f"{base.id} → {candidate.id}, {kind}: {results}, {share_text(candidate.changed_share)} of the lines differ"


def _result(evidence: ReportData, name: str) -> str:
    evaluation, scores = evidence.evaluation_of(name), evidence.scores_of(name)
    if evaluation is not None and evaluation.failure is not None:
        return f"failed ({evaluation.failure.kind})"
    return error_text(scores.nrmse) if scores else MISSING


def _said(evidence: ReportData, candidate: Candidate) -> Iterator[Block]:
    if candidate.explanation:
        yield ModelText(candidate.explanation, evidence.author(candidate.author))
