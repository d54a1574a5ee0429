"""What the team is told: all of it, and no more than it needs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from hpc.journal import Journal
from sharp.agent.effects import RecordedEffects, ResultStore
from sharp.agent.memory import GraphMemory
from sharp.agent.plans import ToolPlan, read_plan
from sharp.agent.prog_act import FINISHED
from sharp.agent.programs import whole_toolkit
from sharp.agent.settings import ROLES
from sharp.agent.synthesis import SynthesisService
from sharp.agent.team import AgentTeam, SamplingParams
from sharp.errors import ReplyError
from sharp.llm.protocol import ChatReply, ChatRequest, TokenUsage
from sharp.problems.expressions import FUNCTIONS
from tests.helpers.agent.recorded_team import WALL

TOOLKIT = whole_toolkit(cast(SynthesisService, None))
LONG = "The temperature is wrong by far, and the sign of the flux is not as stated. " * 20


@dataclass
class Listener:
    """A model that never gives a usable answer, and keeps what it was asked."""

    asked: list[ChatRequest] = field(default_factory=list)

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        return ChatReply(("no",), ("stop",), TokenUsage(), "listener")

    async def aclose(self) -> None:
        """Nothing is open."""


async def told(tmp_path: Path, ask: Any) -> str:
    """Return all that a role is told where `ask` asks it for the first time."""
    listener = Listener()
    with Journal.open(tmp_path) as journal:
        effects = RecordedEffects(journal, {"m": listener}, ResultStore(TOOLKIT, 1.0))
        team = AgentTeam(WALL.statement, TOOLKIT, effects, dict.fromkeys(ROLES, SamplingParams("m")))
        with pytest.raises(ReplyError):
            await ask(team)
    return "\n".join(message.content for message in listener.asked[0].messages)


def tried() -> GraphMemory:
    """A plan of the wall that was given up, with everything that it went through."""
    memory = GraphMemory(read_plan(WALL.plan["steps"]))
    for step in memory.plan.steps:
        memory = memory.choose(step.id, WALL.parameters.get(step.id, {}))
    return memory.noted(*(f"s{number}: {LONG}" for number in range(30)))


@pytest.mark.parametrize("policy", ["prog-act", "prog-act, again", "octo", "octo, at work"])
async def test_the_planner_reads_summaries_of_the_whole_toolkit(tmp_path: Path, policy: str) -> None:
    async def analysed(team: AgentTeam) -> None:
        await team.analyse(GraphMemory(ToolPlan(())))
        raise ReplyError("an analysis is free text")

    asks = {
        "prog-act": lambda team: team.plan(GraphMemory(ToolPlan(())), ""),
        "prog-act, again": lambda team: team.plan(tried(), "the outer face is too cold"),
        "octo": analysed,
        "octo, at work": lambda team: team.next_step(tried(), LONG[:500]),
    }
    prompt = await told(tmp_path, asks[policy])
    assert WALL.statement in prompt
    assert all(f'"name": "{name}"' in prompt for name in TOOLKIT)
    assert "properties" not in prompt
    assert len(prompt) <= 10_000, len(prompt)


async def test_the_orchestrator_reads_no_schema_and_learns_what_the_plan_leaves_out(tmp_path: Path) -> None:
    prompt = await told(tmp_path, lambda team: team.judge(tried(), FINISHED))
    assert "define_mean: Fixes the mean of a field" in prompt
    assert "- define_domain: " not in prompt.partition("## Tools that the plan does not use")[2]
    assert "properties" not in prompt
    assert len(prompt) <= 10_000, len(prompt)


@pytest.mark.parametrize("tool", ["define_boundary_condition", "discretise"])
async def test_who_chooses_parameters_reads_the_schema_of_one_tool(tmp_path: Path, tool: str) -> None:
    memory = tried()
    step = next(step for step in memory.plan.steps if step.tool == tool)
    prompt = await told(tmp_path, lambda team: team.choose(memory, step))
    shown = [name for name in TOOLKIT if f'"name": "{name}"' in prompt]
    assert shown == [tool]


async def test_the_parser_knows_grammar_reserved_names_units_and_the_convention_of_robin(
    tmp_path: Path,
) -> None:
    memory = tried()
    prompt = await told(tmp_path, lambda team: team.choose(memory, memory.plan.step("s5")))
    assert all(f"`{name}`" in prompt for name in (*FUNCTIONS, "D", "lap", "grad", "div", "pi", "E"))
    for said in ("piecewise(1, x < 0.5, 2)", "real and its imaginary part", "W/(m*K)", "without conversion"):
        assert said in prompt
    schema = TOOLKIT["define_boundary_condition"].card()["parameters"]["properties"]
    assert "a*field + b*(outward normal derivative) = value" in schema["a"]["description"]
    assert all("description" in entry for name, entry in schema.items() if name != "type")


def test_schemas_say_each_thing_once() -> None:
    text = json.dumps(TOOLKIT["define_domain"].card())
    assert not {"title", "discriminator", "additionalProperties"} & set(text.split('"'))
    assert len(text) < 8000
