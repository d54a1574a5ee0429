"""AIDE: a tree of programs that are drafted, debugged and improved one after the other (arXiv 2502.13138)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from sharp.evaluation.protocol import Evaluation
from sharp.llm.prompts import render
from sharp.llm.protocol import Message
from sharp.llm.reply_retries import Conversation
from sharp.methods.sampling import SampledProgram, select_and_test
from sharp.methods.searching import SearchTask, checkpoint_periodically, execute_step, with_result
from sharp.methods.tree import Decision, Node, decide, tree
from sharp.tournament.execution import CandidateRuns, execute
from sharp.tournament.run_context import RunContext, system_prompt
from sharp.tournament.state import Candidate, Tournament

KEPT = 2500  # characters of each end of a program's output that a prompt shows


async def aide(session: RunContext) -> Tournament:
    """Take the configured number of steps, each of which writes and runs one program.

    Whether a program failed and how good it is comes from the scorer, where AIDE asks a model to read the output.
    """
    state = Tournament(problem=session.problem.label)
    for number in range(1, session.config.aide.steps + 1):
        result = await execute_step(session, _task(session, state, number), run=_run_once)
        state = with_result(state, result)
        checkpoint_periodically(session, state, number)
    return await select_and_test(session, state)


def trimmed(output: str) -> str:
    """Return the beginning and the end of a long text."""
    if len(output) <= 2 * KEPT:
        return output
    return f"{output[:KEPT]}\n… ({len(output) - 2 * KEPT} characters are left out)\n{output[-KEPT:]}"


def _task(session: RunContext, state: Tournament, number: int) -> SearchTask:
    nodes = tree(state.search)
    rng = Random(f"{session.config.seed}/aide/{number}")
    decision = decide(nodes, rng, session.config.aide)
    base = None if decision.node is None else state.candidates[decision.node.id]
    return SearchTask(
        number=number,
        move=decision.move,
        conversation=_conversation(session, state, nodes, decision),
        shown=() if base is None else (base.id,),
        base=base,
        note=_note(decision),
        temperature=session.config.aide.temperature,
    )


def _note(decision: Decision) -> str:
    if decision.move == "debug" and decision.node is not None:
        return f"debugging step {decision.node.debug_depth + 1} in a row"
    return ""


def _conversation(
    session: RunContext, state: Tournament, nodes: Sequence[Node], decision: Decision
) -> Conversation:
    values: dict[str, Any] = {
        "description": session.description,
        "function": session.problem.interface.function,
    }
    if decision.node is not None:
        values |= _program(session, state, decision.node)
    if decision.move == "draft":
        values["template"] = session.template.strip()
    if decision.move != "debug":
        values["memory"] = [_remembered(session, state, node) for node in nodes if not node.is_buggy]
    prompt = render(f"aide/{decision.move}", **values)
    return (system_prompt("aide/system"), Message("user", prompt))


def _program(session: RunContext, state: Tournament, node: Node) -> dict[str, str]:
    evaluation = _evaluation(state, node)
    return {
        "id": node.id,
        "code": state.candidates[node.id].code.strip(),
        "feedback": session.feedback(evaluation),
        "output": trimmed("\n".join(filter(None, (evaluation.stdout.strip(), evaluation.stderr.strip())))),
    }


def _remembered(session: RunContext, state: Tournament, node: Node) -> dict[str, str]:
    design = state.candidates[node.id].explanation or "not explained"
    return {"id": node.id, "design": design, "result": session.feedback(_evaluation(state, node))}


def _evaluation(state: Tournament, node: Node) -> Evaluation:
    run = state.execution_of(node.id)
    assert run is not None
    return run.evaluation


async def _run_once(session: RunContext, path: str, draft: SampledProgram) -> CandidateRuns:
    """Run a program as it is: steps of the tree take the place of repairs."""
    return await execute(session, path, draft.candidate, repair=_nobody)


async def _nobody(_path: str, _versions: Sequence[Candidate], _evaluation: Evaluation) -> Candidate | None:
    return None
