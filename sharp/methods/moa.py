"""Mixture of agents: a technique of OptiLLM, for every program of a best-of-N run (section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence

from sharp.config import SamplingParams
from sharp.llm import ChatReply, Conversation, Message, render, said
from sharp.methods.sampling import ask_generator, best_of_n
from sharp.tournament import RunContext, Tournament


async def moa(session: RunContext) -> Tournament:
    """Run best-of-N where each program is made of several answers and a critique of them."""
    return await best_of_n(session, mix)


async def mix(session: RunContext, path: str, conversation: Conversation) -> ChatReply:
    """Answer by proposals, a critique of them and their synthesis, each used as it came.

    At the time of the paper OptiLLM did not look whether an answer was cut off: the limit of 512 tokens ends most
    critiques of programs in the middle, and the synthesis goes by what there is.
    """
    options = session.config.moa
    proposals = await _proposals(session, path, conversation)
    sampling = SamplingParams(temperature=options.critique_temperature, max_tokens=options.critique_tokens)
    asked = _about("moa/critique", conversation, proposals)
    critique = await ask_generator(session, f"{path}/critique", asked, sampling)
    sampling = SamplingParams(temperature=options.synthesis_temperature, max_tokens=options.synthesis_tokens)
    asked = _about("moa/synthesis", conversation, proposals, critique=said(critique.text).strip())
    return await ask_generator(session, f"{path}/synthesis", asked, sampling)


async def _proposals(session: RunContext, path: str, conversation: Conversation) -> list[str]:
    """Return the configured number of answers.

    They come in one request; what it did not bring is asked for one by one.
    """
    options = session.config.moa
    sampling = SamplingParams(temperature=options.temperature, max_tokens=options.max_tokens)
    place = f"{path}/proposals"
    reply = await ask_generator(session, place, conversation, sampling, n=options.proposals)
    for number in range(len(reply.texts) + 1, options.proposals + 1):
        reply += await ask_generator(session, f"{place}/{number}", conversation, sampling)
    return [said(text).strip() for text in reply.texts[: options.proposals]]


def _about(prompt: str, conversation: Conversation, proposals: Sequence[str], **values: str) -> Conversation:
    system, question = conversation
    text = render(prompt, question=question.content.strip(), answers=proposals, **values)
    return (system, Message("user", text))
