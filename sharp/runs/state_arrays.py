"""The tournament state as named, documented columns: what a checkpoint holds and a user opens with plain zarr."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from math import nan
from typing import Any

import numpy as np

from hpc.journal import StateArray, natural_sort_key
from sharp.llm.ledger import Effect, execution_kind
from sharp.llm.protocol import TokenUsage
from sharp.tournament.state import Candidate, Execution, JudgeTurn, Tournament


def state_arrays(state: Tournament, effects: Iterable[Effect] = ()) -> dict[str, StateArray]:
    """Return the whole state, one column a field, and what each effect up to here was for and used.

    Text columns hold strings, missing numbers are NaN or -1. Rows of the ledger are in natural order of path, as
    are those of the checkpoint's own `effects/…` and `meta/…`, where start and seconds stand.
    """
    return {
        **_analysis(state),
        **_candidates(state),
        **_selections(state),
        **_executions(state),
        **_entries(state),
        **_saturations(state),
        **_search(state),
        **_outcome(state),
        **_ledger(sorted(effects, key=lambda effect: natural_sort_key(effect.path))),
    }


def metric_array(
    entries: Sequence[JudgeTurn], judges: int | None = None
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return metrics as an array `[cycle, round, judge]`, NaN where no turn was played and +inf where it failed."""
    if not entries:
        return np.full((0, 0, judges or 0), nan)
    shape = (
        max(entry.cycle for entry in entries),
        max(entry.round for entry in entries),
        judges or max(entry.judge for entry in entries),
    )
    cube = np.full(shape, nan)
    for entry in entries:
        cube[entry.cycle - 1, entry.round - 1, entry.judge - 1] = entry.metric
    return cube


def _text(values: Iterable[Any], description: str, dimension: str) -> StateArray:
    return StateArray([str(value) for value in values], description, (dimension,))


def _real(values: Iterable[float | None], description: str, dimension: str) -> StateArray:
    return StateArray(
        np.array([nan if value is None else value for value in values], dtype=np.float64),
        description,
        (dimension,),
    )


def _whole(values: Iterable[int | None], description: str, dimension: str) -> StateArray:
    return StateArray(
        np.array([-1 if value is None else value for value in values], dtype=np.int64),
        description,
        (dimension,),
    )


def _json(values: Iterable[Any], description: str, dimension: str) -> StateArray:
    return _text(
        (json.dumps(value, ensure_ascii=False) for value in values), f"{description} (JSON)", dimension
    )


def _analysis(state: Tournament) -> dict[str, StateArray]:
    steps = state.analysis.steps if state.analysis else ()
    bounds = state.analysis.bounds if state.analysis else ()
    written = state.analysis.written.prompts if state.analysis and state.analysis.written else {}
    return {
        "analysis_step": _text((s.name for s in steps), "name of the check", "step"),
        "analysis_verdict": _json((dict(s.verdict) for s in steps), "verdict", "step"),
        "analysis_text": _text((s.text for s in steps), "the model's whole answer", "step"),
        "written_name": _text(written, "check that a model wrote the prompt of", "written"),
        "written_prompt": _text(written.values(), "the prompt it wrote", "written"),
        "bound_scheme": _text((b.scheme for b in bounds), "scheme of a time-step bound", "bound"),
        "bound_expression": _text((b.expression for b in bounds), "the bound as written", "bound"),
        "bound_value": _real((b.value for b in bounds), "the bound on the data's grid", "bound"),
    }


def _candidates(state: Tournament) -> dict[str, StateArray]:
    items = tuple(state.candidates.values())

    def text(name: str, field: Callable[[Candidate], Any], description: str) -> dict[str, StateArray]:
        return {f"candidate_{name}": _text(map(field, items), description, "candidate")}

    return {
        **text("id", lambda c: c.id, "id of the program"),
        **text("origin", lambda c: c.origin, "genesis, hybrid, search or debug"),
        **text("strategy", lambda c: c.strategy, "analytical, transformed, hybrid or numerical"),
        **text("author", lambda c: c.author, "model card of the author"),
        **text("code", lambda c: c.code, "source of the program"),
        **text("explanation", lambda c: c.explanation, "what the author said of it"),
        **text("patch_match_level", lambda c: c.patch_match_level or "", "how its patch was applied"),
        "candidate_parents": _json((list(c.parents) for c in items), "base first, then donors", "candidate"),
        "candidate_changes": _json(
            ([[x.what, x.why, list(x.sources)] for x in c.changes] for c in items),
            "changes: what, why, sources",
            "candidate",
        ),
        "candidate_place": StateArray(
            np.array([[c.cycle, c.round, c.judge] for c in items], dtype=np.int64).reshape(-1, 3),
            "cycle, round and judge of a hybrid; 0 for originals",
            ("candidate", "place"),
        ),
        "candidate_changed_share": _real(
            (c.changed_share for c in items), "share of lines that differ from the base", "candidate"
        ),
        "discarded_id": _text(state.discarded.keys(), "replies without a usable program", "discarded"),
        "discarded_reason": _text(state.discarded.values(), "why", "discarded"),
    }


def _selections(state: Tournament) -> dict[str, StateArray]:
    items = state.selections
    return {
        "selection_cycle": _whole((s.cycle for s in items), "judging cycle", "selection"),
        "selection_judge": _whole((s.judge for s in items), "judge", "selection"),
        "selection_model": _text((s.model for s in items), "the judge's model card", "selection"),
        "selection_shown": _json((list(s.shown) for s in items), "pool in the order shown", "selection"),
        "selection_criteria": _json((list(s.criteria) for s in items), "criteria", "selection"),
        "selection_shortlist": _json(
            ([list(pair) for pair in s.shortlist] for s in items), "ranked ids with reasons", "selection"
        ),
        "selection_nominee": _text((s.nominee for s in items), "the nominee", "selection"),
        "selection_reason": _text((s.nominee_reason for s in items), "why it was nominated", "selection"),
    }


