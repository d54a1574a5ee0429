"""What a run will need, before it starts: calls, tokens and evaluations, with the assumptions behind them.

What a method asks and runs is told by its plan (`sharp.llm.cost_models`); this module turns that into tokens
and dollars.
Sizes of prompts and answers are orders of magnitude.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sharp.llm.cards import Price, Purpose
from sharp.llm.ledger import dollars
from sharp.llm.protocol import TokenUsage


@dataclass(frozen=True)
class EstimateRange:
    """What is expected, and what it may come to at most."""

    expected: float
    most: float

    def __add__(self, other: EstimateRange) -> EstimateRange:
        return EstimateRange(self.expected + other.expected, self.most + other.most)

    def __mul__(self, other: EstimateRange) -> EstimateRange:
        return EstimateRange(self.expected * other.expected, self.most * other.most)

    def at_most(self, limit: float) -> EstimateRange:
        """Return the span, neither end above a limit."""
        return EstimateRange(min(self.expected, limit), min(self.most, limit))


def exactly(value: float) -> EstimateRange:
    """Return a span of one value."""
    return EstimateRange(value, value)


NOTHING = exactly(0)
PROGRAM_TOKENS = EstimateRange(1500, 1900)
INSTRUCTION_TOKENS = EstimateRange(2000, 4000)
ANSWER_TOKENS = EstimateRange(2500, 8000)


@dataclass(frozen=True)
class CallEstimate:
    """Calls of one kind: what for, how many, the programs that each prompt shows, and the tokens of what comes back."""

    purpose: Purpose
    calls: EstimateRange
    programs: EstimateRange = NOTHING
    answer: EstimateRange = ANSWER_TOKENS

    @property
    def prompt_tokens(self) -> EstimateRange:
        """Tokens of all prompts of these calls."""
        return self.calls * (INSTRUCTION_TOKENS + PROGRAM_TOKENS * self.programs)

    @property
    def completion_tokens(self) -> EstimateRange:
        """Tokens of all answers to these calls."""
        return self.calls * self.answer


class CostModel(Protocol):
    """What a method does with its configuration; plans are values, so that equal ones are estimated once."""

    def asks(self) -> Sequence[CallEstimate]:
        """Return all calls, each kind once."""
        ...

    def evaluations(self) -> EstimateRange:
        """Return the runs on validation data."""
        ...

    def assumptions(self) -> Sequence[str]:
        """Return in words what these numbers rest on."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Estimate:
    """Calls and tokens by purpose, evaluations, and the assumptions in words."""

    calls: Mapping[Purpose, EstimateRange]
    prompt_tokens: Mapping[Purpose, EstimateRange]
    completion_tokens: Mapping[Purpose, EstimateRange]
    evaluations: EstimateRange
    assumptions: tuple[str, ...]

    def dollars(self, prices: Mapping[Purpose, Sequence[Price | None]]) -> EstimateRange | None:
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


def estimate(plan: CostModel) -> Estimate:
    """Return what a run of this plan needs."""
    calls, prompts, completions = (defaultdict[Purpose, EstimateRange](lambda: NOTHING) for _ in range(3))
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


def _price(
    prompt: EstimateRange, completion: EstimateRange, price: Price | None, models: int
) -> EstimateRange | None:
    expected, most = (
        dollars(TokenUsage(prompt=max(1, round(asked / models)), completion=round(answered / models)), price)
        for asked, answered in ((prompt.expected, completion.expected), (prompt.most, completion.most))
    )
    return None if expected is None or most is None else EstimateRange(expected, most)


def _words(size: EstimateRange) -> str:
    return f"{size.expected:g} (at most {size.most:g})"
