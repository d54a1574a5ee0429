"""The playbook as a chat backend: it sees the messages, the seed and the temperature, as a model would."""

from __future__ import annotations

import random

from sharp.llm.context import BYTES_PER_TOKEN, TOKENS_PER_MESSAGE, count_tokens
from sharp.llm.playbook.answers import answer
from sharp.llm.protocol import ChatReply, ChatRequest, Message, Usage


class PlaybookBackend:
    """Answers chat requests by rules. The same request always gets the same answer.

    Its token counts are the estimates of `sharp.llm.context`, there being no tokenizer.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer a request, `n` times with different seeds."""
        texts, reasons = [], []
        for number in range(request.n):
            rng = random.Random(f"{request.seed}/{number}/{request.temperature}")
            text, reason = _cut(answer(request.messages, rng), request.max_tokens)
            texts.append(text)
            reasons.append(reason)
        usage = Usage(
            prompt=count_tokens(request.messages),
            completion=sum(count_tokens([Message("assistant", text)]) for text in texts),
        )
        return ChatReply(tuple(texts), tuple(reasons), usage, self._name)

    async def aclose(self) -> None:
        """Nothing is held open."""


def _cut(text: str, max_tokens: int) -> tuple[str, str]:
    """End an answer where a model's would end, and say so."""
    if count_tokens([Message("assistant", text)]) <= max_tokens:
        return text, "stop"
    room = int((max_tokens - TOKENS_PER_MESSAGE) * BYTES_PER_TOKEN)
    return text.encode()[: max(room, 0)].decode(errors="ignore"), "length"
