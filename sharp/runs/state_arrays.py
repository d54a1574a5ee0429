"""The tournament state as named, documented columns: what a checkpoint holds and a user opens with plain zarr."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from math import nan
from operator import attrgetter
from typing import Any

import numpy as np

from hpc.journal import StateArray, natural_sort_key
from sharp.llm import Effect, TokenUsage, execution_kind
from sharp.tournament import Execution, JudgeTurn, Tournament

Make = Callable[[Iterable[Any], str, str], StateArray]
Field = str | Callable[[Any], Any]
Columns = Iterable[tuple[str, Make, Field, str]]


def state_arrays(state: Tournament, effects: Iterable[Effect] = ()) -> dict[str, StateArray]:
    """Return the whole state, one column a field, and what each effect up to here was for and used.

    Text columns hold strings, missing numbers are NaN or -1. Rows of the ledger are in natural order of path, as
    are those of the checkpoint's own `effects/…` and `meta/…`, where start and seconds stand.
    """
    candidates = tuple(state.candidates.values())
    places = [[c.cycle, c.round, c.judge] for c in candidates]
    return {
        **_analysis(state),
        **_columns("candidate", "candidate", candidates, _CANDIDATES),
        "candidate_place": StateArray(
            np.array(places, dtype=np.int64).reshape(-1, 3),
            "cycle, round and judge of a hybrid; 0 for originals",
            ("candidate", "place"),
        ),
        "discarded_id": _text(state.discarded.keys(), "replies without a usable program", "discarded"),
        "discarded_reason": _text(state.discarded.values(), "why", "discarded"),
        **_columns("smoke", "smoke_run", tuple(state.smoke.values()), _SMOKE),
        **_columns("selection", "selection", state.selections, _SELECTIONS),
        **_columns("execution", "execution", state.executions, _EXECUTIONS),
        "round_metric": StateArray(
            _metric_array(state.entries),
            "metric of each turn, NaN where none was played",
            ("cycle", "round", "judge"),
        ),
        **_columns("turn", "entry", state.entries, _TURNS),
        **_columns("saturation", "decision", state.saturations, _SATURATIONS),
        **_columns("search", "search_step", state.search, _SEARCH),
        "outcome": _json(
            [_outcome(state)], "problem, winner, its test run, finalists in 64-bit mode, prose", "run"
        ),
        **_ledger(sorted(effects, key=lambda effect: natural_sort_key(effect.path))),
    }


def _text(values: Iterable[Any], description: str, dimension: str) -> StateArray:
    texts = ["" if value is None else str(value) for value in values]
    return StateArray(texts, description, (dimension,))


def _real(values: Iterable[float | None], description: str, dimension: str) -> StateArray:
    numbers = [nan if value is None else value for value in values]
    return StateArray(np.array(numbers, dtype=np.float64), description, (dimension,))


def _whole(values: Iterable[int | None], description: str, dimension: str) -> StateArray:
    numbers = [-1 if value is None else value for value in values]
    return StateArray(np.array(numbers, dtype=np.int64), description, (dimension,))


def _json(values: Iterable[Any], description: str, dimension: str) -> StateArray:
    texts = (json.dumps(value, ensure_ascii=False) for value in values)
    return _text(texts, f"{description} (JSON)", dimension)


def _columns(prefix: str, dimension: str, items: Sequence[Any], columns: Columns) -> dict[str, StateArray]:
    """Return a column a row of the table `columns`: its name, its kind, the field or how it follows, its meaning."""
    return {
        f"{prefix}_{name}": make(
            map(attrgetter(field) if isinstance(field, str) else field, items), description, dimension
        )
        for name, make, field, description in columns
    }


def _score(name: str) -> Callable[[Any], float | None]:
    def value(execution: Any) -> float | None:
        scores = execution.evaluation.scores
        return getattr(scores, name) if scores else None

    return value


def _failure_kind(execution: Execution) -> str | None:
    failure = execution.evaluation.failure
    return failure.kind if failure else None


_CANDIDATES: Columns = (
    ("id", _text, "id", "id of the program"),
    ("origin", _text, "origin", "genesis, hybrid, search or debug"),
    ("strategy", _text, "strategy", "analytical, transformed, hybrid or numerical"),
    ("author", _text, "author", "model card of the author"),
    ("code", _text, "code", "source of the program"),
    ("explanation", _text, "explanation", "what the author said of it"),
    ("patch_match_level", _text, "patch_match_level", "how its patch was applied"),
    ("parents", _json, "parents", "base first, then donors"),
    (
        "changes",
        _json,
        lambda c: [[x.what, x.why, x.sources] for x in c.changes],
        "changes: what, why, sources",
    ),
    ("changed_share", _real, "changed_share", "share of lines that differ from the base"),
    (
        "assignment",
        _json,
        lambda c: c.assignment and vars(c.assignment),
        "method that was asked for, part by part",
    ),
)
_SMOKE: Columns = (
    ("candidate", _text, "candidate", "program that had a short run before judging"),
    (
        "failure",
        _text,
        _failure_kind,
        "class of failure, empty if it passed",
    ),
    ("reused_from", _text, "reused_from", "equal program whose run it was"),
    ("run_time_s", _real, "evaluation.run_time_s", "seconds of the solver call"),
)
_SELECTIONS: Columns = (
    ("cycle", _whole, "cycle", "judging cycle"),
    ("judge", _whole, "judge", "judge"),
    ("model", _text, "model", "the judge's model card"),
    ("shown", _json, "shown", "programs read in full, in the order shown"),
    ("summarised", _json, "summarised", "programs of which a summary was read"),
    ("unread", _json, "unread", "programs left out for want of room"),
    ("criteria", _json, "criteria", "criteria"),
    ("shortlist", _json, "shortlist", "ranked ids with reasons"),
    ("nominee", _text, "nominee", "the nominee"),
    ("reason", _text, "nominee_reason", "why it was nominated"),
)
_EXECUTIONS: Columns = (
    ("candidate", _text, "candidate", "program that was run"),
    ("split", _text, "split", "smoke or validation"),
    (
        "failure",
        _text,
        _failure_kind,
        "class of failure, empty if it ran",
    ),
    ("reused_from", _text, "reused_from", "twin whose result was reused"),
    ("metric", _real, "metric", "what the tournament compares; +inf for failures"),
    ("nrmse", _real, _score("nrmse"), "error against the data set"),
    ("nrmse_reference", _real, _score("nrmse_reference"), "error against the self-converged solution"),
    ("residual", _real, _score("residual"), "normalised residual of the equation"),
    ("run_time_s", _real, "evaluation.run_time_s", "seconds of the solver call"),
)
_TURNS: Columns = (
    ("cycle", _whole, "cycle", "judging cycle"),
    ("round", _whole, "round", "round, the nominees' run being 1"),
    ("judge", _whole, "judge", "judge"),
    ("action", _text, "action", "what the judge did"),
    ("candidate", _text, "candidate", "program that stands for it"),
    ("base", _text, "base", "base of the patch"),
    ("metric", _real, "metric", "metric, +inf if it failed"),
    ("repairs", _whole, "repairs", "repairs it needed"),
    ("note", _text, "note", "remarks"),
)
_SATURATIONS: Columns = (
    ("cycle", _whole, "cycle", "judging cycle"),
    ("round", _whole, "round", "round"),
    ("best", _real, "best_by_evaluation", "best metric so far"),
    ("gain", _real, "gain", "relative gain of the round"),
    ("stale", _whole, "stale_rounds", "consecutive stale rounds"),
    ("reason", _text, "reason", "the decision"),
)
_SEARCH: Columns = (
    ("number", _whole, "number", "number of the step"),
    ("move", _text, "move", "what a search without judges did"),
    ("parents", _json, "parents", "programs that were shown"),
    ("candidate", _text, "candidate", "program that was written"),
    ("metric", _real, "metric", "its metric, +inf if it failed"),
    ("note", _text, "note", "particulars of the method"),
    ("author", _text, "author", "model card of the author, empty for steps that write nothing"),
)


def _analysis(state: Tournament) -> dict[str, StateArray]:
    steps = state.analysis.steps if state.analysis else ()
    bounds = state.analysis.bounds if state.analysis else ()
    written = state.analysis.written.prompts if state.analysis and state.analysis.written else ()
    return {
        "analysis_step": _text((s.name for s in steps), "name of the check", "step"),
        "analysis_verdict": _json((dict(s.verdict) for s in steps), "verdict", "step"),
        "analysis_text": _text((s.text for s in steps), "the model's whole answer", "step"),
        "written_prompt": _text(written, "a prompt of the analysis that a model wrote", "written"),
        "bound_scheme": _text((b.scheme for b in bounds), "scheme of a time-step bound", "bound"),
        "bound_expression": _text((b.expression for b in bounds), "the bound as written", "bound"),
        "bound_value": _real((b.value for b in bounds), "the bound on the data's grid", "bound"),
    }


def _metric_array(entries: Sequence[JudgeTurn]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return metrics as an array `[cycle, round, judge]`, NaN where no turn was played and +inf where it failed."""
    places = [(entry.cycle, entry.round, entry.judge) for entry in entries]
    cube = np.full(tuple(map(max, zip(*places, strict=True))) if places else (0, 0, 0), nan)
    for place, entry in zip(places, entries, strict=True):
        cube[tuple(number - 1 for number in place)] = entry.metric
    return cube


