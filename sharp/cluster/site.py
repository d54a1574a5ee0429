"""A cluster as a place for runs: its jobs evaluate and serve models, one queue for all runs of a campaign."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from hpc.control.usage import Meter
from hpc.parking import Parking
from hpc.serving.pool import ServerPool
from hpc.slurm.book import JobBook
from hpc.slurm.campaign import Campaign
from hpc.slurm.client import Slurm
from hpc.slurm.profile import Cluster
from sharp.cluster.evaluator import SlurmEvaluator, make_dispatcher, node_policy
from sharp.clusters import render_script
from sharp.llm.budgets import Spent
from sharp.llm.cards import ModelCard
from sharp.llm.hosting import is_hosted, server_plans
from sharp.llm.protocol import ChatBackend
from sharp.llm.served import ServedBackend
from sharp.runs.directory import Run
from sharp.runs.site import Tools, backend, cached, policy_of

METER_S = 60.0


class ClusterSite:
    """A `Site` of one campaign: its runs share a dispatcher, a queue and the servers of models (those of `cards`).

    An async context manager: it takes over what an earlier one left with Slurm, and leaves everything there as it is
    for the next. `warn` is told what people should know.
    """

    def __init__(
        self,
        campaign: Campaign,
        book: JobBook,
        slurm: Slurm,
        cards: Iterable[ModelCard],
        warn: Callable[[str], None],
    ) -> None:
        self.parking = Parking()
        self._campaign, self._book, self._slurm = campaign, book, slurm
        self._dispatcher = make_dispatcher(campaign, book, slurm, self.parking, warn)
        plans = server_plans(cards, campaign.cluster)
        self._pool = ServerPool(campaign, book, slurm, plans, render=render_script, parking=self.parking)
        self._meter = Meter()
        self._stack = AsyncExitStack()
        self._metering: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._dispatcher)
            await stack.enter_async_context(self._pool)
            stack.push_async_callback(self._stop_metering)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def close_down(self) -> None:
        """End the campaign's work: take back what waits, cancel its elements, let its servers end."""
        await self._dispatcher.withdraw_all()
        await self._pool.retire()

    @asynccontextmanager
    async def opened(self, run: Run) -> AsyncIterator[Tools]:
        """Give a run its models and its share of the queue."""
        async with AsyncExitStack() as stack:
            backends = {name: self._backend(run, card) for name, card in run.cards.items()}
            for each in backends.values():
                stack.push_async_callback(each.aclose)
            options, dataset = run.config.evaluation, run.dataset()
            policy = node_policy(self._campaign.cluster, policy_of(options))
            evaluator = SlurmEvaluator(
                run.path,
                run.problem,
                dataset,
                run.splits(dataset),
                dispatcher=self._dispatcher,
                sandbox=policy,
                mpi=options.mpi,
            )
            if run.config.budget.gpu_hours is not None:
                await self._start_metering()
            known = cached(run, evaluator, policy, node_class(self._campaign.cluster))
            yield Tools(backends, known, self._spent, pauses_s=())  # the dispatcher has tried again by itself

    def _backend(self, run: Run, card: ModelCard) -> ChatBackend:
        options = run.config.models
        if options.recorded is not None or not is_hosted(card):
            return backend(run, card)
        return ServedBackend(
            card,
            self._pool,
            deadline_s=options.deadline_s,
            attempt_timeout_s=options.attempt_timeout_s,
            concurrency=options.concurrency,
        )

    def _spent(self) -> Spent:
        used = self._meter.usage(self._book.book)
        launched = datetime.fromisoformat(self._campaign.created).timestamp()
        return Spent(used.gpu_hours, (time.time() - launched) / 60, used.jobs, used.unmetered)

    async def _start_metering(self) -> None:
        if self._metering is None:
            await self._look()
            self._metering = asyncio.create_task(self._look_again_and_again())

    async def _stop_metering(self) -> None:
        if self._metering is not None:
            self._metering.cancel()
            with suppress(asyncio.CancelledError):
                await self._metering

    async def _look_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(METER_S)
            await self._look()

    async def _look(self) -> None:
        ids = [s.job_id for s in self._book.book.open if s.job_id is not None]
        if ids:
            self._meter.see(await asyncio.to_thread(self._slurm.snapshot, ids))


def node_class(cluster: Cluster) -> Mapping[str, Any]:
    """Return what decides the results of evaluations on a cluster: which nodes, with what on them."""
    role = cluster.role("evaluate").model_dump(mode="json", exclude={"time", "account", "qos", "reservation"})
    return {
        "cluster": cluster.name,
        "python": cluster.python,
        "gpu_request": cluster.gpu_request,
        "role": role,
    }
