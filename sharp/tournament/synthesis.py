"""Stage 3, Synthesis: judged cycles of selection and hybridization (paper section 3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite

from sharp.evaluation import canonical_hash, ranking
from sharp.tournament.execution import CandidateRuns, execute, find_duplicate_run, with_outcome
from sharp.tournament.ranking import Aim, best_runs
from sharp.tournament.revision import TurnResult, revise
from sharp.tournament.run_context import RunContext, gather_all
from sharp.tournament.saturation import another_cycle, best_metric, decide
from sharp.tournament.selection import Judge, nominees, select
from sharp.tournament.state import OTHERS, Candidate, Execution, JudgeTurn, Tournament


async def tournament(session: RunContext, state: Tournament) -> Tournament:
    """Play judging cycles until the rules say that no further one follows."""
    summaries: Mapping[str, str] = {}
    for cycle in range(1, session.config.synthesis.max_cycles + 1):
        state, summaries = await _play_cycle(session, state, cycle, summaries)
        session.effects.checkpoint(f"cycle-{cycle}", state)
        if not another_cycle(session.config.synthesis, state.saturations[-1]):
            break
    return state


async def run_start(session: RunContext, state: Tournament) -> Tournament:
    """Run the user's own solvers, so that judges see their results and the report says what was gained on them."""
    given = [program for program in state.candidates.values() if program.origin == "start"]
    if not given:
        return state
    runs = (execute(session, "start", program, smoke=state.smoke.get(program.id)) for program in given)
    for outcome in await gather_all(runs):
        state = with_outcome(session, state, outcome)
    session.effects.checkpoint("start", state)
    return state


async def best_of_n(session: RunContext, state: Tournament) -> Tournament:
    """Run every candidate and keep the best: the mode without a tournament (paper appendix B.2.5)."""
    drafts = list(state.candidates.values())
    outcomes = await gather_all(
        execute(session, "best-of-n", draft, smoke=state.smoke.get(draft.id)) for draft in drafts
    )
    for outcome in outcomes:
        state = with_outcome(session, state, outcome)
    session.effects.checkpoint("best-of-n", state)
    return state


async def _play_cycle(
    session: RunContext, state: Tournament, cycle: int, summaries: Mapping[str, str]
) -> tuple[Tournament, Mapping[str, str]]:
    state, judges, summaries = await _select(session, state, cycle, summaries)
    names = nominees(session, [selection for selection in state.selections if selection.cycle == cycle])
    turns = [
        TurnResult(judge, "nominee", name, state.candidates[name], "")
        for judge, name in zip(judges, names, strict=True)
    ]
    stale, aim = 0, Aim.of(session.config)
    for round_ in range(1, session.config.synthesis.max_rounds + 1):
        if round_ > 1:
            turns = await gather_all(
                revise(session, state, judge, cycle, round_, _notice(state, judge)) for judge in judges
            )
            judges = [turn.judge for turn in turns]
        known = len(state.executions)
        state = await _play_round(session, state, cycle, round_, turns)
        state = await _run_the_others(session, state, cycle)
        # Ranked as they now are: where programs are compared with each other, new ones change the rank of the old.
        earlier = replace(state, executions=state.executions[:known])
        verdict = decide(
            session.config.synthesis,
            cycle=cycle,
            round_=round_,
            before=_best(earlier),
            after=_best(state),
            gain=aim.gain(best_runs(earlier), best_runs(state)),
            stale_before=stale,
            all_kept=round_ > 1 and all(turn.action == "keep" for turn in turns),
            measured=aim.measured,
        )
        stale = verdict.stale_rounds
        state = replace(state, saturations=(*state.saturations, verdict))
        session.effects.checkpoint(f"cycle-{cycle}/round-{round_}", state)
        if verdict.stop:
            break
    return state, summaries


async def _select(
    session: RunContext, state: Tournament, cycle: int, summaries: Mapping[str, str]
) -> tuple[Tournament, list[Judge], Mapping[str, str]]:
    """Let every judge of a cycle read the pool and choose."""
    chosen, summaries = await select(session, state, cycle, summaries)
    state = replace(state, selections=(*state.selections, *(selection for selection, _ in chosen)))
    session.effects.checkpoint(f"cycle-{cycle}/selection", state)
    return state, [judge for _, judge in chosen], summaries


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
    outcomes = await gather_all(
        execute(session, path, candidate, limit, smoke=state.smoke.get(candidate.id))
        for candidate in fresh.values()
    )
    by_hash = dict(zip(fresh, outcomes, strict=True))
    for outcome in outcomes:
        state = with_outcome(session, state, outcome)
    for turn in turns:
        state = _with_entry(state, turn, by_hash, cycle, round_)
    return state


async def _run_the_others(session: RunContext, state: Tournament, cycle: int) -> Tournament:
    """Run candidates that no judge nominated as long as nothing works: best ranked first, one a judge at a time."""
    path, distinct = f"cycle-{cycle}/{OTHERS}", dict[str, Candidate]()
    if isfinite(_best(state)):
        return state
    for candidate in _by_rank(state):
        if find_duplicate_run(state, candidate.code) is None:
            distinct.setdefault(canonical_hash(candidate.code), candidate)
    waiting = list(distinct.values())
    while waiting and not isfinite(_best(state)):
        batch, waiting = waiting[: session.config.n_judges], waiting[session.config.n_judges :]
        runs = (execute(session, path, candidate, smoke=state.smoke.get(candidate.id)) for candidate in batch)
        for outcome in await gather_all(runs):
            state = with_outcome(session, state, outcome)
    return state


def _by_rank(state: Tournament) -> list[Candidate]:
    """Return the candidates by their places on all short lists (Borda's count), those on none last."""
    points: Counter[str] = Counter()
    for selection in state.selections:
        for place, (name, _) in enumerate(selection.shortlist):
            points[name] += len(selection.shortlist) - place
    return sorted(state.candidates.values(), key=lambda candidate: -points[candidate.id])


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
        name, repairs = outcome.final.id, len(outcome.repaired)
        own = state.execution_of(name)
        assert own is not None
        metric = own.metric
    else:
        twin = find_duplicate_run(state, turn.candidate.code)
        assert twin is not None
        if turn.action == "nominee":
            # One that an earlier cycle repaired is represented by its repaired version.
            name, note = state.latest_version(twin.candidate), "run before; result reused"
            known = state.execution_of(name)
            assert known is not None
            metric = known.metric
        else:
            state = _with_twin(state, turn.candidate, twin.candidate)
            action, name, metric = "no-op", turn.candidate.id, twin.metric
            note = f"same program as {twin.candidate}, which was run before; result reused"
    entry = JudgeTurn(cycle, round_, turn.judge.number, action, name, turn.base, metric, note, repairs)
    return replace(state, entries=(*state.entries, entry))


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


async def choose_by_reading(session: RunContext, state: Tournament) -> Tournament:
    """Let the judges choose and run nothing: the winner is the first choice of most, ties by places on short lists."""
    state, _, _ = await _select(session, state, 1, {})
    votes = Counter(selection.nominee for selection in state.selections)
    return replace(state, best=max(_by_rank(state), key=lambda candidate: votes[candidate.id]).id)
