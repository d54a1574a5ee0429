"""PDE-SHARP: Analysis, Genesis, Synthesis, and a report (arXiv 2511.00183, section 3)."""

from __future__ import annotations

from dataclasses import replace

from sharp.tournament import (
    RunContext,
    Tournament,
    analyse,
    best_of_n,
    choose_by_reading,
    generate,
    run_start,
    smoke_runs,
    starting_candidates,
    summarise,
    tournament,
)
from sharp.tournament.finalize import finalize


async def pde_sharp(session: RunContext) -> Tournament:
    """Run the whole method on a problem and return the finished tournament."""
    state = Tournament(problem=session.problem.label)
    state = replace(state, analysis=await analyse(session))
    session.effects.checkpoint("analysis", state)
    assert state.analysis is not None
    genesis = await generate(session, state.analysis)
    state = state.with_candidates(*starting_candidates(session), *genesis.candidates)
    state = replace(state, discarded=dict(genesis.discarded))
    session.effects.checkpoint("genesis", state)
    if state.candidates:
        if session.config.genesis.smoke_run:
            state = await smoke_runs(session, state)
        if session.config.reads_only:
            state = await choose_by_reading(session, state)
        elif session.config.synthesis.mode == "best-of-n":
            state = await finalize(session, await best_of_n(session, state))
        else:
            state = await finalize(session, await tournament(session, await run_start(session, state)))
        session.effects.checkpoint("finalize", state)
        state = await summarise(session, state)
    session.effects.checkpoint("done", state)
    return state
