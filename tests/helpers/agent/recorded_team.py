"""Replies of a strong language model to the team, recorded in November 2026, and a model that gives them again.

Names of ports and verdicts are those of today; everything else is as it was said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sharp.llm.protocol import ChatReply, ChatRequest, TokenUsage
from sharp.llm.replies import extract_json

_COURSES = json.loads(Path(__file__).with_name("recorded_replies.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class RecordedCourse:
    """A statement, and the replies to it in turn, by role, or by step where parameters were chosen."""

    statement: str
    replies: Mapping[str, list[str]]

    @property
    def plan(self) -> dict[str, Any]:
        """The first plan."""
        return extract_json(self.replies["planner"][0])

    @property
    def parameters(self) -> dict[str, Any]:
        """What was chosen first for each step."""
        read = {who: extract_json(said[0]) for who, said in self.replies.items()}
        return {who: found["parameters"] for who, found in read.items() if "parameters" in found}


WALL = RecordedCourse(**_COURSES["wall"])
FITZHUGH_NAGUMO = RecordedCourse(**_COURSES["fitzhugh-nagumo"])


@dataclass
class RecordedTeam:
    """A chat backend that gives each role, and each step, its replies in turn, and keeps what was asked."""

    replies: Mapping[str, list[str]]
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def complete(self, request: ChatRequest) -> ChatReply:
        prompt = request.messages[1].content
        step = prompt.partition("## Your task: parameters of step ")[2].split("\n")[0]
        who = step or request.purpose
        number = sum(name == who for name, _ in self.asked)
        self.asked.append((who, request.messages[-1].content))
        return ChatReply((self.replies[who][number],), ("stop",), TokenUsage(10, 0, 5), "recorded-model")

    async def aclose(self) -> None:
        """Nothing is open."""

    @property
    def order(self) -> list[str]:
        return [who for who, _ in self.asked]

    def told(self, who: str) -> list[str]:
        return [prompt for name, prompt in self.asked if name == who]
