"""OctoTools' loop: an analysis, then one step at a time, each chosen, carried out and verified before the next is.

After P. Lu et al., OctoTools (2025): query analyser, action predictor, command generator, executor, context verifier.
There is no plan, and nothing that was done is corrected: what is wrong can only be done again in a further step. The
published bounds are 10 steps and 300 seconds; setting a problem up by typed pieces takes more steps, so that their
bound is the team's allowance. Results that cannot be written as JSON are lost there; here they stay in the pool, or no
solver could follow.
"""

from __future__ import annotations

from sharp.agent.memory import GraphMemory, ToolRecord
from sharp.agent.plans import PlanStep, ToolPlan
from sharp.agent.prog_act import SessionOutcome
from sharp.agent.responses import NextAction
from sharp.agent.team import AgentTeam
from sharp.errors import ReplyError


async def octo(team: AgentTeam) -> SessionOutcome:
    """Carry the statement to a solution step by step. Raises `CallsUsedUp` and errors of model servers."""
    memory = GraphMemory(ToolPlan(()))
    try:
        analysis = await team.analyse(memory)
        for _ in range(team.allowance.steps):
            chosen = await team.next_step(memory, analysis)
            if chosen.step is None:
                return _ended(team, memory, chosen)
            memory, question = await _carried_out(team, memory, chosen.step)
            if question:
                return SessionOutcome(memory, "needs_clarification", "a step needs an answer", (question,))
            if await team.is_done(memory):
                return _ended(team, memory, NextAction())
    except ReplyError as error:
        return SessionOutcome(memory, "unsolved", f"an answer could not be read: {error}")
    return SessionOutcome(memory, "unsolved", f"all {team.allowance.steps} steps are used up")


async def _carried_out(team: AgentTeam, memory: GraphMemory, step: PlanStep) -> tuple[GraphMemory, str]:
    memory = memory.revise(ToolPlan((*memory.plan.steps, step)))
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
        memory = memory.with_record(await team.call_tool(memory, step.id))
    return memory, ""


def _ended(team: AgentTeam, memory: GraphMemory, last: NextAction) -> SessionOutcome:
    """The loop believes its own verifier: it is solved where there is a sound solution at all."""
    if last.refusal:
        return SessionOutcome(memory, "rejected", last.refusal)
    if last.question:
        return SessionOutcome(
            memory, "needs_clarification", "the statement leaves something open", (last.question,)
        )
    if any(_is_solution(team, record) for record in map(memory.current, memory.plan.ids)):
        return SessionOutcome(memory, "solved")
    return SessionOutcome(memory, "unsolved", "it stopped without a solution")


def _is_solution(team: AgentTeam, record: ToolRecord | None) -> bool:
    if record is None or record.failed:
        return False
    return team.toolkit[record.recipe.tool].output("solution") is not None
