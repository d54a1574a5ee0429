"""What a run will need, before it starts: calls, tokens and evaluations, with the assumptions behind them.

What a method asks and runs is told by its plan (`sharp.llm.plans`); this module turns that into tokens and dollars.
Sizes of prompts and answers are orders of magnitude.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sharp.llm.cards import Price, Purpose
from sharp.llm.ledger import dollars
from sharp.llm.protocol import Usage


@dataclass(frozen=True)
class Span:
    """What is expected, and what it may come to at most."""

    expected: float
    most: float

    def __add__(self, other: Span) -> Span:
        return Span(self.expected + other.expected, self.most + other.most)

    def __mul__(self, other: Span) -> Span:
        return Span(self.expected * other.expected, self.most * other.most)

    def at_most(self, limit: float) -> Span:
        """Return the span, neither end above a limit."""
        return Span(min(self.expected, limit), min(self.most, limit))


def exactly(value: float) -> Span:
    """Return a span of one value."""
    return Span(value, value)


NOTHING = exactly(0)
PROGRAM_TOKENS = Span(1500, 1900)
INSTRUCTION_TOKENS = Span(2000, 4000)
ANSWER_TOKENS = Span(2500, 8000)


@dataclass(frozen=True)
class Ask:
    """Calls of one kind: what for, how many, the programs that each prompt shows, and the tokens of what comes back."""

    purpose: Purpose
    calls: Span
    programs: Span = NOTHING
    answer: Span = ANSWER_TOKENS

    @property
    def prompt_tokens(self) -> Span:
        """Tokens of all prompts of these calls."""
        return self.calls * (INSTRUCTION_TOKENS + PROGRAM_TOKENS * self.programs)

    @property
    def completion_tokens(self) -> Span:
        """Tokens of all answers to these calls."""
        return self.calls * self.answer


class Plan(Protocol):
    """What a method does with its configuration; plans are values, so that equal ones are estimated once."""

    def asks(self) -> Sequence[Ask]:
        """Return all calls, each kind once."""
        ...

    def evaluations(self) -> Span:
        """Return the runs on validation data."""
        ...

    def assumptions(self) -> Sequence[str]:
        """Return in words what these numbers rest on."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Estimate:
    """Calls and tokens by purpose, evaluations, and the assumptions in words."""

    calls: Mapping[Purpose, Span]
    prompt_tokens: Mapping[Purpose, Span]
    completion_tokens: Mapping[Purpose, Span]
    evaluations: Span
    assumptions: tuple[str, ...]

    def dollars(self, prices: Mapping[Purpose, Sequence[Price | None]]) -> Span | None:
        """Return what the calls of the given purposes cost, or None if a model has no known price.

        `prices` holds the models of each purpose, which share its calls evenly; a model that is asked more often than
        others stands there more often. No token is taken as cached.
        """
        shares = [
            _price(self.prompt_tokens[purpose], self.completion_tokens[purpose], price, len(models))
            for purpose, models in prices.items()
            if self.calls.get(purpose, NOTHING).most
            for price in models
        ]
        known = [share for share in shares if share is not None]
        return sum(known, NOTHING) if len(known) == len(shares) else None


def estimate(plan: Plan) -> Estimate:
    """Return what a run of this plan needs."""
    calls, prompts, completions = (defaultdict[Purpose, Span](lambda: NOTHING) for _ in range(3))
    for ask in plan.asks():
        calls[ask.purpose] += ask.calls
        prompts[ask.purpose] += ask.prompt_tokens
        completions[ask.purpose] += ask.completion_tokens
    sizes = (
        f"{_words(PROGRAM_TOKENS)} tokens a program, {_words(INSTRUCTION_TOKENS)} of other text a prompt",
        f"{_words(ANSWER_TOKENS)} tokens an answer; a reasoning model may need several times that",
        "no prompt token is served from a cache",
    )
    return Estimate(
        dict(calls), dict(prompts), dict(completions), plan.evaluations(), (*plan.assumptions(), *sizes)
    )


def _price(prompt: Span, completion: Span, price: Price | None, models: int) -> Span | None:
    expected, most = (
        dollars(Usage(prompt=max(1, round(asked / models)), completion=round(answered / models)), price)
        for asked, answered in ((prompt.expected, completion.expected), (prompt.most, completion.most))
    )
    return None if expected is None or most is None else Span(expected, most)


def _words(size: Span) -> str:
    return f"{size.expected:g} (at most {size.most:g})"
