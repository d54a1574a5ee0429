"""Asking Slurm now and then: rarely while nothing changes, because its controller serves everybody."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from hpc.slurm.client import Slurm, Snapshot
from hpc.slurm.states import JobState


class Poll:
    """The newest snapshot of some jobs, asked for again only when the last one has grown old enough.

    After each that brings nothing new, and after each that failed, the next waits `factor` times as long, from
    `first_s` up to `most_s` seconds. Where Slurm does not answer, the jobs stay as they were last seen, with a note.
    """

    def __init__(
        self,
        slurm: Slurm,
        *,
        first_s: float = 10.0,
        most_s: float = 180.0,
        factor: float = 1.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slurm = slurm
        self._first_s, self._most_s, self._factor, self._clock = first_s, most_s, factor, clock
        self._interval_s = first_s
        self._snapshot = Snapshot({})
        self._asked: tuple[float, frozenset[str]] | None = None

    def look(self, ids: Collection[str]) -> Snapshot:
        """Return what is known of the jobs, perhaps from before; for other jobs than last time, ask at once."""
        wanted = frozenset(ids)
        if wanted and self._is_due(wanted):
            self._take(self._slurm.snapshot(wanted))
            self._asked = (self._clock(), wanted)
        return self._snapshot

    def hurry(self) -> None:
        """Ask anew at the next look: there are signs that something has changed."""
        self._interval_s = 0.0

    def _is_due(self, wanted: frozenset[str]) -> bool:
        return (
            self._asked is None
            or not wanted <= self._asked[1]
            or self._clock() - self._asked[0] >= self._interval_s
        )

    def _take(self, snapshot: Snapshot) -> None:
        if snapshot.notes and not snapshot.jobs:  # no answer: what was known is the best there is
            snapshot = Snapshot(self._snapshot.jobs, snapshot.notes)
        changed = _states(snapshot) != _states(self._snapshot)
        longer = max(self._interval_s * self._factor, self._first_s)
        self._interval_s = self._first_s if changed else min(longer, self._most_s)
        self._snapshot = snapshot


def _states(snapshot: Snapshot) -> dict[str, JobState]:
    return {job.id: job.state for job in snapshot.jobs.values()}
