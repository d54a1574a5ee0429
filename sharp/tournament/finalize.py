"""Choosing the winner, and the one scoring on test data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from math import inf, isfinite

from sharp.evaluation import Evaluation, canonical_hash
from sharp.tournament.run_context import RunContext, gather_all
from sharp.tournament.state import Tournament

MAX_FINALISTS = 4


async def finalize(
    session: RunContext, state: Tournament, among: Collection[str] | None = None
) -> Tournament:
    """Choose the best executed program, or the best of those named, and open the test split, once, for it alone.

    With `x64_check` the finalists are scored once more on validation data in 64-bit mode; with `convergence_check` the
    winner's order of accuracy is measured, which the report reads from the record. Where nothing ran successfully there
    is no winner and the test data stay closed.
    """
    best = choose(session, state, among)
    if best is None:
        return state
    state = replace(state, best=best, best_per_judge=best_per_judge(state))
    if session.config.evaluation.x64_check and session.config.evaluation.x64 is None:
        state = replace(state, x64=await _in_64_bit_mode(session, state))
    code = state.candidates[best].code
    if session.config.evaluation.convergence_check:
        from sharp.evaluation import study_request
        from sharp.reference import has_smooth_inputs

        if has_smooth_inputs(session.problem):
            request = study_request(session.evaluation(code, "validation"))
            await session.effects.evaluate("finalize/convergence", request)
    request = session.evaluation(code, "test")
    return replace(state, test=await session.effects.evaluate("finalize/test", request))


def choose(session: RunContext, state: Tournament, among: Collection[str] | None = None) -> str | None:
    """Return the id of the best executed program, or of the best of those named; None if nothing ran successfully.

    Without feedback the programs that most judges ended with win.
    """
    names = [name for name in best_first(state) if among is None or name in among]
    if names and "none" in session.config.feedback.metrics:
        last = {e.judge: e.candidate for e in state.entries if e.candidate in names}
        votes = Counter(last.values())
        return min(
            (name for name in names if name in votes or not votes), key=lambda name: (-votes[name], name)
        )
    return names[0] if names else None


def best_first(state: Tournament) -> list[str]:
    """Return the programs that ran successfully, best first.

    Lowest validation metric; ties by length of code, then id, and not by run time, whose noise would make two runs
    with the same errors differ.
    """
    runs = [e for e in state.executions if e.split != "test" and e.evaluation.ok and isfinite(e.metric)]
    runs.sort(key=lambda run: (run.metric, len(state.candidates[run.candidate].code), run.candidate))
    return list(dict.fromkeys(run.candidate for run in runs))


def best_per_judge(state: Tournament) -> dict[int, str]:
    """Return each judge's best program by its entries."""
    best: dict[int, tuple[float, str]] = {}
    for entry in state.entries:
        if entry.candidate is not None and entry.metric < best.get(entry.judge, (inf, ""))[0]:
            best[entry.judge] = (entry.metric, entry.candidate)
    return {judge: name for judge, (_, name) in sorted(best.items())}


def finalists(state: Tournament) -> tuple[str, ...]:
    """Return the winner and then each judge's best in the order of judges: distinct programs, four at most."""
    names = [name for name in (state.best, *state.best_per_judge.values()) if name is not None]
    distinct: dict[str, str] = {}
    for name in names:
        distinct.setdefault(canonical_hash(state.candidates[name].code), name)
    return tuple(distinct.values())[:MAX_FINALISTS]


async def _in_64_bit_mode(session: RunContext, state: Tournament) -> dict[str, Evaluation]:
    codes = {name: state.candidates[name].code for name in finalists(state)}
    runs = [
        session.effects.evaluate(f"finalize/x64/{name}", session.evaluation(code, "validation", x64=True))
        for name, code in codes.items()
    ]
    return dict(zip(codes, await gather_all(runs), strict=True))
