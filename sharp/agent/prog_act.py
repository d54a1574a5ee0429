"""Prog-Act: a plan carried out step by step, with corrections near the fault and a new plan where these fail.

The inner loop (PDE-Agent, equation 2) works at checkpoints: where the Parser's work is complete, at the end, and
whenever a step fails or an agent asks for help. The numbers speak first; the Orchestrator is asked where they object,
where somebody needs help, and whether what was understood is what was said, which no number can tell. It names
steps and what is wrong with them; these choose their parameters anew, and exactly what has become stale is done again.
Nothing was measured where an agent asks for help: whatever the Orchestrator answers then is advice to that agent.
The outer loop (equation 3) lets the Planner revise the plan; what both plans have in common stays done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sharp.agent.memory import GraphMemory
from sharp.agent.plans import PlanStep, ToolPlan
from sharp.agent.responses import Correction, Review, objection_in
from sharp.agent.team import SOLUTION, AgentTeam, PlanGoal
from sharp.errors import ReplyError

Checkpoints = Literal["fixed", "every step", "none"]

UNDERSTOOD = "Is the problem that was set up the one that was stated, complete and without anything invented?"
# A second question for the same thing: whoever overlooks a fault in the whole may find it item by item.
READINGS = (
    UNDERSTOOD,
    "Go through the statement once more and find each number, sign, place and condition of it in what was set up. "
    "Does any differ, or lack?",
)
FINISHED = "Is the problem solved, as far as the checks can tell?"
OVERRULED = (
    "The work was found valid, but a verdict does not stand against measured checks. Which step is at fault?"
)
HELP = (
    "A step needs help: what has to change? If nothing has to, answer `valid`; its agent goes on with your reason as "
    "advice."
)
FAILED = "A step does not do what it should: what has to change?"
LOOK = "Is the work sound so far?"


@dataclass(frozen=True)
class SessionOutcome:
    """How it ended: `solved`, `unsolved`, `asks` (with questions to the user) or `refused` (with the reason).

    `understood` is the end where the problem was to be set up alone. `exhausted` says that an unsolved session has
    ended because its model calls, or a budget, are used up.
    """

    memory: GraphMemory
    ending: Literal["solved", "specified", "unsolved", "needs_clarification", "rejected"]
    reason: str = ""
    questions: tuple[str, ...] = ()
    exhausted: bool = False


Progress = tuple[GraphMemory, Review | None]
"""The memory, and what the work stopped with, if anything: what went wrong, or a verdict that is not `valid`."""


async def prog_act(
    team: AgentTeam, checkpoints: Checkpoints = "fixed", goal: PlanGoal = SOLUTION
) -> SessionOutcome:
    """Carry the statement to its goal.

    `every step` asks the Orchestrator after each step, as the step-wise variant of the paper's Table 2 does; `none`
    never asks it, and ends with the first failure, or with what a tool or an agent asks then. Raises `CallsUsedUp` and
    errors of model servers.
    """
    memory, lesson = GraphMemory(ToolPlan(())), ""
    for _ in range(team.allowance.plans):
        try:
            plan = await team.plan(memory, lesson, goal)
        except ReplyError as error:
            lesson = f"no plan could be read: {error}"
            continue
        memory, verdict = await _carried_out(team, memory.revise(plan), checkpoints)
        if verdict is None:
            return SessionOutcome(memory, goal.ending)
        if verdict.judgement == "clarify":
            return SessionOutcome(memory, "needs_clarification", verdict.reason, verdict.questions)
        if verdict.judgement == "reject":
            return SessionOutcome(memory, "rejected", verdict.reason, verdict.questions)
        lesson = verdict.reason
        memory = memory.clear_parameters([fix.step for fix in verdict.fixes])
        if checkpoints == "none":
            break
    return SessionOutcome(memory, "unsolved", lesson)


async def _carried_out(team: AgentTeam, memory: GraphMemory, checkpoints: Checkpoints) -> Progress:
    for number, step in enumerate(memory.plan.steps):
        memory, trouble = await _performed(team, memory, step)
        question = None if checkpoints == "none" else _due(team, memory, number, checkpoints)
        if trouble is None and question is None:
            continue
        if checkpoints == "none":
            return memory, _unjudged(trouble)
        asked = checkpoints == "every step"
        memory, verdict = await _corrected(team, memory, number, question or LOOK, trouble, asked=asked)
        if verdict is not None:
            return memory, verdict
    return memory, None


def _unjudged(trouble: Review | None) -> Review | None:
    """Return what a fault comes to where no Orchestrator reads it.

    A tool's own objection to the problem is a question or a refusal, and whoever asks for help asks the user.
    """
    if trouble is None or trouble.judgement != "invalid":
        return trouble
    if trouble.questions:
        return Review("clarify", trouble.reason, questions=trouble.questions)
    return objection_in(trouble.reason) or trouble


async def _performed(team: AgentTeam, memory: GraphMemory, step: PlanStep, advice: str = "") -> Progress:
    """Choose a step's parameters where it has none, or anew with advice, and carry it out; say what went wrong."""
    if step.id not in memory.parameters or advice:
        memory, trouble = await _chosen(team, memory, step, advice)
        if trouble:
            return memory, trouble
    if memory.current(step.id) is None:
        if not memory.runnable(step.id):
            return memory, Review("invalid", f"{step.id} ({step.tool}) has no sound inputs", replan=True)
        memory = memory.with_record(await team.call_tool(memory, step.id))
    return memory, _numeric(memory, step.id)