def _outcome(state: Tournament) -> dict[str, Any]:
    analysis = state.analysis
    return {
        "problem": state.problem,
        "strategy": analysis.strategy if analysis else None,
        "unwritten": analysis.written.unreadable if analysis and analysis.written else "",
        "best": state.best,
        "best_per_judge": {str(judge): name for judge, name in state.best_per_judge.items()},
        "test": state.test.to_json() if state.test else None,
        "convergence": asdict(state.convergence) if state.convergence else None,
        "x64": {name: precise.to_json() for name, precise in state.x64.items()},
        "prose": vars(state.prose) if state.prose else None,
    }


def _ledger(effects: Sequence[Effect]) -> dict[str, StateArray]:
    def purpose(effect: Effect) -> str:
        return str(effect.request["purpose"]) if effect.kind == "chat" else execution_kind(effect)

    def tokens(kind: str) -> Callable[[Effect], int]:
        return lambda e: getattr(TokenUsage(**e.reply["usage"]), kind) if e.kind == "chat" else 0

    columns: Columns = (
        ("path", _text, "path", "where in the method it was asked"),
        ("purpose", _text, purpose, "stage of a call, kind of a program's run"),
        ("model", _text, lambda e: e.request.get("model"), "model card, empty for a program's run"),
        ("prompt_tokens", _whole, tokens("prompt"), "prompt tokens"),
        ("cached_tokens", _whole, tokens("cached"), "those of them that the server had cached"),
        ("completion_tokens", _whole, tokens("completion"), "completion tokens"),
        ("reasoning_tokens", _whole, tokens("reasoning"), "those of them that were spent on reasoning"),
    )
    return _columns("ledger", "effect", effects, columns)
