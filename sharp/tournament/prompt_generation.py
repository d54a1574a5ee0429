"""Prompts of the analysis that a model writes itself (paper appendix B.2.1)."""

from __future__ import annotations

from collections.abc import Sequence

from sharp.errors import ReplyError
from sharp.llm.prompts import render
from sharp.llm.protocol import Message
from sharp.llm.replies import read_verdict
from sharp.tournament.run_context import RunContext, ask_and_read, system_prompt
from sharp.tournament.state import GeneratedPrompts

SINGLE = "analysis"
"""The name of the one prompt that asks for everything."""


async def generate_prompts(session: RunContext, path: str, checks: Sequence[str]) -> GeneratedPrompts:
    """Let `models.writer` write a prompt for each check, or one for all of them.

    It is told the problem and what the analysis has to find out, and none of our prompts. A reply that stays unreadable
    after one more try gives no prompts, and the reason.
    """
    options = session.config.analysis
    names = (SINGLE,) if options.single else tuple(checks)
    prompt = render(
        "analysis/write",
        description=session.description,
        single=options.single,
        stability="stability" in checks,
        names=names,
    )
    try:
        prompts, _ = await ask_and_read(
            session,
            f"{path}/write",
            session.config.models.writer,
            "analysis",
            (system_prompt(), Message("user", prompt)),
            lambda text: read_prompts(text, names),
        )
    except ReplyError as error:
        return GeneratedPrompts(unreadable=str(error))
    return GeneratedPrompts(prompts)


def read_prompts(text: str, names: Sequence[str]) -> dict[str, str]:
    """Return the prompts of a reply by name; raises ReplyError unless there is a text for each name."""
    verdict = read_verdict(text, dict.fromkeys(names, str))
    prompts = {name: str(verdict[name]).strip() for name in names}
    empty = [f'"{name}"' for name, prompt in prompts.items() if not prompt]
    if empty:
        raise ReplyError(f"The prompts cannot be used: {', '.join(empty)} must not be empty.")
    return prompts
