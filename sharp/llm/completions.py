"""Reading what an OpenAI-compatible server sends: completions, lists of models, errors."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from sharp.errors import ModelRefused
from sharp.llm.protocol import ChatReply, TokenUsage

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})")
_CONTEXT = re.compile(
    r"context[ _](length|size|window)|maximum context|prompt is too long|max_model_len|too many tokens",
    re.IGNORECASE,
)
_QUOTED = 300


class AnswerError(Exception):
    """An answer that is not of the agreed form; `usage` is what the server says it generated all the same."""

    def __init__(self, sentence: str, usage: TokenUsage | None = None) -> None:
        super().__init__(sentence)
        self.usage = usage or TokenUsage()


@dataclass(frozen=True)
class ServerError:
    """What a server says is wrong: its sentence, its code (may be empty) and the tokens it spent."""

    sentence: str
    code: str
    usage: TokenUsage

    @property
    def is_context(self) -> bool:
        """Whether the conversation is too long: by code (OpenAI) or by the words that servers use."""
        return self.code == "context_length_exceeded" or bool(_CONTEXT.search(self.sentence))


def read_completion(body: str) -> ChatReply:
    """Return the answers in a chat completion.

    Text is the message's content alone, never the reasoning beside it; a message without content counts as
    empty. Raises AnswerError, or ModelRefused where the server's filter withheld an answer.
    """
    data = _read_object(body)
    choices = data.get("choices")
    if not isinstance(choices, list):
        problem = read_error(body).sentence if "error" in data else f"it has only the keys {', '.join(data)}"
        raise AnswerError(f"the answer is not a chat completion: {problem}")
    usage = read_usage(data.get("usage"))
    if not choices:
        raise AnswerError("the answer has no choices", usage)
    try:
        texts = tuple(_text(choice) for choice in choices)
        reasons = tuple(_reason(choice) for choice in choices)
    except (AttributeError, KeyError, TypeError):
        raise AnswerError("the answer has a choice without a message", usage) from None
    return ChatReply(texts, reasons, usage, str(data.get("model") or ""))


def read_usage(data: object) -> TokenUsage:
    """Return the token counts of a `usage` object; what it does not say is 0."""
    return TokenUsage(
        prompt=_count(data, "prompt_tokens"),
        cached=_count(_member(data, "prompt_tokens_details"), "cached_tokens"),
        completion=_count(data, "completion_tokens"),
        reasoning=_count(_member(data, "completion_tokens_details"), "reasoning_tokens"),
    )


def read_model_names(body: str) -> tuple[str, ...]:
    """Return the names in an answer of /v1/models. Raises AnswerError."""
    entries = _read_object(body).get("data")
    if not isinstance(entries, list):
        raise AnswerError("the answer is not a list of models")
    return tuple(str(_member(entry, "id")) for entry in entries)


def read_error(body: str) -> ServerError:
    """Return what an error response says, whatever its form."""
    try:
        data = _read_object(body)
    except AnswerError:
        return ServerError(_shortened(body) or "no explanation", "", TokenUsage())
    error = data.get("error", data)
    sentence = _member(error, "message") or _member(error, "detail") or error
    return ServerError(
        _shortened(sentence if isinstance(sentence, str) else json.dumps(sentence)),
        str(_member(error, "code") or ""),
        read_usage(data.get("usage")),
    )


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a server asks to wait (RFC 9110, 10.2.3: a number or a date), or None."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def is_same_model(asked: str, served: str) -> bool:
    """Return whether the answer is the asked model's: the same name, or a dated snapshot of it.

    A server that does not name the model cannot be held to it.
    """
    return served in ("", asked) or (
        served.startswith(asked) and bool(_SNAPSHOT.fullmatch(served.removeprefix(asked)))
    )


def _read_object(body: str) -> dict[str, Any]:
    try:
        data = json.loads(body)
    except ValueError:
        raise AnswerError(f"the answer is not JSON; it begins with {body[:60]!r}") from None
    if not isinstance(data, dict):
        raise AnswerError(f"the answer is no JSON object; it begins with {body[:60]!r}")
    return data


def _text(choice: Mapping[str, Any]) -> str:
    message = choice["message"]
    text = str(message.get("content") or message.get("refusal") or "")
    # Half of a surrogate pair, which a cut answer may end with, could not be sent back in the next request.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _reason(choice: Mapping[str, Any]) -> str:
    reason = choice.get("finish_reason")
    if reason == "content_filter":
        raise ModelRefused("the server's content filter withheld the answer")
    return "length" if reason == "length" else "stop"


def _member(data: object, key: str) -> Any:
    return data.get(key) if isinstance(data, dict) else None


def _count(data: object, key: str) -> int:
    value = _member(data, key)
    return value if isinstance(value, int) else 0


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _QUOTED else f"{flat[:_QUOTED]}…"
