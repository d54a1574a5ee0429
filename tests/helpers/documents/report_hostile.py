"""Texts put wherever a model's words can stand in a report."""

from __future__ import annotations

from dataclasses import replace

from sharp.evaluation.protocol import CandidateFailure, Evaluation
from sharp.tournament.state import (
    AnalysisStep,
    Candidate,
    Change,
    Execution,
    JudgeTurn,
    ReporterText,
    Selection,
    StabilityBound,
    Tournament,
)


def poison(state: Tournament, text: str) -> Tournament:
    """Return a state in which every text of a model's, or of a program's, is the given one."""
    assert state.analysis is not None
    steps = tuple(
        AnalysisStep(step.name, text, {"verdict": "no", "reason": text, "list": [text]})
        for step in state.analysis.steps
    )
    analysis = replace(state.analysis, steps=steps, bounds=(StabilityBound(text, text, None, text),))
    return replace(
        state,
        analysis=analysis,
        candidates={name: _candidate(item, text) for name, item in state.candidates.items()},
        discarded=dict.fromkeys(state.discarded, text),
        selections=tuple(_selection(item, text) for item in state.selections),
        entries=tuple(_entry(item, text) for item in state.entries),
        executions=tuple(_execution(item, text) for item in state.executions),
        test=state.test and _evaluation(state.test, text),
        x64={name: _evaluation(item, text) for name, item in state.x64.items()},
        prose=state.prose and ReporterText(text, (text, text), text, text),
    )


def _candidate(item: Candidate, text: str) -> Candidate:
    changes = tuple(Change(text, text, change.sources) for change in item.changes)
    # What parses would be the same program for all ids.
    return replace(
        item, code=f"{text}\n# {item.id}\n)", explanation=text, changes=changes, patch_match_level=text
    )


def _selection(item: Selection, text: str) -> Selection:
    shortlist = tuple((name, text) for name, _ in item.shortlist)
    return replace(item, criteria=(text, text), shortlist=shortlist, nominee_reason=text)


def _entry(item: JudgeTurn, text: str) -> JudgeTurn:
    return replace(item, note=text)


def _execution(item: Execution, text: str) -> Execution:
    return replace(item, evaluation=_evaluation(item.evaluation, text))


def _evaluation(item: Evaluation, text: str) -> Evaluation:
    failure = item.failure and CandidateFailure(item.failure.kind, text, text)
    scores = item.scores and replace(item.scores, residual_note=text)
    environment = {"device": text, "numpy": text}
    return replace(
        item, failure=failure, scores=scores, environment=environment, stdout=text, stderr=text, dtype=text
    )
