"""FunSearch with CodePDE's scores and prompt: programs evolve on islands (Nature 625, 468, 2024; arXiv 2505.08783)."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite
from random import Random

from sharp.config import FunSearchOptions
from sharp.methods.islands import (
    Islands,
    Member,
    bucket,
    clusters,
    draw,
    register,
    reset,
    temperature,
)
from sharp.methods.sampling import run_all, sample, select_and_test, single_call
from sharp.methods.searching import (
    SearchTask,
    checkpoint_periodically,
    execute_step,
    improvement_prompt,
    with_result,
)
from sharp.tournament import RunContext, SearchStep, Tournament, best_first, next_author


async def funsearch(session: RunContext) -> Tournament:
    """Found the islands with CodePDE's samples, then write one program after the other.

    Where no sample ran there is nothing to show, and the search ends with that.
    """
    options = session.config.funsearch
    state, drafts = await sample(session, single_call, options.initial)
    state = await run_all(session, state, drafts)
    islands = seed_islands(session, state)
    counted = len(state.executions)
    for number in range(1, options.iterations + 1 if islands else 1):
        state, islands = await _evolve(session, state, islands, number)
        if number < options.iterations and _is_due(options, state, number, counted):
            state, islands = _reset(session, state, islands, number)
            counted = len(state.executions)
        checkpoint_periodically(session, state, number)
    return await select_and_test(session, state)


def seed_islands(session: RunContext, state: Tournament) -> Islands:
    """Return the islands, each with every sample that ran, in the order in which they were written; () without any.

    CodePDE registers every seed on every island, so that all begin alike and the best seed is on each.
    """
    seeds = tuple(member(session, state, name) for name in sorted(best_first(state)))
    return (seeds,) * session.config.funsearch.islands if seeds else ()


def member(session: RunContext, state: Tournament, name: str) -> Member:
    """Return a program that ran with its scores: that of its residual, where it is known, and that which ranks it."""
    run = state.execution_of(name)
    assert run is not None
    scores = run.evaluation.scores
    told = scores is not None and "none" not in session.config.feedback.metrics
    residual = (bucket(scores.residual),) if scores and told and scores.residual is not None else ()
    return Member(name, len(state.candidates[name].code.splitlines()), (*residual, bucket(run.metric)))


async def _evolve(
    session: RunContext, state: Tournament, islands: Islands, number: int
) -> tuple[Tournament, Islands]:
    rng = Random(f"{session.config.seed}/funsearch/{number}")
    index = rng.randrange(len(islands))
    result = await execute_step(session, _task(session, state, islands, number, index, rng))
    state = with_result(session, state, result)
    written = state.search[-1]
    if written.candidate is not None and isfinite(written.metric):
        islands = register(islands, index, member(session, state, written.candidate))
    return state, islands


def _task(
    session: RunContext, state: Tournament, islands: Islands, number: int, index: int, rng: Random
) -> SearchTask:
    options, island = session.config.funsearch, islands[index]
    at = temperature(len(island), options.cluster_temperature, options.cluster_period)
    drawn = draw(island, rng, options.programs_per_prompt, at)
    shown = tuple(one.id for one in drawn)
    return SearchTask(
        number=number,
        move="evolve",
        author=next_author(session, state, number),
        conversation=improvement_prompt(session, state, shown),
        shown=shown,
        base=state.candidates[shown[-1]],
        note=f"island {index + 1} (programs: {len(island)}, clusters: {len(clusters(island))}, "
        f"temperature: {at:.3g}); scores shown: {', '.join(str(one.score) for one in drawn)}",
        temperature=options.temperature,
    )


def _is_due(options: FunSearchOptions, state: Tournament, number: int, counted: int) -> bool:
    """Tell whether the islands are to be reset after an iteration: by its number, or by run times since the last."""
    if options.islands == 1:
        return False
    if options.reset_seconds is None:
        return number % options.reset_every == 0
    return sum(run.evaluation.total_s for run in state.executions[counted:]) >= options.reset_seconds


def _reset(
    session: RunContext, state: Tournament, islands: Islands, number: int
) -> tuple[Tournament, Islands]:
    islands, foundings = reset(islands, Random(f"{session.config.seed}/funsearch/{number}/reset"))
    founders = tuple(dict.fromkeys(founding.founder.id for founding in foundings))
    told = (
        f"island {one.island + 1} begins again with {one.founder.id} of island {one.source + 1}"
        for one in foundings
    )
    step = SearchStep(number, "reset", founders, None, inf, "; ".join(told))
    return replace(state, search=(*state.search, step)), islands
