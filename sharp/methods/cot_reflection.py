"""Chain of thought with reflection: a technique of OptiLLM, for every program of a best-of-N run (section 4.1)."""

from __future__ import annotations

import re
from dataclasses import replace

from sharp.config import SamplingParams
from sharp.llm import ChatReply, Conversation, render
from sharp.methods.sampling import ask_generator, best_of_n
from sharp.tournament import RunContext, Tournament

_OUTPUT = re.compile(r"<output>(.*?)(?:</output>|\Z)", re.DOTALL)


async def cot_reflection(session: RunContext) -> Tournament:
    """Run best-of-N where each program is what its author gives out after thinking and reflecting, in one call."""
    return await best_of_n(session, reflect)


async def reflect(session: RunContext, path: str, conversation: Conversation) -> ChatReply:
    """Answer by one call that is told to think, to reflect, and to give its answer as `<output>`."""
    options, (system, *rest) = session.config.cot_reflection, conversation
    text = render("cot-reflection/system", system=system.content.strip())
    sampling = SamplingParams(temperature=options.temperature, max_tokens=options.max_tokens)
    reply = await ask_generator(session, f"{path}/code", (replace(system, content=text), *rest), sampling)
    return replace(reply, texts=(output_of(reply.text),))


def output_of(text: str) -> str:
    """Return what stands in `<output>`, to the end where that is not closed; the whole reply without such a tag.

    The thinking may speak of the tag, so what follows the thinking is looked at first.
    """
    for part in (text.rpartition("</thinking>")[2], text):
        if found := _OUTPUT.search(part):
            return found[1].strip()
    return text
