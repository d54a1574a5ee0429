"""PDE-SHARP: Analysis, Genesis, Synthesis, and a report (arXiv 2511.00183, section 3)."""

from __future__ import annotations

from dataclasses import replace

from sharp.tournament import RunContext, Tournament, analyse, best_of_n, generate, summarise, tournament
from sharp.tournament.finalize import finalize


async def pde_sharp(session: RunContext) -> Tournament:
    """Run the whole method on a problem and return the finished tournament."""
    state = Tournament(problem=session.problem.label)
    state = replace(state, analysis=await analyse(session))
    session.effects.checkpoint("analysis", state)
    assert state.analysis is not None
    genesis = await generate(session, state.analysis)
    state = replace(state.with_candidates(*genesis.candidates), discarded=dict(genesis.discarded))
    session.effects.checkpoint("genesis", state)
    if state.candidates:
        synthesis = best_of_n if session.config.synthesis.mode == "best-of-n" else tournament
        state = await synthesis(session, state)
        state = await finalize(session, state)
        session.effects.checkpoint("finalize", state)
        state = await summarise(session, state)
    session.effects.checkpoint("done", state)
    return state
