"""Who waits for which entry, and what became of it: by the queue's files and the results themselves."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hpc.errors import InfrastructureError
from hpc.slurm.states import FailureClass
from hpc.work.queue import Entry, Failure, Queue, Ticket

LOST = "lost"
"""The class of what went wrong without anybody saying how."""
FAULT = "fault"
"""The class of what a worker could not do through no fault of the work, and said so."""

# How often an entry is tried, by what went wrong: preemption is no fault of anybody.
TRIES: dict[str, int] = {
    FailureClass.NODE: 5,
    FailureClass.PREEMPTED: 50,
    FailureClass.WALLTIME: 3,
    FailureClass.MEMORY: 2,
    FailureClass.PROGRAM: 3,
    FailureClass.CANCELLED: 5,
    LOST: 5,
    FAULT: 4,
}
_ADVICE: dict[str, str] = {
    FailureClass.MEMORY: " Give the role `evaluate` more memory in the cluster profile.",
    FailureClass.WALLTIME: " Give the role `evaluate` more time in the cluster profile.",
    FailureClass.PROGRAM: " What the job printed says more.",
}


@dataclass
class Waiter:
    """Somebody who waits for an entry.

    `missing` says since when the queue has no longer held it, with no result there; `again_at` when it is to be offered
    again after a fault.
    """

    entry: Entry
    done: Callable[[], bool]
    result: asyncio.Future[None]
    ordered: asyncio.Event = field(default_factory=asyncio.Event)
    missing: float | None = None
    again_at: float | None = None
    tries: Counter[str] = field(default_factory=Counter)

    @property
    def doubtful(self) -> bool:
        """Whether the result may be there although the entry still waits: from someone who was taken for dead."""
        return bool(self.tries)


class Desk:
    """Tells those who wait that entries are done, or could not be.

    `grace_s` is given to files that are behind; after a fault an entry is offered again in `pause_s`, then twice that,
    and so on. `on_fault` is told each. `fresh` is set when entries have been offered, until elements were counted.
    """

    def __init__(
        self, queue: Queue, grace_s: float, pause_s: float, on_fault: Callable[[Failure], None]
    ) -> None:
        self.waiters: dict[str, Waiter] = {}
        self.fresh = asyncio.Event()
        self._queue = queue
        self._grace_s, self._pause_s = grace_s, pause_s
        self._on_fault = on_fault

    def add(self, entry: Entry, done: Callable[[], bool]) -> Waiter:
        """Offer an entry, and note who waits for it."""
        if entry.id in self.waiters:
            raise ValueError(f"{entry.id} is being waited for already")
        self._queue.offer(entry)
        waiter = Waiter(entry, done, asyncio.get_running_loop().create_future())
        self.waiters[entry.id] = waiter
        self.fresh.set()
        return waiter

    def wants(self, entry_id: str) -> bool:
        """Whether somebody still waits for an entry."""
        waiter = self.waiters.get(entry_id)
        return waiter is not None and not waiter.result.done()

    def look(self, now: float, *, closely: bool) -> None:
        """Look what has become of entries; `closely`: also whether those that wait again are done after all."""
        held = self._queue.ids() if self.waiters else frozenset()
        for failure in self._queue.failures() if self.waiters else ():
            self._take(failure, now)
        for waiter in list(self.waiters.values()):
            if waiter.entry.id not in held or (closely and waiter.doubtful):
                self._check(waiter, now, held=waiter.entry.id in held)

    def remove(self, waiter: Waiter) -> None:
        """Forget who waited."""
        self.waiters.pop(waiter.entry.id, None)
        if waiter.result.done() and not waiter.result.cancelled():
            waiter.result.exception()  # has been heard, or need not be

    def again(self, ticket: Ticket, kind: str, log: Path) -> None:
        """Let others take an entry whose worker is dead, unless that has happened too often."""
        waiter = self.waiters.get(ticket.id)
        if waiter is not None:
            waiter.tries[kind] += 1
        if waiter is None or waiter.tries[kind] < TRIES[kind]:
            self._queue.give_back(ticket)
            return
        self._queue.drop(ticket)
        self._give_up(waiter, kind, f"the last was {ticket.worker}, which printed to {log}")

    def fail_all(self, error: BaseException) -> None:
        """Tell everybody that it is over."""
        for waiter in self.waiters.values():
            _settle(waiter, error)

    def _take(self, failure: Failure, now: float) -> None:
        waiter = self.waiters.get(failure.id)
        if waiter is None:
            return
        self._on_fault(failure)
        self._queue.forget([failure])
        waiter.tries[FAULT] += 1
        if waiter.tries[FAULT] < TRIES[FAULT]:
            waiter.again_at = now + self._pause_s * 2 ** (waiter.tries[FAULT] - 1)
        else:
            _settle(waiter, InfrastructureError(f"{failure.sentence} ({failure.where})"))

    def _check(self, waiter: Waiter, now: float, *, held: bool) -> None:
        if waiter.done():
            self._queue.withdraw(waiter.entry.id)
            _settle(waiter)
        elif held:
            waiter.missing = None
        elif waiter.again_at is not None:
            if now >= waiter.again_at:
                self._offer_again(waiter)
        elif waiter.missing is None:
            waiter.missing = now
        elif now - waiter.missing > self._grace_s:
            waiter.tries[LOST] += 1
            if waiter.tries[LOST] < TRIES[LOST]:
                self._offer_again(waiter)
            else:
                self._give_up(waiter, LOST, f"{waiter.entry.folder} holds no valid result")

    def _offer_again(self, waiter: Waiter) -> None:
        waiter.missing = waiter.again_at = None
        self._queue.offer(waiter.entry)
        self.fresh.set()

    def _give_up(self, waiter: Waiter, kind: str, detail: str) -> None:
        times = f"{waiter.tries[kind]} jobs ended in the midst of it ({kind})"
        sentence = f"{waiter.entry.folder} could not be done: {times}; {detail}."
        _settle(waiter, InfrastructureError(sentence + _ADVICE.get(kind, "")))


def _settle(waiter: Waiter, error: BaseException | None = None) -> None:
    if waiter.result.done():
        return
    if error is None:
        waiter.result.set_result(None)
    else:
        waiter.result.set_exception(error)
