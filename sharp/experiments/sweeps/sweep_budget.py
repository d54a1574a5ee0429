"""The budget of a whole sweep: every effect of every run is checked against it before it is paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sharp.config import Budget
from sharp.errors import BudgetExceeded
from sharp.evaluation.protocol import Evaluation, EvaluationRequest, Evaluator
from sharp.experiments.run_summary import RunSummary
from sharp.llm.budgets import Budget as Limits
from sharp.llm.budgets import check_budget
from sharp.llm.cards import ModelCard
from sharp.llm.ledger import CallTotals, Ledger, dollars
from sharp.llm.protocol import ChatBackend, ChatReply, ChatRequest, TokenUsage
from sharp.runs.budget import Clock
from sharp.runs.directory import RunDirectory
from sharp.runs.execution_backend import RunResources

_ON_ANY = {"gpu_hours", "wall_time", "jobs"}
_ON_CALLS = {"calls", "tokens", "dollars", *_ON_ANY}
_ON_EVALUATIONS = {"evaluations", *_ON_ANY}


class SweepBudgetExceeded(BudgetExceeded):
    """A budget of the whole sweep is used up: no run may pay for anything more."""


@dataclass(frozen=True)
class UsageTotals:
    """What runs have paid for: calls and tokens as an account, and runs on validation data."""

    account: CallTotals = field(default_factory=CallTotals)
    evaluations: int = 0

    def __add__(self, other: UsageTotals) -> UsageTotals:
        return UsageTotals(self.account + other.account, self.evaluations + other.evaluations)

    @classmethod
    def of_row(cls, row: RunSummary) -> UsageTotals:
        """Return what a run at rest has paid for."""
        usage = TokenUsage(prompt=row.prompt_tokens, completion=row.completion_tokens)
        unpriced = row.calls if row.dollars is None else 0
        account = CallTotals(row.calls, usage, row.dollars or 0.0, unpriced)
        return cls(account, row.evaluations - row.cached_evaluations)


class SweepBudget:
    """Counts what all runs of a sweep pay for, and raises `SweepBudgetExceeded` once a limit is used up.

    What is in flight counts, finishes and is recorded. `clock` tells time and jobs, if the site of a run does not;
    `warn` is told once when a limit comes near.
    """

    def __init__(
        self, budget: Budget, before: UsageTotals, warn: Callable[[str], None], clock: Clock | None = None
    ) -> None:
        self._limits = Limits(**budget.model_dump())
        self._spent = before
        self._in_flight = UsageTotals()
        self._clock = clock
        self._warn = warn
        self._warned: set[str] = set()

    @property
    def meters_gpus(self) -> bool:
        """Whether GPU-hours have to be known while jobs run."""
        return self._limits.gpu_hours is not None

    def tools(self, run: RunDirectory, tools: RunResources) -> RunResources:
        """Return the tools of a run so that what it does with them is paid for from here."""
        clock = tools.clock or self._clock
        backends = {
            name: _PaidBackend(inner, run.cards[name], self, clock) for name, inner in tools.backends.items()
        }
        evaluator = _PaidEvaluator(tools.evaluator, run.config.evaluation.x64, self, clock)
        return replace(tools, backends=backends, evaluator=evaluator)

    @contextmanager
    def charge(self, price: UsageTotals, clock: Clock | None) -> Iterator[Callable[[UsageTotals], None]]:
        """Let an effect pass, or raise; what is given in the end is told to the function that this yields."""
        self._check(_ON_CALLS if price.account.calls else _ON_EVALUATIONS, clock)
        self._in_flight += price
        try:
            yield self._pay
        finally:
            self._in_flight = _less(self._in_flight, price)

    def _pay(self, price: UsageTotals) -> None:
        self._spent += price

    def _check(self, touched: set[str], clock: Clock | None) -> None:
        if self._limits == Limits():
            return
        used = self._spent + self._in_flight
        ledger = Ledger({("all", "all"): used.account}, {"evaluation": used.evaluations})
        for limit in check_budget(ledger, self._limits, clock() if clock else None):
            if limit.level == "stop" and limit.name in touched:
                raise SweepBudgetExceeded(f"of the sweep, {limit.sentence}")
            if limit.name not in self._warned:
                self._warned.add(limit.name)
                self._warn(f"of the sweep, {limit.sentence}")


def _less(spending: UsageTotals, price: UsageTotals) -> UsageTotals:
    account = replace(spending.account, calls=spending.account.calls - price.account.calls)
    return UsageTotals(account, spending.evaluations - price.evaluations)


@dataclass(frozen=True)
class _PaidBackend:
    inner: ChatBackend
    card: ModelCard
    purse: SweepBudget
    clock: Clock | None

    async def complete(self, request: ChatRequest) -> ChatReply:
        with self.purse.charge(UsageTotals(CallTotals(calls=1)), self.clock) as pay:
            reply = await self.inner.complete(request)
            cost = dollars(reply.usage, self.card.price)
            pay(UsageTotals(CallTotals(1, reply.usage, cost or 0.0, int(cost is None))))
        return reply

    async def aclose(self) -> None:
        await self.inner.aclose()


@dataclass(frozen=True)
class _PaidEvaluator:
    """Counts runs on validation data; those in another precision than `x64`, the run's, are checks of finalists."""

    inner: Evaluator
    x64: bool | None
    purse: SweepBudget
    clock: Clock | None

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        scored = request.split == "validation" and request.study == "score"
        counted = int(scored and request.x64 == self.x64)
        with self.purse.charge(UsageTotals(evaluations=counted), self.clock) as pay:
            evaluation = await self.inner.evaluate(request)
            if not evaluation.environment.get("cached"):
                pay(UsageTotals(evaluations=counted))
        return evaluation
