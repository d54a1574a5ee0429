"""Policies in which a model writes a program instead of choosing parameters of tools.

`tool_generation` goes about it as OpenAlita does: it asks for a tool, runs it, and asks again with the error until it
runs. `single_model` is one language model alone (LLM-DS of PDE-Agent's comparison): one answer, which is run once.
Neither is told anything of the mathematics of a program that runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

from sharp.agent.memory import GraphMemory, ToolRecord
from sharp.agent.plans import PlanStep, ToolPlan
from sharp.agent.prog_act import SessionOutcome
from sharp.errors import ReplyError

ATTEMPTS = 4
STEP = PlanStep("s1", "run_program")

Chosen = dict[str, Any]


class Writer(Protocol):
    """What these policies need of the team."""

    statement: str

    async def ask(
        self,
        memory: GraphMemory,
        role: Literal["programmer"],
        name: str,
        prompt: str,
        read: Callable[[str], Chosen],
    ) -> Chosen:
        """Ask the model of a role until its answer can be read, or raise `ReplyError`."""
        ...

    async def call_tool(self, memory: GraphMemory, step: str) -> ToolRecord:
        """Carry out a step as things stand."""
        ...


async def single_model(team: Writer) -> SessionOutcome:
    """Take the one program that a model writes as it is; an answer of the wrong form is asked for again in form only.

    Raises `CallsUsedUp` and errors of model servers.
    """
    return await tool_generation(team, attempts=1)


async def tool_generation(team: Writer, attempts: int = ATTEMPTS) -> SessionOutcome:
    """Let a model write a program, and again with the error of each that fails, until one runs.

    Raises `CallsUsedUp` and errors of model servers.
    """
    from sharp.agent.programs.asking import parse_program, prompt_for  # loads the sandbox and sympy

    memory, failed = GraphMemory(ToolPlan((STEP,))), None
    for _ in range(attempts):
        try:
            written = await team.ask(
                memory, "programmer", "program", prompt_for(team.statement, failed), parse_program
            )
        except ReplyError as error:
            return SessionOutcome(memory, "unsolved", f"an answer could not be read: {error}")
        memory = memory.choose(STEP.id, written)
        record = await team.call_tool(memory, STEP.id)
        memory = memory.with_record(record)
        if not record.failed:
            return SessionOutcome(memory, "solved")
        failed = record
    assert failed is not None, "there is at least one attempt"
    return SessionOutcome(memory, "unsolved", f"program {attempts} of {attempts} failed: {failed.error}")
