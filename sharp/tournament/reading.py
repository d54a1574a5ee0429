"""Who reads what: how the candidates of a cycle are shared among judges whose contexts do not hold them all."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from sharp.errors import ReplyError
from sharp.llm import Message, prose, render, seed_at
from sharp.tournament.run_context import RunContext, ask_and_read, gather_all, system_prompt
from sharp.tournament.state import Candidate, Selection

SUMMARY_LENGTH = 1500
"""Characters of a summary at most: far fewer than a program has, or summaries would save nothing."""


@dataclass(frozen=True)
class ReadingPlan:
    """What one judge reads of the candidates of a cycle, each group in its order: in full, a summary of, nothing of.

    `sittings` are the groups that it reads in conversations of their own before it decides, none where one holds all.
    """

    shown: tuple[str, ...]
    summarised: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    sittings: tuple[tuple[str, ...], ...] = ()


Fits = Callable[[int, Sequence[str]], bool]
"""Whether the context of a judge, by its number, holds these candidates in full (and summaries of the others)."""


def share_out(session: RunContext, cycle: int, pool: Sequence[str], fits: Fits) -> list[ReadingPlan]:
    """Return what each judge reads; where one cannot read all, by the run's policy.

    Each judge has its own seeded order. Under `drop-code` and `summaries`, what each reads in full follows on a seeded
    circle of all candidates on what the judge before it read: so all are read, if the contexts together hold them, and
    none more than once more than another. Under `error` every judge is to read all, which fails where it is asked.
    """
    policy, place = session.config.context.policy, f"cycle-{cycle}/reading"
    circle, start = list(pool), 0
    random.Random(seed_at(session.config.seed, place)).shuffle(circle)
    found = []
    for number in range(1, session.config.n_judges + 1):
        order = _order_of(session, cycle, number, pool)
        if policy == "error" or fits(number, order):
            found.append(ReadingPlan(tuple(order)))
        elif policy == "sittings":
            found.append(ReadingPlan(tuple(order), sittings=tuple(_groups(order, partial(fits, number)))))
        else:
            turned = [*circle[start:], *circle[:start]]
            chosen = set(turned[: most_that_fit(turned, partial(fits, number))])
            start = (start + len(chosen)) % len(circle)
            rest = tuple(name for name in order if name not in chosen)
            kept = tuple(name for name in order if name in chosen)
            found.append(ReadingPlan(kept, rest) if policy == "summaries" else ReadingPlan(kept, (), rest))
    return found


def _order_of(session: RunContext, cycle: int, number: int, pool: Sequence[str]) -> list[str]:
    order = list(pool)
    if session.config.synthesis.shuffle:
        random.Random(seed_at(session.config.seed, f"cycle-{cycle}/select/judge-{number}/order")).shuffle(
            order
        )
    return order


def most_that_fit(names: Sequence[str], fit: Callable[[Sequence[str]], bool]) -> int:
    """Return how many of the first of these fit, at least one: then whoever asks is told that not even this fits."""
    low, high = 1, len(names)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fit(names[:middle]) else (low, middle - 1)
    return low


def _groups(names: Sequence[str], fit: Callable[[Sequence[str]], bool]) -> list[tuple[str, ...]]:
    """Split into as few groups as fit, of about equal size."""
    number, rest = 0, list(names)
    while rest:
        rest, number = rest[most_that_fit(rest, fit) :], number + 1
    sizes = [len(names[start::number]) for start in range(number)]
    left = iter(names)
    return [tuple(islice(left, size)) for size in sizes]


def not_read_in_full(selection: Selection) -> str:
    """Return in words which candidates a judge has not read in full; an empty string where it has read all."""
    parts = (("read a summary of", selection.summarised), ("left out for want of room:", selection.unread))
    return "; ".join(f"{words} {', '.join(names)}" for words, names in parts if names)


async def summarise(session: RunContext, cycle: int, candidates: Sequence[Candidate]) -> dict[str, str]:
    """Have a model write what a program does, for judges whose context does not hold its code; by id."""

    async def ask_for(candidate: Candidate) -> str:
        prompt = render("synthesis/summarise", **session.told, code=candidate.code.strip())
        path = f"cycle-{cycle}/summary/{candidate.id}"
        conversation = (system_prompt(), Message("user", prompt))
        try:
            text, _ = await ask_and_read(
                session, path, session.config.models.analyst, "analysis", conversation, _read_summary
            )
        except ReplyError:
            return candidate.explanation[:SUMMARY_LENGTH]
        return text

    texts = await gather_all(ask_for(candidate) for candidate in candidates)
    return {candidate.id: text for candidate, text in zip(candidates, texts, strict=True)}


def _read_summary(text: str) -> str:
    words = prose(text)
    if len(words) > SUMMARY_LENGTH:
        raise ReplyError(f"The summary has {len(words)} characters; at most {SUMMARY_LENGTH} are of use.")
    return words
