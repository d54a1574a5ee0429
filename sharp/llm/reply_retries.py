"""Asking until an answer can be read: every refusal's sentence is sent back to the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from sharp.errors import ReplyError
from sharp.llm.prompts import render
from sharp.llm.protocol import Message

T = TypeVar("T")
Conversation = tuple[Message, ...]
AskModel = Callable[[str, Conversation], Awaitable[str]]
"""Gives the answer to a conversation that is asked at a path."""


async def ask_until_valid(
    say: AskModel, path: str, conversation: Conversation, read: Callable[[str], T], retries: int
) -> tuple[T, Conversation]:
    """Return what was read, and the conversation that led to it; raises ReplyError after `retries` further attempts."""
    for attempt in range(retries + 1):
        text = await say(path if attempt == 0 else f"{path}/retry-{attempt}", conversation)
        conversation = (*conversation, Message("assistant", text))
        try:
            return read(text), conversation
        except ReplyError as error:
            if attempt == retries:
                raise
            conversation = (*conversation, Message("user", render("common/retry", problem=str(error))))
    raise AssertionError("unreachable")
