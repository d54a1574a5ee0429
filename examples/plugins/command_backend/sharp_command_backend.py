"""A kind of model that is a command: it reads the conversation as JSON and prints the answer.

A model card of this kind names the command:

    name: my-model
    kind: command
    description: A model behind a program of mine.
    context: 32000
    sampling: {temperature: 0.7, max_tokens: 4000}
    options: {command: "ask-my-model --quiet"}
"""

import asyncio
import json
import shlex

from sharp.errors import ConfigurationError, ModelRefused
from sharp.llm import (
    CallLimits,
    ChatBackend,
    ChatReply,
    ChatRequest,
    Message,
    ModelCard,
    TokenUsage,
    count_tokens,
)


class CommandBackend:
    """Runs the command once for each answer that is wanted."""

    def __init__(self, name: str, command: list[str], limits: CallLimits) -> None:
        self._name, self._command, self._limits = name, command, limits
        self._free = asyncio.Semaphore(limits.concurrency)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer a request; raises `ModelRefused` if the command fails or takes too long."""
        texts = tuple([await self._answer(request, number) for number in range(request.n)])
        answers = [Message("assistant", text) for text in texts]
        # Without a tokenizer, tokens are estimated from the length of the texts.
        usage = TokenUsage(prompt=count_tokens(request.messages), completion=count_tokens(answers))
        return ChatReply(texts, ("stop",) * request.n, usage, self._name)

    async def aclose(self) -> None:
        """Nothing is held open."""

    async def _answer(self, request: ChatRequest, number: int) -> str:
        given = {**request.to_json(), "seed": request.seed + number}
        async with self._free:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            try:
                async with asyncio.timeout(self._limits.deadline_s):
                    printed, _ = await process.communicate(json.dumps(given).encode())
            except TimeoutError:
                process.kill()
                await process.wait()
                raise ModelRefused(f"{self._command[0]} did not answer in time") from None
        if process.returncode != 0:
            raise ModelRefused(f"{self._command[0]} ended with code {process.returncode}")
        return printed.decode()


def make(card: ModelCard, limits: CallLimits, /) -> ChatBackend:
    """Return the backend of a card; raises `ConfigurationError` where it names no command."""
    command = card.options.get("command")
    if not isinstance(command, str) or not command:
        raise ConfigurationError(f"model {card.name!r}: expected options.command, a command of the shell")
    return CommandBackend(card.name, shlex.split(command), limits)
