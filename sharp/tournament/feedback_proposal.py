"""An agent that proposes by what programs are to be judged, before a run (paper section 4.3 and appendix B.2.6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from sharp.errors import ModelError, ReplyError
from sharp.llm import (
    ChatBackend,
    ChatReply,
    ChatRequest,
    Conversation,
    Message,
    ModelCard,
    ask_until_valid,
    extract_json,
    render,
    texts_of,
)
from sharp.problems import Problem, render_description
from sharp.reference import FeedbackMetric, metrics_for

MOST_KINDS = 5
"""Kinds of feedback that a proposal may have."""


@dataclass(frozen=True)
class FeedbackProposal:
    """Kinds of feedback for `feedback.metrics`, the first of which ranks, and why."""

    metrics: tuple[str, ...]
    reason: str


async def propose_feedback(
    problem: Problem, card: ModelCard, backend: ChatBackend, *, without_data: bool = False
) -> FeedbackProposal:
    """Let a model choose the kinds of feedback for a problem from those that there are.

    `without_data` offers only what needs no reference. Raises `ModelError` where none can be had, or two
    cannot be used.
    """
    known = {
        name: kind for name, kind in metrics_for(problem).items() if not (without_data and kind.needs_data)
    }
    prompt = render(
        "synthesis/feedback",
        description=render_description(problem),
        measures=list(known.values()),
        most=MOST_KINDS,
    )
    ask = partial(_ask, card, backend)
    conversation = (Message("user", prompt),)
    read = partial(read_proposal, known=known)
    try:
        proposal, _ = await ask_until_valid(ask, "feedback", conversation, read, 1)
    except ReplyError as error:
        raise ModelError(f"{card.name} proposes nothing that can be used: {error}") from None
    return proposal


async def _ask(card: ModelCard, backend: ChatBackend, _place: str, conversation: Conversation) -> ChatReply:
    sampling = card.sampling_for("analysis")
    messages = tuple(conversation)
    return await backend.complete(
        ChatRequest(card.name, "analysis", messages, sampling.temperature, sampling.max_tokens, seed=0)
    )


def read_proposal(text: str, known: Mapping[str, FeedbackMetric]) -> FeedbackProposal:
    """Return the proposal of a reply; raises `ReplyError` unless it names distinct known kinds."""
    verdict = extract_json(text, {"metrics": ("metrics",)})
    given = verdict.get("metrics")
    named = re.split(r"[,;\s]+", given.strip()) if isinstance(given, str) else texts_of(given)
    cases = {name.lower(): name for name in known}
    names = [cases.get(name.strip("`").lower(), name) for name in named]
    unknown = [str(name) for name in names if name not in known]
    if unknown or not names or len(set(names)) < len(names) or len(names) > MOST_KINDS:
        found = f"; there is no {', '.join(unknown)}" if unknown else f", found {len(names)}"
        raise ReplyError(
            f'"metrics" must hold 1 to {MOST_KINDS} distinct names of {", ".join(known)}{found}.'
        )
    return FeedbackProposal(tuple(names), str(verdict.get("reason", "")))
