"""AIDE: a tree of programs that are drafted, debugged and improved one after the other (arXiv 2502.13138).

The tree and the search policy are values and pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from random import Random
from typing import Any

from sharp.config import AideOptions
from sharp.evaluation import Evaluation
from sharp.llm import Message, render
from sharp.methods.sampling import select_and_test
from sharp.methods.searching import (
    SearchResult,
    SearchTask,
    checkpoint_periodically,
    execute_step,
    shown_program,
    with_result,
)
from sharp.tournament import (
    Candidate,
    Execution,
    RunContext,
    SearchAction,
    SearchStep,
    Tournament,
    execute,
    next_author,
    starting_candidates,
    system_prompt,
)

KEPT = 2500  # characters of each end of a program's output that a prompt shows


async def aide(session: RunContext) -> Tournament:
    """Take the configured number of steps, each of which writes and runs one program.

    Whether a program failed and how good it is comes from the scorer, where AIDE asks a model to read the output.
    """
    state = await _begun(session)
    for number in range(1, session.config.aide.steps + 1):
        # A program is run as it is: steps of the tree take the place of repairs.
        result = await execute_step(session, _task(session, state, number), repair=_no_repair)
        state = with_result(session, state, result)
        checkpoint_periodically(session, state, number)
    return await select_and_test(session, state)


async def _begun(session: RunContext) -> Tournament:
    """Return the state with the user's own solvers, run, as the first drafts of the tree."""
    state, given = Tournament(problem=session.problem.label), starting_candidates(session)
    for each in given:
        outcome = await execute(session, "start", each, repair=_no_repair)
        step = SearchTask(0, "draft", "", (), note="given to start from")
        state = with_result(session, state, SearchResult(step, each, outcome))
    return state


def trimmed(output: str) -> str:
    """Return the beginning and the end of a long text."""
    if len(output) <= 2 * KEPT:
        return output
    return f"{output[:KEPT]}\n… ({len(output) - 2 * KEPT} characters are left out)\n{output[-KEPT:]}"


def _task(session: RunContext, state: Tournament, number: int) -> SearchTask:
    nodes = tree(state.search)
    rng = Random(f"{session.config.seed}/aide/{number}")
    decision = decide(nodes, rng, session.config.aide)
    node, note = decision.node, ""
    base = None if node is None else state.candidates[node.id]
    values: dict[str, Any] = {**session.told, "scored": session.scored}
    if node is not None:
        evaluation = _evaluation(state, node)
        output = "\n".join(filter(None, (evaluation.stdout.strip(), evaluation.stderr.strip())))
        values |= shown_program(session, state, node.id) | {"output": trimmed(output)}
    if node is not None and decision.move == "debug":
        note = f"debugging step {node.debug_depth + 1} in a row"
        failure = _evaluation(state, node).failure
        values["too_costly"] = failure is not None and failure.kind in ("timeout", "memory")
    if decision.move == "draft":
        values["template"] = session.template.strip()
    if decision.move != "debug":
        values["memory"] = [
            {
                "id": one.id,
                "design": state.candidates[one.id].explanation or "not explained",
                "result": session.feedback(_evaluation(state, one)),
            }
            for one in nodes
            if not one.is_buggy
        ]
    prompt = render(f"aide/{decision.move}", **values)
    return SearchTask(
        number=number,
        move=decision.move,
        author=next_author(session, state, number),
        conversation=(system_prompt("aide/system"), Message("user", prompt)),
        shown=() if base is None else (base.id,),
        base=base,
        note=note,
        temperature=session.config.aide.temperature,
    )


def _evaluation(state: Tournament, node: Node) -> Evaluation:
    run = state.execution_of(node.id)
    assert run is not None
    return run.evaluation


async def _no_repair(
    _path: str, _versions: Sequence[Candidate], _executions: Sequence[Execution]
) -> Candidate | None:
    return None


@dataclass(frozen=True)
class Node:
    """A program of the tree; `parent` is None for drafts. `debug_depth` counts debugging steps one after the other."""

    id: str
    parent: str | None
    metric: float
    debug_depth: int

    @property
    def is_buggy(self) -> bool:
        """Whether the program has no result, by the scorer's word."""
        return not isfinite(self.metric)


@dataclass(frozen=True)
class Decision:
    """What a step does: draft, debug a node or improve a node."""

    move: SearchAction
    node: Node | None = None


def tree(steps: Sequence[SearchStep]) -> tuple[Node, ...]:
    """Return the nodes that a trace has led to, oldest first; steps whose reply held no program left none."""
    nodes: dict[str, Node] = {}
    for step in steps:
        if step.candidate is not None:
            parent = nodes[step.parents[0]] if step.parents else None
            depth = parent.debug_depth + 1 if parent and step.move == "debug" else 0
            above = None if parent is None else parent.id
            nodes[step.candidate] = Node(step.candidate, above, step.metric, depth)
    return tuple(nodes.values())


def decide(nodes: Sequence[Node], rng: Random, options: AideOptions) -> Decision:
    """Return what comes next: drafts first; then, as often as configured, debugging; else the best node is improved."""
    if sum(node.parent is None for node in nodes) < options.drafts:
        return Decision("draft")
    if rng.random() < options.debug_probability:
        broken = debuggable(nodes, options.max_debug_depth)
        if broken:
            return Decision("debug", rng.choice(broken))
    good = [node for node in nodes if not node.is_buggy]
    return Decision("improve", min(good, key=lambda node: node.metric)) if good else Decision("draft")


def debuggable(nodes: Sequence[Node], max_depth: int) -> list[Node]:
    """Return the buggy leaves that were not debugged too often already."""
    inner = {node.parent for node in nodes}
    return [n for n in nodes if n.is_buggy and n.id not in inner and n.debug_depth <= max_depth]
