"""The embedded rule-based model behind a real HTTP server on the loopback that speaks the chat API."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from sharp.llm import ChatRequest, Message
from sharp.rule_based.backend import RuleBasedBackend
from tests.helpers.models.scripted_chat_server import Handler, completion

_TURN = threading.Lock()  # CPython 3.11 confuses the depths of syntax trees that threads build at a time


def answer_by_rules(handler: Handler, body: dict[str, Any]) -> None:
    """Answer a chat request as the rule-based model does."""
    request = ChatRequest(
        model="rule-based",
        purpose="",
        messages=tuple(Message(each["role"], each["content"]) for each in body["messages"]),
        temperature=body.get("temperature", 1.0),
        max_tokens=body.get("max_completion_tokens") or body.get("max_tokens", 8192),
        seed=body.get("seed", 0),
        n=body.get("n", 1),
    )
    with _TURN:
        reply = asyncio.run(RuleBasedBackend("rule-based").complete(request))
    handler.reply(200, completion(*reply.texts))
