"""Asking Slurm for elements: how many, on which nodes, how many at once."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from hpc.slurm.book import JobBook, Submission
from hpc.slurm.campaign import Wishes, read_wishes
from hpc.slurm.client import Slurm
from hpc.slurm.errors import SlurmError, SlurmFull, SlurmMissing, SlurmRefused, SlurmUnreachable
from hpc.work.arrays import Arrays
from hpc.work.fleet import Element, Patience, chunks, shares, spare, wanted

_LARGEST = 1001  # Slurm's own default
_BLAMES = 2


class Orders:
    """Sends arrays for entries that wait; `warn` is told what a person should know."""

    def __init__(
        self, book: JobBook, slurm: Slurm, arrays: Arrays, patience: Patience, warn: Callable[[str], None]
    ) -> None:
        self._book, self._slurm, self._arrays = book, slurm, arrays
        self._patience, self._warn = patience, warn
        self._cluster = arrays.campaign.cluster
        self._blames: Counter[str] = Counter()
        self._lost_at: dict[str, float] = {}
        self._throttles: dict[str, int | None] = {}
        self._largest: int | None = None
        self._not_before = 0.0
        self._cramped = False

    def count(self, waiting: int, busy: Collection[str], elements: Sequence[Element]) -> int:
        """Return how many elements to ask for, with so many entries waiting and some elements busy."""
        if not waiting or time.monotonic() < self._not_before:
            return 0
        pack = self._cluster.dispatch.pack
        room = self._room(sum(element.phase != "gone" for element in elements))
        return wanted(waiting, spare(elements, busy, pack), pack, room)

    async def send(self, elements: int) -> None:
        """Ask for elements.

        A limit on jobs, and an answer that does not come, are waited out. Raises `SlurmRefused` and `SlurmMissing`
        where Slurm will not have them.
        """
        for size in chunks(elements, await self._largest_array()):
            if not await self._send(size):
                return

    async def throttle(self, wishes: Wishes, arrays: Sequence[Submission]) -> None:
        """Let no more elements run at once than people wish, those of arrays that are there included."""
        limit = wishes.throttle
        parts = shares(limit, len(arrays)) if limit is not None and arrays else [0] * len(arrays)
        for array, share in zip(arrays, parts, strict=True):
            if array.job_id is not None and share != (self._throttles.get(array.token) or 0):
                await self._throttle(array, array.job_id, share)

    def lost(self, node: str, what: str) -> None:
        """Blame a node for the loss of a job; those that were lost together count as one."""
        now = time.monotonic()
        if now - self._lost_at.get(node, -math.inf) > self._patience.apart_s:
            self.blame(node, what)
        self._lost_at[node] = now

    def blame(self, node: str, what: str) -> None:
        """Count against a node what happened there; the second time it is avoided from then on."""
        self._blames[node] += 1
        if node and self._blames[node] >= _BLAMES and node not in self._book.book.excluded:
            self._book.exclude(node, what)
            self._warn(f"Node {node} is avoided from now on: {what}.")

    def _room(self, live: int) -> int:
        """Return how many elements more there may be."""
        throttle, most = read_wishes(self._arrays.campaign).throttle, self._cluster.limits.max_jobs
        bounds = [self._cluster.dispatch.parallel - live]
        if throttle is not None:
            bounds.append(throttle - live)
        if most is not None:
            others = (
                s for s in self._book.book.submissions.values() if s.ended is None and s.role != "evaluate"
            )
            bounds.append(most - live - sum(other.elements for other in others))
            if not live and bounds[-1] <= 0:
                self._say_cramped(most)
        return max(min(bounds), 0)

    def _say_cramped(self, most: int) -> None:
        if not self._cramped:
            self._cramped = True
            self._warn(
                f"`limits.max_jobs: {most}` of the cluster profile leaves no room for evaluations beside the jobs that "
                "are there; they wait until some have ended."
            )

    async def _largest_array(self) -> int:
        if self._largest is None:
            self._largest = self._cluster.limits.max_array_size or await self._asked_largest()
        return self._largest

    async def _asked_largest(self) -> int:
        try:
            config = await asyncio.to_thread(self._slurm.config)
            return max(int(config["MaxArraySize"]), 1)
        except (SlurmError, KeyError, ValueError):
            return _LARGEST

    async def _send(self, size: int) -> bool:
        """Send one array; return whether more may be sent now."""
        campaign, throttle = self._arrays.campaign, read_wishes(self._arrays.campaign).throttle
        token = campaign.next_token(self._book.book, "evaluate")
        script = self._arrays.script(token, size, throttle=throttle or None, exclude=self._book.book.excluded)
        gpus = self._cluster.role("evaluate").gpus
        self._book.intend(token, "evaluate", elements=size, gpus=gpus, purpose="evaluations")
        try:
            job_id = await asyncio.to_thread(self._arrays.send, token, script, size)
        except SlurmUnreachable as error:  # it may have arrived: looked up until that is known
            self._warn(str(error))
            return False
        except (SlurmRefused, SlurmMissing) as error:
            self._book.ended(token, "refused")
            self._arrays.clear(self._book.book.submissions[token], ())
            if not isinstance(error, SlurmFull):
                raise
            self._not_before = time.monotonic() + self._patience.full_s
            self._warn(str(error))
            return False
        self._book.submitted(token, job_id)
        self._throttles[token] = throttle
        return True

    async def _throttle(self, array: Submission, job_id: str, share: int) -> None:
        try:
            await asyncio.to_thread(self._slurm.throttle, job_id, share)
        except SlurmUnreachable:  # try again the next time
            return
        except SlurmError:  # the array has ended
            pass
        self._throttles[array.token] = share
