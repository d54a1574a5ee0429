"""From a model card to something that answers: the chat backend of the card's kind, found by its entry point.

A package adds a kind of model by an entry point of the group `sharp.chat_backends`, whose name is the kind and whose
value is a `BackendFactory`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from sharp.errors import ConfigurationError
from sharp.llm.cards import ModelCard, checked_url
from sharp.llm.protocol import ChatBackend
from sharp.plugins import load_plugin


@dataclass(frozen=True)
class CallLimits:
    """Seconds that a call and one attempt of it may take, and how many calls run at a time."""

    deadline_s: float = 1800.0
    attempt_timeout_s: float = 600.0
    concurrency: int = 16


BackendFactory = Callable[[ModelCard, CallLimits], ChatBackend]
"""Makes the backend of a card; raises ConfigurationError for a card that it cannot serve."""


def make_backend(
    card: ModelCard, *, deadline_s: float = 1800.0, attempt_timeout_s: float = 600.0, concurrency: int = 16
) -> ChatBackend:
    """Return the backend of a model card; times in seconds, `concurrency` in calls at a time.

    Raises ConfigurationError for a kind that no installed package offers, and what its factory raises.
    """
    factory: BackendFactory = load_plugin("sharp.chat_backends", card.kind)
    return factory(card, CallLimits(deadline_s, attempt_timeout_s, concurrency))


def make_openai(card: ModelCard, limits: CallLimits) -> ChatBackend:
    """Return a client of an OpenAI-compatible server.

    Raises ConfigurationError where no server is named or the environment variable of the key is not set.
    """
    from sharp.llm.server import OpenAIBackend

    if card.base_url is None:
        raise ConfigurationError(
            f"nothing says where model {card.name!r} is served: set base_url (http://127.0.0.1:8000/v1, say) "
            f"in its card or under models.servers.{card.name} of the run configuration"
        )
    try:
        url = checked_url(card.base_url)
    except ValueError as error:
        raise ConfigurationError(f"base_url of model {card.name!r}: {error}") from None
    key = None if card.api_key_env is None else os.environ.get(card.api_key_env)
    if card.api_key_env is not None and not key:
        raise ConfigurationError(
            f"environment variable {card.api_key_env}, which holds the key of model {card.name!r}, is not set"
        )
    return OpenAIBackend(
        card,
        base_url=url,
        api_key=key,
        deadline_s=limits.deadline_s,
        attempt_timeout_s=limits.attempt_timeout_s,
        max_concurrency=limits.concurrency,
    )
