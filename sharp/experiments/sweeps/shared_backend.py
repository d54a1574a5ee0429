"""What a sweep adds to a place: one pool of workers, one budget, and one turn at equal evaluations for all its runs."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from math import inf

from hpc.journal import effect_key
from hpc.quiescence import QuiescenceTracker
from hpc.sandbox import SandboxPolicy
from sharp.evaluation.local import LocalEvaluator
from sharp.evaluation.protocol import Evaluation, EvaluationRequest, Evaluator
from sharp.evaluation.worker_pool import WorkerPool
from sharp.experiments.sweeps.sweep_budget import SweepBudget
from sharp.runs.directory import RunDirectory
from sharp.runs.execution_backend import ExecutionBackend, RunResources, backend, cached, policy_of


class SharedBackend:
    """Any site, for the runs of a sweep: they share evaluations that are equal, and pay from one purse."""

    def __init__(self, site: ExecutionBackend, purse: SweepBudget) -> None:
        self._site = site
        self._purse = purse
        self._turns = SingleFlight(site.parking)

    @property
    def parking(self) -> QuiescenceTracker:
        """Who waits, and for what."""
        return self._site.parking

    @asynccontextmanager
    async def opened(self, run: RunDirectory) -> AsyncIterator[RunResources]:
        """Give a run what it works with."""
        async with self._site.opened(self._metered(run)) as given:
            tools = self._purse.tools(run, given)
            if run.config.evaluation.cache == "off":
                yield tools
            else:
                yield replace(tools, evaluator=self._turns.evaluator(tools.evaluator))

    def _metered(self, run: RunDirectory) -> RunDirectory:
        """Return the run as one that wants GPU-hours metered where the sweep does: a site does so for budgets alone."""
        if not self._purse.meters_gpus or run.config.budget.gpu_hours is not None:
            return run
        budget = run.config.budget.model_copy(update={"gpu_hours": inf})
        return replace(run, config=run.config.model_copy(update={"budget": budget}))


class PoolSite:
    """This machine with one bounded pool of workers for all runs; models where their cards say.

    An async context manager: at its end no worker is left.
    """

    def __init__(self, evaluations: int) -> None:
        self.parking = QuiescenceTracker()
        self._free = asyncio.Semaphore(evaluations)
        self._benches: dict[tuple[SandboxPolicy, str | None], WorkerPool] = {}

    async def __aenter__(self) -> PoolSite:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(bench.aclose() for bench in self._benches.values()))

    @asynccontextmanager
    async def opened(self, run: RunDirectory) -> AsyncIterator[RunResources]:
        """Give a run its models, and its share of the workers."""
        policy = policy_of(run.config.evaluation)
        async with AsyncExitStack() as stack:
            evaluator = _PooledEvaluator(run, self._bench(policy, run.config.evaluation.mpi), self._free)
            backends = {name: backend(run, card) for name, card in run.cards.items()}
            for each in backends.values():
                stack.push_async_callback(each.aclose)
            yield RunResources(backends, cached(run, evaluator, policy))

    def _bench(self, policy: SandboxPolicy, mpi: str | None) -> WorkerPool:
        """Return the workers that confine programs in this way; each is warm for all runs."""
        if (policy, mpi) not in self._benches:
            self._benches[policy, mpi] = WorkerPool(policy, mpi)
        return self._benches[policy, mpi]


class _PooledEvaluator(LocalEvaluator):
    """Evaluates on workers that belong to the pool, and leaves them there."""

    def __init__(self, run: RunDirectory, bench: WorkerPool, free: asyncio.Semaphore) -> None:
        dataset = run.dataset()
        super().__init__(run.path, run.problem, dataset, run.splits(dataset), workers=1)
        self._bench = bench
        self._free = free

    async def aclose(self) -> None:
        """Do nothing: the workers are the pool's."""


class SingleFlight:
    """Whose turn it is to have an evaluation made, by what is asked; of one event loop."""

    def __init__(self, parking: QuiescenceTracker) -> None:
        self._parking = parking
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def evaluator(self, inner: Evaluator) -> Evaluator:
        """Return an evaluator that waits while another run has an equal request evaluated; `inner` asks a cache."""
        return _InTurn(inner, self)

    async def take(self, request: EvaluationRequest) -> asyncio.Lock:
        """Return the lock of a request, held."""
        lock = self._locks[effect_key("evaluate", request.to_json())]
        if lock.locked():
            with self._parking.blocked_on("an equal evaluation of another run"):
                await lock.acquire()
        else:
            await lock.acquire()
        return lock


@dataclass(frozen=True)
class _InTurn:
    inner: Evaluator
    turns: SingleFlight

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        lock = await self.turns.take(request)
        try:
            return await self.inner.evaluate(request)
        finally:
            lock.release()
