"""What a run cost, as views of its recorded effects.

Nothing here keeps state, and nothing unknown is counted as zero: dollars are None where a price or a token
count is missing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sharp.llm.protocol import TokenUsage

if TYPE_CHECKING:
    from sharp.llm.cards import Price

    Prices = Mapping[str, Price | None]

RunKind = Literal["evaluation", "debug", "smoke", "check", "test"]

# Runs of repaired programs lie below the repair: `cycle-1/round-1/c017/debug-1/smoke`.
_REPAIRED = re.compile(r"/debug-\d+/")


class Effect(NamedTuple):
    """One recorded effect: where it was asked, its kind, what was asked, what came back, the journal's notes.

    Kinds are `chat` and `evaluate`; others cost nothing. Requests and replies are in their plain forms.
    """

    path: str
    kind: str
    request: Mapping[str, Any]
    reply: Mapping[str, Any]
    meta: Mapping[str, Any]


@dataclass(frozen=True)
class CallTotals:
    """Calls, tokens and dollars of a group of chat effects."""

    calls: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    known_dollars: float = 0.0
    unpriced_calls: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.usage.prompt + self.usage.completion

    @property
    def dollars(self) -> float | None:
        """What the calls cost, or None where one of them has no known cost."""
        return None if self.unpriced_calls else self.known_dollars

    @property
    def cached_share(self) -> float | None:
        """The share of prompt tokens that servers had in their prefix caches; None where none is reported."""
        return self.usage.cached / self.usage.prompt if self.usage.cached else None

    def __add__(self, other: CallTotals) -> CallTotals:
        return CallTotals(
            self.calls + other.calls,
            self.usage + other.usage,
            self.known_dollars + other.known_dollars,
            self.unpriced_calls + other.unpriced_calls,
        )


@dataclass(frozen=True)
class Ledger:
    """The accounts of a run by (purpose, model); program runs by kind: their number and wall-time seconds.

    Runs count as in the paper: an *evaluation* is a run on validation data. *Smoke* runs are the short
    runs that come first, *debug* runs those of repaired programs. What follows the tournament stands apart:
    the *check* in 64-bit mode and the sealed *test*. `cached` says how many of the `runs` other runs had paid for:
    they took no time and count for no budget.
    """

    accounts: Mapping[tuple[str, str], CallTotals] = field(default_factory=dict)
    runs: Mapping[RunKind, int] = field(default_factory=dict)
    seconds: Mapping[RunKind, float] = field(default_factory=dict)
    cached: Mapping[RunKind, int] = field(default_factory=dict)

    @property
    def total(self) -> CallTotals:
        """All calls together."""
        return sum(self.accounts.values(), CallTotals())

    @property
    def by_purpose(self) -> dict[str, CallTotals]:
        """Accounts by stage: `analysis`, `genesis`, `judge`, `search`, `debug`, `reporter`."""
        return self._grouped(0)

    @property
    def by_model(self) -> dict[str, CallTotals]:
        """Accounts by model card."""
        return self._grouped(1)

    @property
    def evaluations(self) -> int:
        """Runs on validation data in the tournament."""
        return self.runs.get("evaluation", 0)

    @property
    def executions(self) -> int:
        """All runs of programs in the tournament: evaluations, smoke runs and debug runs."""
        return self.evaluations + self.runs.get("smoke", 0) + self.runs.get("debug", 0)

    @property
    def cached_evaluations(self) -> int:
        """Those of the `evaluations` that came from the cache."""
        return self.cached.get("evaluation", 0)

    def _grouped(self, position: int) -> dict[str, CallTotals]:
        groups: dict[str, CallTotals] = defaultdict(CallTotals)
        for key, account in self.accounts.items():
            groups[key[position]] += account
        return dict(groups)


def build_ledger(effects: Iterable[Effect], prices: Prices) -> Ledger:
    """Return the ledger of a run; `prices` maps model cards to the prices that the run was frozen with."""
    accounts: dict[tuple[str, str], CallTotals] = defaultdict(CallTotals)
    runs: Counter[RunKind] = Counter()
    seconds: dict[RunKind, float] = defaultdict(float)
    cached: Counter[RunKind] = Counter()
    for effect in effects:
        if effect.kind == "chat":
            model = effect.request["model"]
            usage = TokenUsage(**effect.reply["usage"])
            cost = dollars(usage, prices.get(model))
            totals = CallTotals(1, usage, cost or 0.0, int(cost is None))
            accounts[effect.request["purpose"], model] += totals
        elif effect.kind == "evaluate":
            kind = execution_kind(effect)
            known = is_cached(effect.reply)
            runs[kind] += 1
            cached[kind] += known
            seconds[kind] += 0.0 if known else effect.reply["total_s"]
    return Ledger(dict(accounts), dict(runs), dict(seconds), dict(+cached))


def is_cached(reply: Mapping[str, Any]) -> bool:
    """Return whether an evaluation was measured by another run."""
    return bool(reply.get("environment", {}).get("cached"))


def execution_kind(effect: Effect) -> RunKind:
    """Return what a program run counts as."""
    split = effect.request["split"]
    if split == "test":
        return "test"
    if effect.path.startswith("finalize/"):
        return "check"
    if split == "validation":
        return "evaluation"
    return "debug" if _REPAIRED.search(effect.path) else "smoke"


def dollars(usage: TokenUsage, price: Price | None) -> float | None:
    """Return what tokens cost, or None where the price or the count is unknown.

    Cached tokens are part of the prompt, reasoning tokens of the completion. A call always has prompt tokens,
    so none means that the server does not count them, which matters unless the model is free.
    """
    if price is None or price.prompt is None or price.completion is None:
        return None
    cached = price.prompt if price.cached is None else price.cached
    free = price.prompt == cached == price.completion == 0
    if usage.prompt == 0 and not free:
        return None
    fresh = usage.prompt - usage.cached
    return (fresh * price.prompt + usage.cached * cached + usage.completion * price.completion) / 1e6
