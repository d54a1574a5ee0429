"""Seeing to it that work is done by Slurm jobs, whatever becomes of them; docs/dispatch.md says what is guaranteed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hpc.errors import InfrastructureError, WorkCancelled
from hpc.parking import Parking
from hpc.slurm.book import JobBook, Submission
from hpc.slurm.campaign import Campaign, read_wishes
from hpc.slurm.client import Slurm
from hpc.slurm.errors import SlurmError
from hpc.slurm.script import Script
from hpc.slurm.states import FailureClass
from hpc.work.arrays import Arrays, Program, usable_s
from hpc.work.desk import Desk, Waiter
from hpc.work.fleet import Element, Patience
from hpc.work.orders import Orders
from hpc.work.queue import Entry, Failure, Queue, Ticket
from hpc.work.roster import job_of
from hpc.work.watch import Watch

_BARREN = 2
_FAREWELL_S = 10.0
_BURIAL_S = 60.0


class Dispatcher:
    """Has entries of a campaign's queue done by elements of Slurm arrays; one to a process, shared by all runs.

    An async context manager: at its start it adopts what an earlier one left (book, queue, unanswered submissions), at
    its end it leaves everything in Slurm as it is. `pilot` is what elements run, `render` makes the text of a batch
    script. The book is written in the event loop's thread alone. `warn` is told what a person should know.
    """

    def __init__(
        self,
        campaign: Campaign,
        book: JobBook,
        slurm: Slurm,
        parking: Parking,
        *,
        pilot: Program,
        render: Callable[[Script], str],
        warn: Callable[[str], None],
        patience: Patience | None = None,
    ) -> None:
        self._patience = patience or Patience()
        self.campaign = campaign
        self.queue = Queue(campaign.queue)
        self._slurm, self._parking, self._warn = slurm, parking, warn
        self._arrays = Arrays(campaign, slurm, pilot, render, self._patience.beat_s)
        self._watch = Watch(book, slurm, self._arrays, self._patience)
        self._orders = Orders(book, slurm, self._arrays, self._patience, warn)
        self._desk = Desk(self.queue, self._patience.grace_s, self._patience.pause_s, self._on_fault)
        self._loops: list[asyncio.Task[None]] = []
        self._sending: asyncio.Task[None] | None = None
        self._over: BaseException | None = None
        self._adopting = True
        self._barren = 0

    @property
    def longest_s(self) -> float:
        """Seconds that an entry may need at most, by the time of the role `evaluate`."""
        return usable_s(self.campaign.cluster)

    async def __aenter__(self) -> Self:
        for array in self._watch.open:
            self._arrays.put_in_place(array)
        self._loops = [asyncio.create_task(self._guard(loop)) for loop in (self._steer, self._ask)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stand_down()

    async def perform(self, entry: Entry, done: Callable[[], bool]) -> None:
        """Return once `done()` says that the result of an entry is there and verifies.

        The entry is offered unless the queue holds it already. While nothing is left to do here but to wait, this is
        `parked`. Cancelling the caller leaves the work in flight, for a later dispatcher to adopt. Raises
        `InfrastructureError` where the machine failed for good, `WorkCancelled` where somebody else cancelled jobs or
        `Wishes.stop` is set, ValueError for an entry that needs more time than a job has.
        """
        if entry.needs_s > self.longest_s:
            raise ValueError(
                f"{entry.id} needs {entry.needs_s} s, and a job has {self.longest_s:.0f} s for it"
            )
        if self._over is not None:
            raise self._over
        waiter = self._desk.add(entry, done)
        try:
            await _either(waiter.ordered, waiter.result)
            with self._parking.parked(f"evaluations on {self.campaign.cluster.name}"):
                await waiter.result
        finally:
            self._desk.remove(waiter)

    async def withdraw_all(self) -> None:
        """Take all work back: empty the queue, cancel this campaign's elements, note in the book what they used.

        Where Slurm does not answer, jobs that still run find an empty queue and leave by themselves.
        """
        await self._stand_down()
        self._end(WorkCancelled("The work was taken back."))
        self.queue.clear()
        await self._watch.look_up(at_once=True)
        arrays = self._watch.open
        try:
            await asyncio.to_thread(self._slurm.cancel, [a.job_id for a in arrays if a.job_id is not None])
        except SlurmError as error:
            self._warn(f"{error} Jobs of this campaign may go on for a while.")
            return
        await self._watch.bury(_BURIAL_S)
        self.queue.clear()

    async def _stand_down(self) -> None:
        loops, self._loops = self._loops, []
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        if self._sending is not None:  # else the book would not know what Slurm answers
            await asyncio.wait({self._sending}, timeout=_FAREWELL_S)

    async def _guard(self, loop: Callable[[], Awaitable[None]]) -> None:
        """Run a loop, after trouble with storage again; what else goes wrong is told to whoever waits."""
        while True:
            try:
                await loop()
            except OSError as error:
                self._desk.fail_all(InfrastructureError(f"{self.campaign.place} cannot be used: {error}"))
                await asyncio.sleep(self._patience.steer_s)
            except Exception as error:  # noqa: BLE001
                self._end(error)
                return
            else:
                return

    async def _steer(self) -> None:
        """Look at files often, at elements now and then, and ask for elements where some are missing."""
        due = 0.0
        while True:
            await self._pause()
            now = time.monotonic()
            closely = self._desk.fresh.is_set() or now >= due
            self._desk.look(now, closely=closely)
            if closely:
                due = now + self._patience.steer_s
                self._muster(now)

    async def _pause(self) -> None:
        """Wait until files are to be looked at again; where entries come, until those that come with them are there."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience.tick_s):
                await self._desk.fresh.wait()
            await asyncio.sleep(self._patience.collect_s)

    async def _ask(self) -> None:
        """Ask Slurm, rarely, and people's wishes."""
        while True:
            wishes = read_wishes(self.campaign)
            if wishes.stop:
                self._end(WorkCancelled(f"{self.campaign.folder} is to stop, as was asked by: sharp cancel"))
            await self._watch.look_up()
            await self._watch.ask()
            await self._orders.throttle(wishes, self._watch.open)
            await asyncio.sleep(self._patience.steer_s)

    def _muster(self, now: float) -> None:
        claims = self.queue.claims()  # before the roster is read: whoever takes an entry is on it already
        for element in self._watch.look(now):
            if element.failure is FailureClass.NODE:
                self._orders.lost(element.node, f"jobs were lost there ({element.state} of {element.job})")
        for job in self._watch.cancelled():
            self._heed(job)
        for ticket in claims:
            self._consider(ticket)
        for array, elements in self._watch.close(now):
            self._learn(array, elements)
        if self._watch.asked:
            self._adopting = False
            if not self._watch.is_puzzled(now):
                self._order()

    def _order(self) -> None:
        """Ask for the elements that are missing; then those who wait have nothing to do but that."""
        if self._sending is not None and not self._sending.done():
            return
        self._desk.fresh.clear()
        waiters = tuple(self._desk.waiters.values())
        busy = {job_of(ticket.worker) for ticket in self.queue.claims()}
        # What nobody waits for was offered by an earlier dispatcher: it will be asked for, or is not wanted any more.
        waiting = sum(self._desk.wants(ticket.id) for ticket in self.queue.waiting())
        count = self._orders.count(waiting, busy, self._watch.elements)
        if count and self._over is None:
            self._sending = asyncio.create_task(self._guard(lambda: self._send(count, waiters)))
        else:
            _mark(waiters)

    async def _send(self, count: int, waiters: Sequence[Waiter]) -> None:
        with self._parking.busy():
            try:
                await self._orders.send(count)
            except SlurmError as error:
                self._desk.fail_all(error)
        _mark(waiters)

    def _consider(self, ticket: Ticket) -> None:
        """Take an entry from a worker that is dead."""
        kind = self._watch.fate(ticket.worker)
        if kind is not None:
            self._desk.again(ticket, kind, self._watch.log(job_of(ticket.worker)))

    def _heed(self, job: str) -> None:
        """Stop where somebody cancels a job, unless that was before our time."""
        if not self._adopting:
            where = f"To go on: sharp advance {self.campaign.folder}"
            self._end(
                WorkCancelled(f"Job {job} was cancelled by somebody, so no more jobs are sent. {where}")
            )

    def _learn(self, array: Submission, elements: Sequence[Element]) -> None:
        """Give up where the elements of one array after another end before they could take work."""
        if any(element.sign is not None for element in elements):
            self._barren = 0
            return
        failed = [element for element in elements if element.failure in (None, FailureClass.PROGRAM)]
        self._barren += bool(failed)
        if failed and self._barren >= _BARREN:
            self._barren = 0
            log = self._watch.log(failed[-1].job)
            self._desk.fail_all(
                InfrastructureError(
                    f"Jobs end before they take work (job {array.job_id}: {failed[-1].state}). {_last_words(log)}"
                    f"Correct `setup` or `python` in the cluster profile; what jobs printed: {log}"
                )
            )

    def _on_fault(self, failure: Failure) -> None:
        """Say what a worker could not do, and hold it against its node where others do such work."""
        self._warn(f"{failure.id}: {failure.sentence} ({failure.where})")
        if self._watch.proven_elsewhere(failure.node):
            self._orders.blame(failure.node, failure.sentence)

    def _end(self, error: BaseException) -> None:
        """Have nothing more done."""
        self._over = self._over or error
        self._desk.fail_all(self._over)


def _mark(waiters: Sequence[Waiter]) -> None:
    for waiter in waiters:
        waiter.ordered.set()


def _last_words(log: Path) -> str:
    """Return the last line of a log as a sentence, or nothing."""
    try:
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return f"It printed: {lines[-1][:300]!r}. " if lines else ""


async def _either(event: asyncio.Event, result: asyncio.Future[None]) -> None:
    waiting = asyncio.create_task(event.wait())
    either: set[asyncio.Future[Any]] = {waiting, result}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
