"""Fitting a conversation into a model's context, with nothing dropped silently.

A prompt marks what may be dropped with two lines of their own:

    <!-- droppable: c017 -->
    ... the code of candidate c017 ...
    <!-- end -->

The marks never reach a model: `fit_to_context` and the server backend remove them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from sharp.errors import ContextExceeded
from sharp.llm.protocol import Message

Policy = Literal["error", "drop-code"]

BYTES_PER_TOKEN = 3.5
TOKENS_PER_MESSAGE = 4

_SECTION = re.compile(
    r"^<!-- droppable: (?P<name>\S+) -->\n(?P<body>.*?)^<!-- end -->(?:\n|\Z)", re.MULTILINE | re.DOTALL
)
_MARK = re.compile(r"^<!-- (?:droppable: \S+|end) -->(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True)
class FittedConversation:
    """A conversation without marks, the names of the dropped sections and the estimated number of tokens."""

    messages: tuple[Message, ...]
    dropped: tuple[str, ...]
    tokens: int


def count_tokens(messages: Sequence[Message], bytes_per_token: float = BYTES_PER_TOKEN) -> int:
    """Estimate the tokens of a conversation: UTF-8 bytes / 3.5, and 4 a message for the chat template.

    English prose runs at 4 to 4.5 bytes a token and code at 3 to 3.5 with current byte-pair vocabularies, so
    the default is on the safe side of a mix. A model card can carry its own measured `bytes_per_token`.
    """
    size = sum(len(message.content.encode("utf-8", "surrogatepass")) for message in messages)
    return ceil(size / bytes_per_token) + TOKENS_PER_MESSAGE * len(messages)


def strip_droppable_markers(text: str) -> str:
    """Return a prompt without the lines that mark droppable sections."""
    return _MARK.sub("", text)


def fit_to_context(
    messages: Sequence[Message],
    budget: int,
    policy: Policy,
    *,
    keep: Collection[str] = (),
    spare: Collection[str] = (),
    bytes_per_token: float = BYTES_PER_TOKEN,
) -> FittedConversation:
    """Return the conversation within `budget` tokens (the context less the room for the answer).

    Under `error` a conversation that is too long raises ContextExceeded. Under `drop-code` marked sections
    make way one by one, the oldest message first and within a message from the last section up, those named in
    `spare` after all others and those in `keep` never; each leaves a line that says so. ContextExceeded is raised if
    that is not enough.
    """
    current, dropped = tuple(messages), list[str]()
    while True:
        plain = tuple(
            replace(message, content=strip_droppable_markers(message.content)) for message in current
        )
        tokens = count_tokens(plain, bytes_per_token)
        if tokens <= budget:
            return FittedConversation(plain, tuple(dropped), tokens)
        sentence = f"the conversation has about {tokens} tokens, but only {budget} fit beside the answer"
        if policy == "error":
            raise ContextExceeded(
                f"{sentence}; the context policy 'error' forbids dropping any of it ('drop-code' would allow it)"
            )
        place = _next_to_drop(current, {*keep, *spare}) or _next_to_drop(current, keep)
        if place is None:
            raise ContextExceeded(
                f"{sentence}, even without the {len(dropped)} sections that could be dropped"
            )
        index, section = place
        name, text = section["name"], current[index].content
        dropped.append(name)
        notice = f"[{name} is left out here: the conversation had to be shortened.]\n"
        shortened = replace(current[index], content=text[: section.start()] + notice + text[section.end() :])
        current = (*current[:index], shortened, *current[index + 1 :])


def _next_to_drop(messages: Sequence[Message], keep: Collection[str]) -> tuple[int, re.Match[str]] | None:
    for index, message in enumerate(messages):
        sections = [found for found in _SECTION.finditer(message.content) if found["name"] not in keep]
        if sections:
            return index, sections[-1]
    return None
