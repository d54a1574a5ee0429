"""CodePDE-R: the best of CodePDE's programs are shown together, and better ones asked for (arXiv 2505.08783)."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from sharp.methods.sampling import run_all, sample, select_and_test, single_call
from sharp.methods.searching import SearchTask, execute_step, improvement_prompt, with_result
from sharp.tournament import RunContext, Tournament, best_first, gather_all, next_author


async def codepde_refine(session: RunContext) -> Tournament:
    """Run CodePDE, then write `generations` programs for each number in `seeds` of its best programs.

    With the published values these are 4 programs each for the best 3, 4 and 5: 12 refinements, which do not know of
    one another, and 44 evaluations with 32 samples. The best refinement is reported, even where a sample was better;
    only where no refinement ran is the best sample.
    """
    state, drafts = await sample(session, single_call, session.config.genesis.candidates)
    state = await run_all(session, state, drafts)
    results = await gather_all(execute_step(session, task) for task in refinements(session, state))
    for result in results:
        state = with_result(session, state, result)
    session.effects.checkpoint("search", state)
    refined = [step.candidate for step in state.search if step.candidate and isfinite(step.metric)]
    return await select_and_test(session, state, among=refined or None)


def refinements(session: RunContext, state: Tournament) -> Iterator[SearchTask]:
    """Yield the steps, best programs first in each prompt; none where no program ran."""
    options, ranked = session.config.refine, best_first(state)
    numbers = [number for number in options.parents for _ in range(options.generations)] if ranked else []
    for step, number in enumerate(numbers, start=1):
        shown = tuple(ranked[:number])
        yield SearchTask(
            number=step,
            move="refine",
            author=next_author(session, state, step),
            conversation=improvement_prompt(session, state, shown),
            shown=shown,
            base=state.candidates[shown[0]],
            note=f"the best {len(shown)} shown",
        )
