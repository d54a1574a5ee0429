"""Choosing the winner, and the one scoring on test data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from sharp.evaluation import Evaluation, canonical_hash
from sharp.tournament.ranking import Aim, best_runs
from sharp.tournament.run_context import RunContext, gather_all
from sharp.tournament.state import Tournament

MAX_FINALISTS = 4


async def finalize(
    session: RunContext, state: Tournament, among: Collection[str] | None = None
) -> Tournament:
    """Choose the best executed program, or the best of those named, and open the test split, once, for it alone.

    With `x64_check` the finalists are scored once more on validation data in 64-bit mode; with `convergence_check` the
    winner's order of accuracy is measured. Where nothing ran successfully there
    is no winner and the test data stay closed.
    """
    best = choose(session, state, among)
    if best is None:
        return state
    state = replace(state, best=best, best_per_judge=best_per_judge(Aim.of(session.config), state))
    if session.config.evaluation.x64_check and session.config.evaluation.x64 is None:
        state = replace(state, x64=await _in_64_bit_mode(session, state))
    code = state.candidates[best].code
    if session.config.evaluation.convergence_check:
        from sharp.evaluation import study_request
        from sharp.reference import has_smooth_inputs

        if has_smooth_inputs(session.problem):
            request = study_request(session.evaluation(code, "validation"))
            study = await session.effects.evaluate("finalize/convergence", request)
            state = replace(state, convergence=study.convergence)
    request = session.evaluation(code, "test")
    return replace(state, test=await session.effects.evaluate("finalize/test", request))


def choose(session: RunContext, state: Tournament, among: Collection[str] | None = None) -> str | None:
    """Return the id of the program that wins by the objective, of all or of those named; None if nothing worked.

    Without feedback the programs that most judges ended with win.
    """
    runs = [run for run in best_runs(state) if among is None or run.candidate in among]
    names = [run.candidate for run in runs]
    if names and "none" in session.config.feedback.metrics:
        last = {e.judge: e.candidate for e in state.entries if e.candidate in names}
        votes = Counter(last.values())
        return min(
            (name for name in names if name in votes or not votes), key=lambda name: (-votes[name], name)
        )
    winner = Aim.of(session.config).preferred(runs)
    return None if winner is None else winner.candidate


def best_per_judge(aim: Aim, state: Tournament) -> dict[int, str]:
    """Return each judge's best program by its entries; its last that ran where nothing is measured."""
    runs, best = best_runs(state), dict[int, str]()
    for judge in sorted({entry.judge for entry in state.entries}):
        own = [entry.candidate for entry in state.entries if entry.judge == judge]
        ran = [run for run in runs if run.candidate in own]
        if not aim.measured:
            ran.sort(key=lambda run: own[::-1].index(run.candidate))
        if (run := aim.preferred(ran)) is not None:
            best[judge] = run.candidate
    return best


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
