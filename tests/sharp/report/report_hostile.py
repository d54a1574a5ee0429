"""Texts that try to break out of a report, put wherever a model's words can stand."""

from __future__ import annotations

from dataclasses import replace

from sharp.evaluation.protocol import Evaluation, Failure
from sharp.stages.state import (
    AnalysisStep,
    Candidate,
    Change,
    Entry,
    Execution,
    Prose,
    Selection,
    StabilityBound,
    Tournament,
)

TEXTS = {
    "script": "<script>alert('x')</script><img src=x onerror=alert(1)>",
    "attribute": '" onmouseover="alert(1)" x=\'',
    "end of block": "</code></pre></td></table></details></section></main>",
    "cdata": "]]> <![CDATA[ --> <!-- <? ?>",
    "fence": "```\n# heading\n```\n~~~\n````python\n````\n# another\n",
    "pipes": "| a | b |\n|---|---|\n\\| \\\\| c",
    "markdown": "# h\n- item\n1. one\n> quote\n\n---\n===\n*bold* __x__ [link](http://example.org) ![i](//e.org) <b>",
    "entities": "&lt;b&gt; &amp;amp; &#x41;",
    "template": "{{ 7*7 }} {% for x in y %} {# c #}",
    "control": "a\x00b\x07c\x1bd\x7fe\x85f",
    "surrogates": "x\ud800y\udfffz",
    "direction": "\u202eevil\u202c \u2066x\u2069 \u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd",
    "line ends": "a\rb\r\nc\u2028d\u2029e",
    "long line": "w" * 3000,
    "dollars": "$$ \\frac{1}{2} $$ $x$",
    "empty": "",
}


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
        prose=state.prose and Prose(text, (text, text), text, text),
    )


def _candidate(item: Candidate, text: str) -> Candidate:
    changes = tuple(Change(text, text, change.sources) for change in item.changes)
    return replace(item, code=f"{text}\n# {item.id}", explanation=text, changes=changes, patch_rung=text)


def _selection(item: Selection, text: str) -> Selection:
    shortlist = tuple((name, text) for name, _ in item.shortlist)
    return replace(item, criteria=(text, text), shortlist=shortlist, nominee_reason=text)


def _entry(item: Entry, text: str) -> Entry:
    return replace(item, note=text)


def _execution(item: Execution, text: str) -> Execution:
    return replace(item, evaluation=_evaluation(item.evaluation, text))


def _evaluation(item: Evaluation, text: str) -> Evaluation:
    failure = item.failure and Failure(item.failure.kind, text, text)
    scores = item.scores and replace(item.scores, residual_note=text)
    environment = {"device": text, "numpy": text}
    return replace(
        item, failure=failure, scores=scores, environment=environment, stdout=text, stderr=text, dtype=text
    )