def _executions(state: Tournament) -> dict[str, StateArray]:
    items = state.executions

    def score(
        name: str, field: Callable[[Execution], float | None], description: str
    ) -> dict[str, StateArray]:
        return {f"execution_{name}": _real(map(field, items), description, "execution")}

    return {
        "execution_candidate": _text((e.candidate for e in items), "program that was run", "execution"),
        "execution_split": _text((e.split for e in items), "smoke or validation", "execution"),
        "execution_failure": _text(
            (e.evaluation.failure.kind if e.evaluation.failure else "" for e in items),
            "class of failure, empty if it ran",
            "execution",
        ),
        "execution_reused_from": _text(
            (e.reused_from or "" for e in items), "twin whose result was reused", "execution"
        ),
        **score("metric", lambda e: e.metric, "what the tournament compares; +inf for failures"),
        **score(
            "nrmse",
            lambda e: e.evaluation.scores.nrmse if e.evaluation.scores else None,
            "error against the data set",
        ),
        **score(
            "nrmse_reference",
            lambda e: e.evaluation.scores.nrmse_reference if e.evaluation.scores else None,
            "error against the self-converged solution",
        ),
        **score(
            "residual",
            lambda e: e.evaluation.scores.residual if e.evaluation.scores else None,
            "normalised residual of the equation",
        ),
        **score("run_time_s", lambda e: e.evaluation.run_time_s, "seconds of the solver call"),
    }


def _entries(state: Tournament) -> dict[str, StateArray]:
    items = state.entries
    return {
        "round_metric": StateArray(
            metric_array(items), "metric of each turn, NaN where none was played", ("cycle", "round", "judge")
        ),
        "turn_cycle": _whole((e.cycle for e in items), "judging cycle", "entry"),
        "turn_round": _whole((e.round for e in items), "round, the nominees' run being 1", "entry"),
        "turn_judge": _whole((e.judge for e in items), "judge", "entry"),
        "turn_action": _text((e.action for e in items), "what the judge did", "entry"),
        "turn_candidate": _text((e.candidate or "" for e in items), "program that stands for it", "entry"),
        "turn_base": _text((e.base or "" for e in items), "base of the patch", "entry"),
        "turn_metric": _real((e.metric for e in items), "metric, +inf if it failed", "entry"),
        "turn_repairs": _whole((e.repairs for e in items), "repairs it needed", "entry"),
        "turn_note": _text((e.note for e in items), "remarks", "entry"),
    }


def _saturations(state: Tournament) -> dict[str, StateArray]:
    items = state.saturations
    return {
        "saturation_cycle": _whole((s.cycle for s in items), "judging cycle", "decision"),
        "saturation_round": _whole((s.round for s in items), "round", "decision"),
        "saturation_best": _real((s.best_by_evaluation for s in items), "best metric so far", "decision"),
        "saturation_gain": _real((s.gain for s in items), "relative gain of the round", "decision"),
        "saturation_stale": _whole((s.stale_rounds for s in items), "consecutive stale rounds", "decision"),
        "saturation_reason": _text((s.reason for s in items), "the decision", "decision"),
    }


def _search(state: Tournament) -> dict[str, StateArray]:
    items = state.search
    return {
        "search_number": _whole((s.number for s in items), "number of the step", "search_step"),
        "search_move": _text((s.move for s in items), "what a search without judges did", "search_step"),
        "search_parents": _json((list(s.parents) for s in items), "programs that were shown", "search_step"),
        "search_candidate": _text(
            (s.candidate or "" for s in items), "program that was written", "search_step"
        ),
        "search_metric": _real((s.metric for s in items), "its metric, +inf if it failed", "search_step"),
        "search_note": _text((s.note for s in items), "particulars of the method", "search_step"),
    }


def _outcome(state: Tournament) -> dict[str, StateArray]:
    rest = {
        "problem": state.problem,
        "strategy": state.analysis.strategy if state.analysis else None,
        "unwritten": state.analysis.written.unreadable if state.analysis and state.analysis.written else "",
        "best": state.best,
        "best_per_judge": {str(judge): name for judge, name in state.best_per_judge.items()},
        "test": state.test.to_json() if state.test else None,
        "x64": {name: precise.to_json() for name, precise in state.x64.items()},
        "prose": vars(state.prose) if state.prose else None,
    }
    return {"outcome": _json([rest], "problem, winner, its test run, finalists in 64-bit mode, prose", "run")}


def _ledger(effects: Sequence[Effect]) -> dict[str, StateArray]:
    usages = [
        TokenUsage(**effect.reply["usage"]) if effect.kind == "chat" else TokenUsage() for effect in effects
    ]

    def tokens(kind: str, description: str) -> dict[str, StateArray]:
        counts = (getattr(usage, kind) for usage in usages)
        return {f"ledger_{kind}_tokens": _whole(counts, description, "effect")}

    return {
        "ledger_path": _text((e.path for e in effects), "where in the method it was asked", "effect"),
        "ledger_purpose": _text(map(_purpose, effects), "stage of a call, kind of a program's run", "effect"),
        "ledger_model": _text(
            (e.request.get("model", "") for e in effects), "model card, empty for a program's run", "effect"
        ),
        **tokens("prompt", "prompt tokens"),
        **tokens("cached", "those of them that the server had cached"),
        **tokens("completion", "completion tokens"),
        **tokens("reasoning", "those of them that were spent on reasoning"),
    }


def _purpose(effect: Effect) -> str:
    return str(effect.request["purpose"]) if effect.kind == "chat" else execution_kind(effect)
