"""What the team may do to the world: ask a model, use a tool, and ask the user. All are recorded once.

A tool is a pure function of its recipe, and yet recorded: prompts show its figures, and another machine's rounding or
another day's time limit must not change what was asked. On a resumed or replayed run the record answers, and a live
value is made again from its recipe only where a tool that was not yet used needs it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from hpc.errors import ReplayMiss
from sharp.agent.memory import ToolInvocation, ToolRecord
from sharp.agent.tools import CheckResult, ToolContext, ToolError, Toolkit, ToolResult
from sharp.errors import BudgetExceeded
from sharp.llm import ChatBackend, ChatReply, ChatRequest, Effect, ModelCard, TokenUsage, as_served

if TYPE_CHECKING:
    from hpc.journal import Journal, ReplayJournal

JSONObject = dict[str, Any]

Guard = Callable[[Effect], AbstractContextManager[None]]

Teller = Callable[[str, ToolRecord | None], None]
"""Told the path of a call before it is paid for, and the record of each use of a tool."""


@dataclass
class ResultStore:
    """Values by the name of their recipe and the output port.

    What crosses the border of a process is the recipe alone: a value may hold functions and factorised matrices, which
    are never serialised. A process that lacks a value carries its recipe out again, inputs first.
    """

    toolkit: Toolkit
    wall_s: float
    recipes: dict[str, ToolInvocation] = field(default_factory=dict)
    _outcomes: dict[str, ToolResult] = field(default_factory=dict)

    def register(self, recipe: ToolInvocation) -> str:
        """Make a recipe known and return its name; those of its inputs are known before."""
        for handle in (handle for handles in recipe.inputs.values() for handle in handles):
            assert handle.partition(".")[0] in self.recipes, "inputs are known before what uses them"
        self.recipes[recipe.fingerprint] = recipe
        return recipe.fingerprint

    async def execute(self, recipe: ToolInvocation) -> ToolResult:
        """Run a recipe's tool, unless its outcome is at hand; raises `ToolError` in the tool's words."""
        name = self.register(recipe)
        if name not in self._outcomes:
            self._outcomes[name] = await self._run(recipe)
        return self._outcomes[name]

    async def value(self, handle: str) -> Any:
        """Return the value of `NAME.port`, made again if need be; raises `ToolError` for a name that is not known."""
        name, _, port = handle.partition(".")
        recipe = self.recipes.get(name)
        if recipe is None:
            raise ToolError(f"there is no result '{handle}'")
        return (await self.execute(recipe)).outputs[port]

    async def _run(self, recipe: ToolInvocation) -> ToolResult:
        tool = self.toolkit[recipe.tool]
        values: dict[str, Any] = {}
        for port in tool.inputs:
            given = [await self.value(handle) for handle in recipe.inputs.get(port.name, ())]
            values[port.name] = given if port.many else next(iter(given), None)
        found = tool.run(ToolContext(tool.checked(recipe.parameters), values, self.wall_s))
        return await found if isawaitable(found) else found


class _OpenQuestionError(Exception):
    """Nobody has answered yet."""


@dataclass
class RecordedEffects:
    """The effects of the team on a journal, live or in replay, with models by name and the store of results.

    The `path` of an effect says where in its session it is asked, and is unique there. `usage` counts the tokens of all
    answers, recorded ones included; `served_by` holds what the servers of models called themselves. `answers` are the
    user's to the questions that were open last. `guard` is entered while a model is asked, and may raise
    `BudgetExceeded`; in a replay, `stopped` says that it did where the record ends.
    """

    recorder: Journal | ReplayJournal
    backends: Mapping[str, ChatBackend]
    pool: ResultStore
    tell: Teller = lambda *_: None
    usage: TokenUsage = field(default_factory=TokenUsage)
    served_by: dict[str, tuple[str, ...]] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    guard: Guard = lambda _: nullcontext()
    stopped: bool = False

    async def chat(self, path: str, request: ChatRequest) -> ChatReply:
        """Ask a language model once; raises `BudgetExceeded`."""

        async def call() -> JSONObject:
            with self.guard(Effect(path, "chat", request.to_json(), {}, {})):
                self.tell(path, None)
                return (await self.backends[request.model].complete(request)).to_json()

        try:
            recorded = await self.recorder.perform("chat", path, request.to_json(), call)
        except ReplayMiss as miss:
            if self.stopped:
                raise BudgetExceeded(f"a budget was used up: {miss}") from None
            raise
        reply = ChatReply.from_json(recorded)
        self.usage += reply.usage
        known = self.served_by.get(request.model, ())
        self.served_by[request.model] = tuple(dict.fromkeys((*known, reply.served_by)))
        return reply

    async def takes_schemas(self, card: ModelCard) -> bool:
        """Return whether a model's server holds answers to a JSON schema, by its card or a small request to it."""

        async def call() -> JSONObject:
            served = await asyncio.to_thread(as_served, card, ask_model=True)
            return {"structured_output": served.api.structured_output}

        if card.kind != "openai":
            return False
        found = await self.recorder.perform("offer", f"offer/{card.name}", {"model": card.name}, call)
        return bool(found["structured_output"] == "on")

    async def ask_user(self, path: str, questions: Sequence[str]) -> dict[str, str] | None:
        """Return the user's answers to questions, or None where there are none yet."""

        async def call() -> JSONObject:
            if not set(questions) <= self.answers.keys():
                raise _OpenQuestionError
            given, self.answers = self.answers, {}  # asked again, the same question is a new one
            return {"answers": {question: given[question] for question in questions}}

        try:
            found = await self.recorder.perform("ask_user", path, {"questions": list(questions)}, call)
        except (_OpenQuestionError, ReplayMiss):
            return None
        answers: dict[str, str] = found["answers"]
        return answers

    async def tool_call(self, path: str, step: str, recipe: ToolInvocation) -> ToolRecord:
        """Carry out a step's recipe once; what the tool could not do is a record with an error."""

        request = {
            "tool": recipe.tool,
            "parameters": dict(recipe.parameters),
            "inputs": {port: list(handles) for port, handles in recipe.inputs.items()},
        }
        self.pool.register(recipe)
        found = await self.recorder.perform("tool_call", path, request, partial(self._used, recipe))
        findings = tuple(CheckResult(**finding) for finding in found["findings"])
        record = ToolRecord(step, recipe, found["summary"], findings, found["error"], found["seconds"])
        self.tell(path, record)
        return record

    async def _used(self, recipe: ToolInvocation) -> JSONObject:
        began, error = time.perf_counter(), None
        try:
            outcome = await self.pool.execute(recipe)
        except ToolError as failure:
            outcome, error = ToolResult({}, {}), str(failure)
        return {
            "summary": dict(outcome.summary),
            "findings": [asdict(finding) for finding in outcome.findings],
            "error": error,
            "seconds": time.perf_counter() - began,
        }
