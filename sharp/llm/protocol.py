"""What is asked of a language model and what comes back: the one seam every backend fits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any, Literal, Protocol

Author = Literal["system", "user", "assistant"]


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: Author
    content: str


Conversation = tuple[Message, ...]


@dataclass(frozen=True)
class ChatRequest:
    """One call: the whole conversation and how to sample from it.

    `model` is the name of a model card; `purpose` (`analysis`, `genesis`, `judge`, `search`, `debug`, `reporter`) only
    labels the call in the ledger and is never sent to the model. `n` replies are drawn in one call. `schema` is the
    JSON schema that the server holds the answer to; None where the answer is no JSON, or the server cannot.
    """

    model: str
    purpose: str
    messages: tuple[Message, ...]
    temperature: float
    max_tokens: int
    seed: int
    n: int = 1
    schema: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that is journalled and hashed."""
        plain = asdict(self) | {"messages": [asdict(message) for message in self.messages]}
        if self.schema is None:
            del plain["schema"]
        return plain


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one call. `cached` is part of `prompt`, `reasoning` is part of `completion`."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class ChatReply:
    """The answers to one request, in the order of the server's choices.

    `finish_reasons` holds `stop` or `length` for each text; `served_by` is the model name the server reported.
    """

    texts: tuple[str, ...]
    finish_reasons: tuple[str, ...]
    usage: TokenUsage
    served_by: str

    @property
    def text(self) -> str:
        """The first (usually only) answer."""
        return self.texts[0]

    def __add__(self, other: ChatReply) -> ChatReply:
        return ChatReply(
            self.texts + other.texts,
            self.finish_reasons + other.finish_reasons,
            self.usage + other.usage,
            self.served_by or other.served_by,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that is journalled."""
        return asdict(self) | {"texts": list(self.texts), "finish_reasons": list(self.finish_reasons)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ChatReply:
        """Rebuild a reply from its journalled form."""
        usage = TokenUsage(**data["usage"])
        return cls(tuple(data["texts"]), tuple(data["finish_reasons"]), usage, data["served_by"])


def seed_at(seed: int, path: str) -> int:
    """Return the seed of an effect: a pure function of the run's seed and the effect's place."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{path}".encode()).digest()[:4], "big") >> 1


class ChatBackend(Protocol):
    """Anything that answers chat requests: a server or the rule-based model.

    `complete` raises `ModelError` when no answer can be had; it never returns a shortened conversation's answer
    without saying so.
    """

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request."""
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...
