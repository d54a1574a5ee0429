"""From a model card to something that answers: the chat backend of the card's kind, found by its entry point.

A package adds a kind of model by an entry point of the group `sharp.chat_backends`, whose name is the kind and whose
value is a `BackendFactory`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING

from sharp.errors import ConfigurationError, ModelError
from sharp.event_loop import run_coroutine
from sharp.llm.cards import ModelCard, checked_url
from sharp.llm.protocol import ChatBackend
from sharp.plugins import load_plugin

if TYPE_CHECKING:
    from sharp.llm.server import OpenAIBackend

log = logging.getLogger(__name__)
_OFFER_S = 20.0


@dataclass(frozen=True)
class CallLimits:
    """Seconds that a call may take and that a server may be silent within it; how many calls run at a time."""

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


def as_served(card: ModelCard, *, ask_model: bool) -> ModelCard:
    """Return a card as its server serves the model: with the server's context where that is smaller.

    With `ask_model` one small request finds out whether answers can be held to a schema, where the card leaves that
    open. A server that cannot be reached, or does not tell, leaves the card as it is: it may be started later.
    """
    if card.kind != "openai" or card.base_url is None:
        return card
    try:
        context, structured_output = _offered(
            card.model_dump_json(), ask_model and card.api.structured_output == "auto"
        )
    except ModelError as error:
        log.warning("what the server of model %r offers is not known: %s", card.name, error)
        return card
    return card.as_served(context, structured_output)


@lru_cache  # a sweep begins many runs with the same cards
def _offered(card: str, ask_model: bool) -> tuple[int | None, bool | None]:
    return run_coroutine(_ask_for_offer(ModelCard.model_validate_json(card), ask_model))


async def _ask_for_offer(card: ModelCard, ask_model: bool) -> tuple[int | None, bool | None]:
    backend = make_openai(card, CallLimits(_OFFER_S, _OFFER_S), attempts=1)
    try:
        if ask_model:
            offer = await backend.offer()
            return offer.context, offer.structured_output
        models = await backend.models()
        name = card.served_name or (next(iter(models)) if len(models) == 1 else "")
        return models.get(name), None
    finally:
        await backend.aclose()


def make_openai(card: ModelCard, limits: CallLimits, attempts: float = inf) -> OpenAIBackend:
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
        attempts=attempts,
    )
