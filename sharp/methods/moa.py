"""Mixture of agents: a technique of OptiLLM, for every program of a best-of-N run (section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence

from sharp.config import SamplingParams
from sharp.errors import ReplyError
from sharp.llm import ChatReply, Conversation, Message, render
from sharp.methods.sampling import answered, ask_generator, best_of_n, usable_texts
from sharp.tournament import RunContext, Tournament


async def moa(session: RunContext) -> Tournament:
    """Run best-of-N where each program is made of several answers and a critique of them."""
    return await best_of_n(session, mix)


async def mix(session: RunContext, path: str, conversation: Conversation) -> ChatReply:
    """Answer by proposals, a critique of them and their synthesis.

    Without a usable synthesis the first proposal is the answer. Raises ReplyError where no proposal is usable.
    """
    options = session.config.moa
    proposals = await _proposals(session, path, conversation)
    sampling = SamplingParams(temperature=options.critique_temperature, max_tokens=options.critique_tokens)
    asked = _about("moa/critique", conversation, proposals)
    critique = usable_texts(await ask_generator(session, f"{path}/critique", asked, sampling))
    sampling = SamplingParams(temperature=options.synthesis_temperature, max_tokens=options.synthesis_tokens)
    asked = _about("moa/synthesis", conversation, proposals, critique=critique[0] if critique else "")
    synthesis = usable_texts(await ask_generator(session, f"{path}/synthesis", asked, sampling))
    return answered((synthesis or proposals)[0])


async def _proposals(session: RunContext, path: str, conversation: Conversation) -> list[str]:
    """Return as many usable answers as are configured; the first stands in for those that are not usable.

    They come in one request; what it did not bring is asked for one by one.
    """
    options = session.config.moa
    sampling = SamplingParams(temperature=options.temperature, max_tokens=options.max_tokens)
    place = f"{path}/proposals"
    reply = await ask_generator(session, place, conversation, sampling, n=options.proposals)
    for number in range(len(reply.texts) + 1, options.proposals + 1):
        reply += await ask_generator(session, f"{place}/{number}", conversation, sampling)
    usable = usable_texts(reply)[: options.proposals]
    if not usable:
        raise ReplyError(f"All {options.proposals} proposals were empty or cut off.")
    return usable + usable[:1] * (options.proposals - len(usable))


def _about(prompt: str, conversation: Conversation, proposals: Sequence[str], **values: str) -> Conversation:
    system, question = conversation
    text = render(prompt, question=question.content.strip(), answers=proposals, **values)
    return (system, Message("user", text))
