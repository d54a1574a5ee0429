"""OctoTools' loop: an analysis, then one step at a time, each chosen, carried out and verified before the next is.

After P. Lu et al., OctoTools (2025): query analyser, action predictor, command generator, executor, context verifier.
There is no plan, and nothing that was done is corrected: what is wrong can only be done again in a further step. The
published bounds are 10 steps and 300 seconds; setting a problem up by typed pieces takes more steps, so that their
bound is the team's allowance. Results that cannot be written as JSON are lost there; here they stay in the pool, or no
solver could follow.
"""

from __future__ import annotations

from sharp.agent.answers import Next
from sharp.agent.memory import Memory, Record
from sharp.agent.plans import Plan, Step
from sharp.agent.prog_act import Course
from sharp.agent.team import Team
from sharp.errors import ReplyError


async def octo(team: Team) -> Course:
    """Carry the statement to a solution step by step. Raises `CallsUsedUp` and errors of model servers."""
    memory = Memory(Plan(()))
    try:
        analysis = await team.analyse(memory)
        for _ in range(team.allowance.steps):
            chosen = await team.next_step(memory, analysis)
            if chosen.step is None:
                return _ended(team, memory, chosen)
            memory, question = await _carried_out(team, memory, chosen.step)
            if question:
                return Course(memory, "asks", "a step needs an answer", (question,))
            if await team.stops(memory):
                return _ended(team, memory, Next())
    except ReplyError as error:
        return Course(memory, "unsolved", f"an answer could not be read: {error}")
    return Course(memory, "unsolved", f"all {team.allowance.steps} steps are used up")


async def _carried_out(team: Team, memory: Memory, step: Step) -> tuple[Memory, str]:
    memory = memory.revise(Plan((*memory.plan.steps, step)))
    if not team.toolkit[step.tool].parameters.model_fields:
        memory = memory.choose(step.id, {})
    else:
        choice = await team.choose(memory, step)
        if choice.question:
            return memory, choice.question
        if choice.parameters is None:
            return memory, ""
        memory = memory.choose(step.id, choice.parameters)
    if memory.runnable(step.id) and memory.current(step.id) is None:
        memory = memory.remember(await team.use(memory, step.id))
    return memory, ""


def _ended(team: Team, memory: Memory, last: Next) -> Course:
    """The loop believes its own verifier: it is solved where there is a sound solution at all."""
    if last.refusal:
        return Course(memory, "refused", last.refusal)
    if last.question:
        return Course(memory, "asks", "the statement leaves something open", (last.question,))
    if any(_is_solution(team, record) for record in map(memory.current, memory.plan.ids)):
        return Course(memory, "solved")
    return Course(memory, "unsolved", "it stopped without a solution")


def _is_solution(team: Team, record: Record | None) -> bool:
    if record is None or record.failed:
        return False
    return team.toolkit[record.recipe.tool].output("solution") is not None
