"""The servers of a campaign as its controller sees them: asked for, handed over, let go."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Self

from hpc.parking import Parking
from hpc.serving.jobs import ServerFailed as ServerFailed
from hpc.serving.jobs import ServerJobs
from hpc.serving.plan import ServerPlan, lead_s
from hpc.serving.services import Service, read_services, withdraw
from hpc.slurm.book import JobBook
from hpc.slurm.campaign import Campaign
from hpc.slurm.client import Slurm
from hpc.slurm.script import Script

_PRESSING_S = 30.0
_LEAVE_S = 20.0


class ServerPool:
    """Sees to it that there are server jobs for the models in use. Of one event loop, and of whoever steers.

    A context: inside it, a task looks at the services every `every_s` seconds, asks Slurm every `ask_s` or more
    rarely, submits jobs by the book, and has a successor ready before a job's time is up. Nothing is submitted for a
    model that nobody asks for. On leaving, the jobs go on; a later pool finds them by book and services. `plans` are
    by model; `parking` is told when a request can only wait. Clients count the answers that they await from each
    worker in `in_flight`, where all of them see it.
    """

    def __init__(
        self,
        campaign: Campaign,
        book: JobBook,
        slurm: Slurm,
        plans: Mapping[str, ServerPlan],
        *,
        render: Callable[[Script], str],
        parking: Parking | None = None,
        every_s: float = 2.0,
        ask_s: float = 10.0,
    ) -> None:
        self._campaign, self._plans, self._every_s = campaign, plans, every_s
        self._parking = parking or Parking()
        self.in_flight: Counter[str] = Counter()
        self._jobs = ServerJobs(campaign, book, slurm, render=render, ask_s=ask_s)
        self._services: Sequence[Service] = ()
        self._read_at = 0.0
        self._used: dict[str, float] = {}
        self._let_go: set[str] = set()
        self._doubts: dict[str, float] = {}
        self._begun = self._done = 0
        self._wake, self._turned = asyncio.Event(), asyncio.Event()
        self._leaving = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._read()
        self._task = asyncio.create_task(self._tend())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._leaving = True
        self._wake.set()
        # A submission under way is better finished than looked up later.
        await asyncio.wait([self._task], timeout=_LEAVE_S)
        self._task.cancel()
        with suppress(asyncio.CancelledError, Exception):  # said to whoever waited for a server
            await self._task

    def here(self, model: str) -> tuple[Service, ...]:
        """Return the servers that answer for a model just now, perhaps none. Keeps the model in use."""
        self._used[model] = time.monotonic()
        if time.monotonic() - self._read_at > self._every_s:  # the task may be waiting for Slurm
            self._read()
        return tuple(s for s in self._services if s.model == model and self._is_trusted(s))

    def failure(self, model: str) -> str | None:
        """Return why no more servers can be had for a model, None as long as they can."""
        return self._jobs.failures.get(model)

    def doubt(self, service: Service) -> None:
        """Leave a server that failed a request out until its heart has beaten again; its job is looked at."""
        self._doubts[service.worker] = service.beaten
        self._wake.set()

    def is_over(self, service: Service) -> bool:
        """Return whether the job of a server is known to have ended."""
        return self._jobs.is_over(service.job)

    async def services(self, model: str) -> tuple[Service, ...]:
        """Return the servers that answer for a model, at least one.

        Waits, parked, while there is none. Raises `ServerFailed` where none can be had.
        """
        turn = self._begun + 1
        while not (found := self.here(model)):
            if model in self._jobs.failures:
                raise ServerFailed(self._jobs.failures[model])
            if self._done < turn:  # nobody has seen yet that this model is wanted
                self._wake.set()
                await self._next_turn()
            else:
                await self._wait_parked(model)
        return found

    async def _wait_parked(self, model: str) -> None:
        """Wait until a server is there, none can be had, or something else is waited for."""
        words = self._jobs.in_words(model)
        with self._parking.parked(words):
            await self._next_turn()
            while (
                not self.here(model)
                and model not in self._jobs.failures
                and self._jobs.in_words(model) == words
            ):
                await self._next_turn()

    async def retire(self, wait_s: float = 60.0) -> None:
        """End all servers of the campaign in good order, and withdraw jobs that still wait; wait so long for it."""
        self._plans, deadline = {}, time.monotonic() + wait_s
        await self._turn_after_now()
        jobs = {job.job_id for job in self._jobs.unfinished() if job.job_id is not None}
        answering = {service.job for service in self._services} & jobs
        self._let_go |= {service.worker for service in self._services}
        await self._jobs.let_go(answering, jobs - answering)
        while self._jobs.unfinished() and time.monotonic() < deadline:
            await self._turn_after_now()

    async def _tend(self) -> None:
        try:
            while not self._leaving:
                self._begun += 1
                await self._look()
                self._done = self._begun
                self._announce_turn()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._every_s):
                        await self._wake.wait()
                self._wake.clear()
        finally:
            self._announce_turn()

    async def _look(self) -> None:
        if not self._plans and not self._jobs.unfinished():
            return
        self._read()
        await self._jobs.follow({s.job for s in self._services if not self._is_doubted(s)})
        for service in self._services:
            if self.is_over(service):  # it was killed before it could withdraw
                withdraw(self._campaign.services, service.worker)
        for plan in self._plans.values():
            await self._see_to(plan)

    def _read(self) -> None:
        self._services, self._read_at = read_services(self._campaign.services), time.monotonic()

    async def _see_to(self, plan: ServerPlan) -> None:
        """Submit what is missing of a model; let those go whose successors are there."""
        unused_s = time.monotonic() - self._used.get(plan.model, -float("inf"))
        if unused_s > plan.timing.idle_shutdown:
            return
        mine = [s for s in self._services if s.model == plan.model and self._is_trusted(s)]
        lead = lead_s(self._campaign, plan)
        fresh = [s for s in mine if s.ends - time.time() > lead]
        answering = {service.job for service in mine}
        coming = [job for job in self._jobs.of(plan.model) if job.job_id not in answering]
        wanted = plan.replicas if unused_s < _PRESSING_S else min(len(mine), plan.replicas)
        for _ in range(wanted - len(fresh) - len(coming)):
            await self._jobs.submit(plan)
        old = [service for service in mine if service not in fresh]
        if old and len(fresh) >= wanted:
            self._let_go |= {service.worker for service in old}
            await self._jobs.let_go({service.job for service in old}, ())

    def _is_doubted(self, service: Service) -> bool:
        return service.beaten <= self._doubts.get(service.worker, -1.0)

    def _is_trusted(self, service: Service) -> bool:
        return service.worker not in self._let_go and not self._is_doubted(service)

    async def _turn_after_now(self) -> None:
        """Wait until a turn that begins after this moment is over."""
        turn = self._begun + 1
        while self._done < turn:
            self._wake.set()
            await self._next_turn()

    async def _next_turn(self) -> None:
        """Wait until a turn is over, a while at most; raise what ended the task, if it did."""
        assert self._task is not None
        if not self._task.done():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_s):
                    await self._turned.wait()
        if self._task.done():
            self._task.result()
            raise ServerFailed("the servers are no longer looked after: their controller is leaving")

    def _announce_turn(self) -> None:
        self._turned.set()
        self._turned = asyncio.Event()
