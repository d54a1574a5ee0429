"""What a campaign's jobs have used: by the book where they have ended, by Slurm where they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hpc.slurm.book import Book, Submission
from hpc.slurm.client import Snapshot
from hpc.slurm.parsing import Job
from hpc.slurm.states import JobState


@dataclass(frozen=True)
class Usage:
    """GPU-hours, and jobs that reached Slurm (each element of an array counted).

    `unmetered` of the jobs held GPUs and have ended, and nobody knows how long they ran: their GPU-hours are not
    among the others.
    """

    gpu_hours: float = 0.0
    jobs: int = 0
    unmetered: int = 0


@dataclass(frozen=True)
class _Ran:
    """Seconds that a job ran before it was put back into the queue, and since."""

    before_s: float = 0.0
    since_s: float = 0.0
    running: bool = False

    def seen(self, job: Job) -> _Ran:
        elapsed = float(job.elapsed_s or 0)
        before = self.before_s + (self.since_s if elapsed < self.since_s else 0.0)
        return _Ran(before, elapsed, job.state is JobState.RUNNING)


class Meter:
    """Adds up what jobs use, from one look at Slurm to the next; times are seconds of `clock`.

    A job that was running when last seen counts up to now. One that Slurm has forgotten counts as long as it was last
    seen to have run, and one that Slurm has never told of counts nothing yet.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ran: dict[str, dict[str, _Ran]] = {}
        self._seen_at = clock()

    def see(self, snapshot: Snapshot) -> None:
        """Take what Slurm says now; one in which it says nothing changes nothing."""
        if snapshot.notes and not snapshot.jobs:
            return
        for array, elements in self._ran.items():
            self._ran[array] = {name: replace(ran, running=False) for name, ran in elements.items()}
        for job in snapshot.jobs.values():
            elements = self._ran.setdefault(job.array_id, {})
            elements[job.id] = elements.get(job.id, _Ran()).seen(job)
        self._seen_at = self._clock()

    def usage(self, book: Book) -> Usage:
        """Return what all submissions of a book used up to now."""
        submissions = [s for s in book.submissions.values() if s.job_id is not None or s.ended is None]
        unknown = [s for s in submissions if s.gpus and s.ended and s.seconds is None and not self._known(s)]
        return Usage(
            gpu_hours=sum(self._seconds(s) * s.gpus for s in submissions) / 3600,
            jobs=sum(s.elements for s in submissions),
            unmetered=sum(s.elements for s in unknown),
        )

    def _known(self, submission: Submission) -> Mapping[str, _Ran]:
        return self._ran.get(submission.job_id or "", {})

    def _seconds(self, submission: Submission) -> float:
        if submission.seconds is not None:
            return submission.seconds
        age = 0.0 if submission.ended else self._clock() - self._seen_at
        return sum(r.before_s + r.since_s + age * r.running for r in self._known(submission).values())


def usage_now(book: Book, snapshot: Snapshot) -> Usage:
    """Return what all submissions of a book used, by one look at Slurm."""
    meter = Meter()
    meter.see(snapshot)
    return meter.usage(book)


def states_of(submission: Submission, snapshot: Snapshot) -> Mapping[JobState, int]:
    """Return how many elements of a submission that has not ended are in which state, UNKNOWN where nobody says."""
    found: dict[JobState, int] = {}
    for job in snapshot.jobs.values():
        if job.array_id == submission.job_id:
            found[job.state] = found.get(job.state, 0) + 1
    silent = submission.elements - sum(found.values())
    return found if silent <= 0 else {**found, JobState.UNKNOWN: found.get(JobState.UNKNOWN, 0) + silent}
