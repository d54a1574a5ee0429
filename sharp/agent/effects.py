"""What the team may do to the world: ask a model, and use a tool. Both are recorded once.

A tool is a pure function of its recipe, and yet recorded: prompts show its figures, and another machine's rounding or
another day's time limit must not change what was asked. On a resumed or replayed run the record answers, and a live
value is made again from its recipe only where a tool that was not yet used needs it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from sharp.agent.memory import ToolInvocation, ToolRecord
from sharp.agent.pool import ResultStore
from sharp.agent.tools import CheckResult, ToolError
from sharp.llm.protocol import ChatBackend, ChatReply, ChatRequest, TokenUsage

JSONObject = dict[str, Any]


class AgentEffects(Protocol):
    """The two effects of the team; `path` says where in its course an effect is asked, and is unique there."""

    async def chat(self, path: str, request: ChatRequest) -> ChatReply:
        """Ask a language model once."""
        ...

    async def tool_call(self, path: str, step: str, recipe: ToolInvocation) -> ToolRecord:
        """Carry out a step's recipe once; what the tool could not do is a record with an error."""
        ...


class EffectRecorder(Protocol):
    """The journal, live or in replay."""

    async def perform(
        self, kind: str, path: str, request: JSONObject, call: Callable[[], Awaitable[JSONObject]]
    ) -> JSONObject:
        """Answer from the record, or call and record."""
        ...


Teller = Callable[[str, ToolRecord | None], None]
"""Told the path of a call before it is paid for, and the record of each use of a tool."""


@dataclass
class RecordedEffects:
    """`AgentEffects` on a journal, with models by name and the pool in which tools work.

    `usage` counts the tokens of all answers, recorded ones included.
    """

    recorder: EffectRecorder
    backends: Mapping[str, ChatBackend]
    pool: ResultStore
    tell: Teller = lambda *_: None
    usage: TokenUsage = field(default_factory=TokenUsage)

    async def chat(self, path: str, request: ChatRequest) -> ChatReply:
        """Ask a language model once."""

        async def call() -> JSONObject:
            self.tell(path, None)
            return (await self.backends[request.model].complete(request)).to_json()

        reply = ChatReply.from_json(await self.recorder.perform("chat", path, request.to_json(), call))
        self.usage += reply.usage
        return reply

    async def tool_call(self, path: str, step: str, recipe: ToolInvocation) -> ToolRecord:
        """Carry out a recipe once, and know it from then on."""

        async def call() -> JSONObject:
            return await self._used(recipe)

        self.pool.register(recipe)
        found = await self.recorder.perform("tool_call", path, _request(recipe), call)
        findings = tuple(CheckResult(**finding) for finding in found["findings"])
        record = ToolRecord(step, recipe, found["summary"], findings, found["error"], found["seconds"])
        self.tell(path, record)
        return record

    async def _used(self, recipe: ToolInvocation) -> JSONObject:
        began = time.perf_counter()
        summary: Mapping[str, Any] = {}
        findings: tuple[CheckResult, ...] = ()
        error = None
        try:
            outcome = await self.pool.execute(recipe)
            summary, findings = outcome.summary, outcome.findings
        except ToolError as failure:
            error = str(failure)
        return {
            "summary": dict(summary),
            "findings": [asdict(finding) for finding in findings],
            "error": error,
            "seconds": time.perf_counter() - began,
        }


def _request(recipe: ToolInvocation) -> JSONObject:
    inputs = {port: list(handles) for port, handles in recipe.inputs.items()}
    return {"tool": recipe.tool, "parameters": dict(recipe.parameters), "inputs": inputs}
