"""Reading what an OpenAI-compatible server sends: completions, lists of models, errors."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

from sharp.errors import ModelRefused
from sharp.llm.protocol import ChatReply, TokenUsage
from sharp.llm.replies_text import reasoning_share

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
    return _read_reply(_read_object(body))


def read_stream(events: Iterable[str]) -> ChatReply:
    """Return the answers in a chat completion that came in parts: the `data` of its server-sent events, in order.

    Raises like `read_completion`; a stream that ends before its answers do is none.
    """
    told: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for event in events:
        part = _read_object(event)
        if "error" in part:
            raise AnswerError(f"the answer broke off: {read_error(event).sentence}")
        told |= {key: part[key] for key in ("model", "usage") if part.get(key)}
        for piece in part.get("choices") or ():
            _add_piece(choices.setdefault(_count(piece, "index"), {"message": {}}), piece)
    if any(choice.get("finish_reason") is None for choice in choices.values()):
        raise AnswerError("the answer broke off before its end", read_usage(told.get("usage")))
    return _read_reply({**told, "choices": [choice for _, choice in sorted(choices.items())]})


def _add_piece(choice: dict[str, Any], piece: Mapping[str, Any]) -> None:
    message = choice["message"]
    for key, text in (piece.get("delta") or {}).items():
        if isinstance(text, str) and key != "role":
            message[key] = message.get(key, "") + text
    choice["finish_reason"] = piece.get("finish_reason") or choice.get("finish_reason")


def _read_reply(data: Mapping[str, Any]) -> ChatReply:
    choices = data.get("choices")
    if not isinstance(choices, list):
        problem = f"it has only the keys {', '.join(data)}"
        if "error" in data:
            problem = read_error(json.dumps(data)).sentence
        raise AnswerError(f"the answer is not a chat completion: {problem}")
    usage = read_usage(data.get("usage"))
    if not choices:
        raise AnswerError("the answer has no choices", usage)
    try:
        texts = tuple(_text(choice) for choice in choices)
        reasons = tuple(_reason(choice) for choice in choices)
    except (AttributeError, KeyError, TypeError):
        raise AnswerError("the answer has a choice without a message", usage) from None
    usage = replace(usage, reasoning=usage.reasoning or _reasoning_tokens(choices, usage.completion))
    return ChatReply(texts, reasons, usage, str(data.get("model") or ""))


def read_usage(data: object) -> TokenUsage:
    """Return the token counts of a `usage` object; what it does not say is 0."""
    return TokenUsage(
        prompt=_count(data, "prompt_tokens"),
        cached=_count(_member(data, "prompt_tokens_details"), "cached_tokens"),
        completion=_count(data, "completion_tokens"),
        reasoning=_count(_member(data, "completion_tokens_details"), "reasoning_tokens"),
    )


def read_models(body: str) -> dict[str, int | None]:
    """Return the models in an answer of /v1/models, each with the context that the server gives it, None if untold.

    vLLM tells `max_model_len`, llama.cpp `meta.n_ctx` (and `n_ctx_train`, which no setting should exceed), others
    `context_length` or `context_window`. Raises AnswerError.
    """
    entries = _read_object(body).get("data")
    if not isinstance(entries, list):
        raise AnswerError("the answer is not a list of models")
    return {str(_member(entry, "id")): _context_of(entry) for entry in entries}


def _context_of(entry: object) -> int | None:
    keys = ("max_model_len", "context_length", "context_window", "n_ctx", "n_ctx_train")
    told = [_count(place, key) for place in (entry, _member(entry, "meta")) for key in keys]
    return min((tokens for tokens in told if tokens > 0), default=None)


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


def _reasoning_tokens(choices: Iterable[Mapping[str, Any]], completion: int) -> int:
    """Estimate the reasoning in a completion by its share of the text, where a server does not count it."""
    reasoned = answered = 0.0
    for choice in choices:
        message = choice["message"]
        beside = str(message.get("reasoning_content") or message.get("reasoning") or "")
        text = str(message.get("content") or "")
        within = reasoning_share(text) * len(text)
        reasoned, answered = reasoned + len(beside) + within, answered + len(text) - within
    return round(completion * reasoned / (reasoned + answered)) if reasoned else 0


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
