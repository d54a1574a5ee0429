"""A model that sets up one rod, stated in words that leave one of its ends open."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from sharp.errors import ModelUnavailable
from sharp.llm.protocol import ChatReply, ChatRequest, TokenUsage

WORDS = "u_t = 0.1 u_xx on (0, 1) until t = 1; u = sin(pi x/2) at first, and u = 0 at the left end."
QUESTION = "What holds at x = 1?"
PLAN = [
    {"id": "e", "tool": "define_equations"},
    {"id": "d", "tool": "define_domain"},
    {"id": "i", "tool": "define_initial_condition"},
    {"id": "l", "tool": "define_boundary_condition"},
    {"id": "r", "tool": "define_boundary_condition"},
    {
        "id": "w",
        "tool": "assemble_problem",
        "inputs": {
            "equations": "e.equations",
            "domain": "d.domain",
            "initial": "i.initial",
            "boundary": ["l.boundary", "r.boundary"],
        },
    },
    {"id": "c", "tool": "check_problem", "inputs": {"problem": "w.problem"}},
]
SOLVING = [
    {"id": "m", "tool": "choose_method", "inputs": {"problem": "c.validated_problem"}},
    {"id": "g", "tool": "discretise", "inputs": {"problem": "c.validated_problem", "method": "m.method"}},
    {"id": "s", "tool": "solve_in_time", "inputs": {"discretisation": "g.discretisation"}},
]
PARAMETERS: dict[str, Any] = {
    "e": {"coordinates": {"space": ["x"], "time": "t"}, "fields": ["u"], "equations": ["u_t = 0.1*u_xx"]},
    "d": {"domain": {"type": "box", "bounds": {"x": ["0", "1"]}}, "time": ["0", "1"]},
    "i": {"field": "u", "value": "sin(pi*x/2)"},
    "l": {"type": "dirichlet", "where": "x = 0", "field": "u", "value": "0"},
    "w": {"title": "A rod", "accuracy": 1e-4},
    "m": {},
    "g": {},
}
INSULATED = {"type": "neumann", "where": "x = 1", "field": "u", "value": "0"}


@dataclass
class ScriptedRod:
    """A model that sets up the rod of `WORDS`, and asks until it knows of the end that they leave open.

    It fails at the call of a number, counted from 0.
    """

    asked: list[str] = field(default_factory=list)
    fails_at: int = -1

    async def complete(self, request: ChatRequest) -> ChatReply:
        prompt = request.messages[1].content
        if len(self.asked) == self.fails_at:
            raise ModelUnavailable("the server is gone")
        self.asked.append(prompt)
        return ChatReply((answer_of(prompt),), ("stop",), TokenUsage(prompt=10, completion=5), "scripted")

    async def aclose(self) -> None:
        """Nothing is open."""


def answer_of(prompt: str) -> str:
    """Return what a model that reads the words right answers to a prompt of the team."""
    return f"```json\n{json.dumps(_content(prompt))}\n```"


def _content(prompt: str) -> dict[str, Any]:
    task = prompt.partition("## Your task: ")[2].splitlines()[0]
    if task == "a plan":
        return {"steps": PLAN if "it is solved elsewhere" in prompt else [*PLAN, *SOLVING]}
    if task == "a verdict":
        return {"verdict": "valid", "reason": "as stated"}
    step = task.removeprefix("parameters of step ")
    if step != "r":
        return {"parameters": PARAMETERS[step]}
    return {"parameters": INSULATED} if "insulated" in prompt else {"ask_user": QUESTION}