async def _chosen(team: AgentTeam, memory: GraphMemory, step: PlanStep, advice: str) -> Progress:
    asking = f"{step.id} ({step.tool})"
    try:
        choice = await team.choose(memory, step, advice)
    except ReplyError as error:
        reason = f"{asking}: no usable parameters: {error}"
        return memory, Review("invalid", reason, replan=True, helpless=step.id)
    if choice.questions:
        return memory, Review("clarify", f"{asking} needs an answer", questions=choice.questions)
    if choice.parameters is None:
        reason = f"{asking} asks for help: {choice.help}"
        return memory, Review("invalid", reason, replan=True, helpless=step.id, questions=(choice.help,))
    return memory.choose(step.id, choice.parameters), None


def _numeric(memory: GraphMemory, step: str) -> Review | None:
    """Return what the numbers of a step object to, or None."""
    record = memory.current(step)
    assert record is not None, "the step was carried out"
    failed = [finding.about for finding in record.findings if not finding.passed]
    if record.error is None and not failed:
        return None
    told = "; ".join(failed) if record.error is None else record.error
    reason = f"{step} ({record.recipe.tool}) {'objects' if record.error is None else 'failed'}: {told}"
    return Review("invalid", reason, (Correction(step, told),))


def _due(team: AgentTeam, memory: GraphMemory, number: int, checkpoints: Checkpoints) -> str | None:
    """Return the question of the checkpoint after a step, or None where there is none."""
    owners = [team.toolkit[step.tool].owner for step in memory.plan.steps]
    if owners[number] == "parser" and "parser" not in owners[number + 1 :]:
        return UNDERSTOOD
    if number == len(owners) - 1:
        return FINISHED
    return LOOK if checkpoints == "every step" else None


async def _corrected(
    team: AgentTeam, memory: GraphMemory, number: int, question: str, trouble: Review | None, *, asked: bool
) -> Progress:
    """Turn until the Orchestrator, or the numbers where it need not be asked, find the work up to a step sound."""
    overruled = False
    for turn in range(team.allowance.correction_rounds + 1):
        last = turn == team.allowance.correction_rounds
        if trouble is not None and trouble.judgement == "clarify":
            return memory, trouble
        if trouble is None and question != UNDERSTOOD and not asked:
            return memory, None
        verdict = await _read(team, memory, question, trouble, overruled=overruled)
        if verdict.judgement == "valid" and trouble is None:
            return memory, None
        memory = memory.noted(*(str(review) for review in (trouble, verdict) if review and str(review)))
        if verdict.judgement == "valid" and trouble is not None:
            if last:
                return memory, trouble
            overruled = not trouble.helpless
            if overruled:
                continue
            verdict = Review("invalid", verdict.reason, (Correction(trouble.helpless, verdict.reason),))
        if verdict.judgement != "invalid" or verdict.replan or last:
            return memory, verdict
        memory, trouble = await _repaired(team, memory, number, verdict)
    raise AssertionError("unreachable")


async def _read(
    team: AgentTeam, memory: GraphMemory, question: str, trouble: Review | None, *, overruled: bool
) -> Review:
    """Let the Orchestrator judge, and what was understood as often as is allowed, until it objects."""
    questions: tuple[str, ...] = (question,)
    if trouble is not None and trouble.helpless:
        questions = (f"{HELP} {trouble.reason}.",)
    elif trouble is not None:
        questions = (f"{OVERRULED if overruled else FAILED} The checks say: {trouble.reason}.",)
    elif question == UNDERSTOOD:
        questions = READINGS[: team.allowance.understanding_checks]
    verdict = Review("valid")
    for asked in questions:
        try:
            verdict = await team.judge(memory, asked)
        except ReplyError as error:
            return Review("invalid", f"the Orchestrator's answer could not be read: {error}", replan=True)
        if verdict.judgement != "valid":
            break
    return verdict


async def _repaired(team: AgentTeam, memory: GraphMemory, number: int, verdict: Review) -> Progress:
    """Choose the named steps anew, then do again exactly what is stale or has failed, up to where the work stands."""
    advice = {fix.step: fix.advice for fix in verdict.fixes}
    trouble = None
    for step in memory.plan.steps[: number + 1]:
        open_now = step.id in advice or step.id not in memory.parameters or memory.current(step.id) is None
        if open_now and trouble is None:
            memory, trouble = await _performed(team, memory, step, advice.get(step.id, ""))
        elif trouble is None:
            trouble = _numeric(memory, step.id)
    return memory, trouble
