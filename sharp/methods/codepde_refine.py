"""CodePDE-R: the best of CodePDE's programs are shown together, and better ones asked for (arXiv 2505.08783)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from sharp.methods.sampling import conclude, run_all, sample, single_call
from sharp.methods.searching import Task, carry_out, improvement_prompt, with_result
from sharp.stages.finalize import best_first
from sharp.stages.session import Session, together
from sharp.stages.state import Tournament


async def codepde_refine(session: Session) -> Tournament:
    """Run CodePDE, then write `generations` programs for each number in `seeds` of its best programs.

    With the published values these are 4 programs each for the best 3, 4 and 5: 12 refinements, which do not know of
    one another, and 44 evaluations with 32 samples. The best refinement is reported, even where a sample was better;
    only where no refinement ran is the best sample.
    """
    state, drafts = await sample(session, single_call, session.config.genesis.candidates)
    state = await run_all(session, state, drafts)
    results = await together(carry_out(session, task) for task in refinements(session, state))
    for result in results:
        state = with_result(state, result)
    session.effects.checkpoint("search", state)
    refined = [step.candidate for step in state.search if step.candidate and isfinite(step.metric)]
    return await conclude(session, state, among=refined or None)


def refinements(session: Session, state: Tournament) -> Iterator[Task]:
    """Yield the steps, best programs first in each prompt; none where no program ran."""
    options, ranked = session.config.refine, best_first(state)
    numbers = [number for number in options.seeds for _ in range(options.generations)] if ranked else []
    for step, number in enumerate(numbers, start=1):
        yield _refinement(session, state, step, ranked[:number])


def _refinement(session: Session, state: Tournament, step: int, shown: Sequence[str]) -> Task:
    return Task(
        number=step,
        move="refine",
        conversation=improvement_prompt(session, state, shown),
        shown=tuple(shown),
        base=state.candidates[shown[0]],
        note=f"the best {len(shown)} shown",
    )
