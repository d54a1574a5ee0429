"""Policies: how the team goes about a statement. Each is an async function from a team to the course that it took.

| policy | what it is |
| --- | --- |
| prog-act | a plan, corrected at fixed points and on request (PDE-Agent, section 3.3) |
| step-wise | the same, with the Orchestrator after every step (arm of PDE-Agent's Table 2) |
| none | the plan alone, to its end or its first failure (arm of Table 2) |
| octo | no plan: the next step is chosen after each (OctoTools' loop) |
| tool-generation | a program instead of tools, written again until it runs (OpenAlita's way) |
| single-model | one model, one program, run once |
| translation | the problem is set up and checked, and not solved (the Translator of PDE-SHARP) |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Literal

from sharp.agent.octo import octo
from sharp.agent.policies_programs import single_model, tool_generation
from sharp.agent.prog_act import SessionOutcome, prog_act
from sharp.agent.team import SPECIFICATION, AgentTeam, CallsUsedUp

Policy = Literal["prog-act", "step-wise", "none", "octo", "tool-generation", "single-model", "translation"]

PROGRAMS: frozenset[Policy] = frozenset({"tool-generation", "single-model"})
"""Policies in which a model writes a program; no other tool is known to them."""

POLICIES: Mapping[Policy, Callable[[AgentTeam], Awaitable[SessionOutcome]]] = {
    "prog-act": partial(prog_act, checkpoints="fixed"),
    "step-wise": partial(prog_act, checkpoints="every step"),
    "none": partial(prog_act, checkpoints="none"),
    "octo": octo,
    "tool-generation": tool_generation,
    "single-model": single_model,
    "translation": partial(prog_act, goal=SPECIFICATION),
}


async def run_policy(policy: Policy, team: AgentTeam) -> SessionOutcome:
    """Let the team go about its statement; where its model calls are used up, the course ends with what was done.

    Raises errors of model servers.
    """
    try:
        return await POLICIES[policy](team)
    except CallsUsedUp as error:
        return SessionOutcome(error.memory, "unsolved", str(error), exhausted=True)
