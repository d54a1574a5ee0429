"""Budgets that stop a run cleanly: checked before every effect, against the journal's own ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hpc.journal import EffectRecord
from sharp.config import BudgetOptions
from sharp.errors import BudgetExceeded
from sharp.llm import BudgetLimits, ClusterUsage, Effect, Ledger, ModelCard, build_ledger, check_budget
from sharp.runs.budget_status import as_effect, worked_minutes
from sharp.runs.replay_sources import paid_effects

if TYPE_CHECKING:
    from sharp.runs.directory import RunDirectory

# What an effect in flight counts as until its answer is there: one call with hardly a token, or one run.
_IN_FLIGHT: Mapping[str, Mapping[str, Any]] = {"chat": {"usage": {"prompt": 1}}, "evaluate": {"total_s": 0.0}}
_OF_ALL = {"gpu_hours", "wall_time", "jobs"}
_TOUCHED = {"chat": {"calls", "tokens", "dollars", *_OF_ALL}, "evaluate": {"evaluations", *_OF_ALL}}

Clock = Callable[[], ClusterUsage]
"""Says what was spent up to now that effects do not tell; asked before every effect."""


def ledger_of(records: Iterable[EffectRecord], cards: Mapping[str, ModelCard]) -> Ledger:
    """Return the ledger of recorded effects at the prices that the run began with."""
    return _tally(map(as_effect, records), cards)


def paid_ledger(run: RunDirectory, effects: Mapping[str, EffectRecord]) -> Ledger:
    """Return the ledger of what a run has paid for itself, which is what budgets limit."""
    return ledger_of(paid_effects(run.config, effects.values()), run.cards)


def used_up(run: RunDirectory, effects: Mapping[str, EffectRecord]) -> str | None:
    """Return in a sentence which budget of a run its record has used up, as far as the record alone tells."""
    limits, minutes = BudgetLimits(**run.config.budget.model_dump()), worked_minutes(effects.values())
    alerts = check_budget(paid_ledger(run, effects), limits, ClusterUsage(wall_time=minutes))
    return next((alert.sentence for alert in alerts if alert.level == "stop"), None)


def working_time(records: Iterable[EffectRecord], now: Callable[[], float] = time.monotonic) -> Clock:
    """Return the clock of a run without a cluster: the time worked before, as recorded, and that from now on."""
    before, began = worked_minutes(records), now()
    return lambda: ClusterUsage(wall_time=before + (now() - began) / 60)


class BudgetGuard:
    """Entered while an effect is paid for; raises BudgetExceeded once a limit that it would touch is used up.

    Effects in flight count, finish and are recorded; their tokens are known only then. `paid` returns the recorded
    effects that this run has paid for; `warn` is told once when a limit comes near. `clock` tells time and what jobs on
    a cluster used; by default there is no cluster.
    """

    def __init__(
        self,
        budget: BudgetOptions,
        cards: Mapping[str, ModelCard],
        paid: Callable[[], Iterable[EffectRecord]],
        warn: Callable[[str], None],
        clock: Clock | None = None,
    ) -> None:
        self._limits = BudgetLimits(**budget.model_dump())
        self._cards = cards
        self._paid = paid
        self._warn = warn
        self._clock = clock or working_time(paid())
        self._warned: set[str] = set()
        self._in_flight: dict[str, Effect] = {}

    @contextmanager
    def __call__(self, effect: Effect) -> Iterator[None]:
        """Let an effect pass, or raise."""
        if self._limits != BudgetLimits():
            self._check(_TOUCHED[effect.kind])
        self._in_flight[effect.path] = effect._replace(reply=_IN_FLIGHT[effect.kind])
        try:
            yield
        finally:
            del self._in_flight[effect.path]

    def _check(self, touched: set[str]) -> None:
        ledger = _tally([*map(as_effect, self._paid()), *self._in_flight.values()], self._cards)
        for limit in check_budget(ledger, self._limits, self._clock()):
            if limit.level == "stop" and limit.name in touched:
                raise BudgetExceeded(limit.sentence)
            if limit.name not in self._warned:
                self._warned.add(limit.name)
                self._warn(limit.sentence)


def _tally(effects: Iterable[Effect], cards: Mapping[str, ModelCard]) -> Ledger:
    return build_ledger(effects, {name: card.price for name, card in cards.items()})
