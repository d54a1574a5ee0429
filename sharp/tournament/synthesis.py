"""Stage 3, Synthesis: judged cycles of selection and hybridization (paper section 3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite

from sharp.evaluation import canonical_hash, ranking
from sharp.tournament.execution import CandidateRuns, execute, find_duplicate_run, with_outcome
from sharp.tournament.revision import TurnResult, revise
from sharp.tournament.run_context import RunContext, gather_all
from sharp.tournament.saturation import another_cycle, best_metric, decide
from sharp.tournament.selection import Judge, nominees, select
from sharp.tournament.state import Candidate, Execution, JudgeTurn, Tournament


async def tournament(session: RunContext, state: Tournament) -> Tournament:
    """Play judging cycles until the rules say that no further one follows."""
    for cycle in range(1, session.config.synthesis.max_cycles + 1):
        state = await _play_cycle(session, state, cycle)
        session.effects.checkpoint(f"cycle-{cycle}", state)
        if not another_cycle(session.config.synthesis, state.saturations[-1]):
            break
    return state


async def best_of_n(session: RunContext, state: Tournament) -> Tournament:
    """Run every candidate and keep the best: the mode without a tournament (paper appendix B.2.5)."""
    drafts = list(state.candidates.values())
    outcomes = await gather_all(execute(session, "best-of-n", draft) for draft in drafts)
    for outcome in outcomes:
        state = with_outcome(state, outcome)
    session.effects.checkpoint("best-of-n", state)
    return state


async def _play_cycle(session: RunContext, state: Tournament, cycle: int) -> Tournament:
    numbers = range(1, session.config.n_judges + 1)
    chosen = await gather_all(select(session, state, cycle, number) for number in numbers)
    state = replace(state, selections=(*state.selections, *(selection for selection, _ in chosen)))
    session.effects.checkpoint(f"cycle-{cycle}/selection", state)
    judges = [judge for _, judge in chosen]
    names = nominees(session, [selection for selection, _ in chosen])
    turns = [
        TurnResult(judge, "nominee", name, state.candidates[name], "")
        for judge, name in zip(judges, names, strict=True)
    ]
    stale = 0
    for round_ in range(1, session.config.synthesis.max_rounds + 1):
        if round_ > 1:
            turns = await gather_all(
                revise(session, state, judge, cycle, round_, _notice(state, judge)) for judge in judges
            )
            judges = [turn.judge for turn in turns]
        before = _best(state)
        state = await _play_round(session, state, cycle, round_, turns)
        verdict = decide(
            session.config.synthesis,
            cycle=cycle,
            round_=round_,
            before=before,
            after=_best(state),
            stale_before=stale,
            all_kept=round_ > 1 and all(turn.action == "keep" for turn in turns),
        )
        stale = verdict.stale_rounds
        state = replace(state, saturations=(*state.saturations, verdict))
        session.effects.checkpoint(f"cycle-{cycle}/round-{round_}", state)
        if verdict.stop:
            break
    return state


async def _play_round(
    session: RunContext, state: Tournament, cycle: int, round_: int, turns: Sequence[TurnResult]
) -> Tournament:
    """Execute the programs of a round, each distinct one once, and record every judge's entry."""
    state = state.with_candidates(*(turn.candidate for turn in turns if turn.candidate is not None))
    fresh: dict[str, Candidate] = {}
    for turn in turns:
        if turn.candidate is not None and find_duplicate_run(state, turn.candidate.code) is None:
            fresh.setdefault(canonical_hash(turn.candidate.code), turn.candidate)
    path = f"cycle-{cycle}/round-{round_}"
    limit = _hopeless(session, state)
    outcomes = await gather_all(execute(session, path, candidate, limit) for candidate in fresh.values())
    by_hash = dict(zip(fresh, outcomes, strict=True))
    for outcome in outcomes:
        state = with_outcome(state, outcome)
    for turn in turns:
        state = _with_entry(state, turn, by_hash, cycle, round_)
    return state


def _with_entry(
    state: Tournament, turn: TurnResult, by_hash: Mapping[str, CandidateRuns], cycle: int, round_: int
) -> Tournament:
    """Record a judge's turn; a program that was run before gets that result, unpaid, and the judge is told."""
    action, name, note, repairs = turn.action, turn.base, turn.note, 0
    if turn.candidate is None:
        known = state.execution_of(turn.base)
        metric = inf if known is None or turn.action == "forfeit" else known.metric
    elif (outcome := by_hash.get(canonical_hash(turn.candidate.code))) is not None:
        state = _with_twin(state, turn.candidate, outcome.executions[0].candidate)
        name, metric, repairs = outcome.final.id, outcome.deciding_run.metric, len(outcome.repaired)
    else:
        twin = find_duplicate_run(state, turn.candidate.code)
        assert twin is not None
        if turn.action == "nominee":
            # One that an earlier cycle repaired is represented by its repaired version.
            name, note = _latest_repair(state, twin.candidate), "run before; result reused"
            known = state.execution_of(name)
            assert known is not None
            metric = known.metric
        else:
            state = _with_twin(state, turn.candidate, twin.candidate)
            action, name, metric = "no-op", turn.candidate.id, twin.metric
            note = f"same program as {twin.candidate}, which was run before; result reused"
    entry = JudgeTurn(cycle, round_, turn.judge.number, action, name, turn.base, metric, note, repairs)
    return replace(state, entries=(*state.entries, entry))


def _latest_repair(state: Tournament, name: str) -> str:
    children = [c.id for c in state.candidates.values() if c.origin == "debug" and c.parents == (name,)]
    return _latest_repair(state, children[-1]) if children else name


def _with_twin(state: Tournament, candidate: Candidate, twin: str) -> Tournament:
    """Record for a program the run of its twin, unless it is that program itself."""
    known = state.execution_of(twin)
    if known is None or candidate.id == twin or state.execution_of(candidate.id) is not None:
        return state
    shared = Execution(
        candidate.id, known.path, known.split, known.evaluation, known.metric, reused_from=twin
    )
    return replace(state, executions=(*state.executions, shared))


def _notice(state: Tournament, judge: Judge) -> str:
    last = next((e for e in reversed(state.entries) if e.judge == judge.number), None)
    if last is None or last.action not in ("no-op", "forfeit"):
        return ""
    return f"Your last turn counted as {last.action}: {last.note}."


def _hopeless(session: RunContext, state: Tournament) -> float | None:
    """Return the nRMSE above which the runs of a round need not be finished: a function of the rounds before.

    None where it is not the nRMSE alone that ranks, or where nothing has run well yet.
    """
    factor, best = session.config.evaluation.early_stop_factor, _best(state)
    ranked = ranking(session.config.feedback.metrics, session.config.feedback.weights)
    if factor is None or list(ranked) != ["nrmse"] or not isfinite(best):
        return None
    return factor * best / ranked["nrmse"]


def _best(state: Tournament) -> float:
    return best_metric([execution.metric for execution in state.executions if execution.split != "test"])
