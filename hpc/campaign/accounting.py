"""What a campaign's jobs have used: by the log of submissions where they have ended, by Slurm where they run."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from hpc.serving import ServerRegistration
from hpc.slurm import Job, JobState, QueueSnapshot, Slurm, SlurmError, Submission, SubmissionState


@dataclass(frozen=True)
class ArrayTaskRow:
    """A job, or an element of an array, as Slurm describes it; None where it says nothing."""

    job: str
    state: str
    nodes: str
    elapsed_s: int | None
    exit_code: int | None
    signal: int | None
    memory_mb: int | None


@dataclass(frozen=True)
class SubmissionRow:
    """A submission and what is known of its elements; `ended` and `seconds` (of all elements) are the book's words."""

    token: str
    role: str
    purpose: str
    job: str | None
    elements: int
    gpus: int
    intended: str
    ended: str | None
    seconds: float | None
    known: tuple[ArrayTaskRow, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True)
class JobAccounting:
    """All submissions of a campaign, in order; `notes` say what Slurm did not tell."""

    rows: tuple[SubmissionRow, ...]
    notes: tuple[str, ...]


def accounts(book: SubmissionState, slurm: Slurm | None, *, kept: bool = True) -> JobAccounting:
    """Return a campaign's submissions; with Slurm None, by the book alone. What Slurm does not answer is a note.

    `kept` False: this cluster keeps no accounts, so that they are not asked for.
    """
    ids = [s.job_id for s in book.submissions.values() if s.job_id is not None]
    if slurm is None or not ids:
        return JobAccounting(tuple(_row(s, (), {}) for s in book.submissions.values()), ())
    snapshot = slurm.snapshot(ids)
    history, memory, notes = dict[str, Job](), dict[str, int](), list(snapshot.notes)
    if kept:
        try:
            history |= slurm.history(ids)
            memory |= slurm.memory_mb(ids)
        except SlurmError as error:
            notes.append(str(error))
    # squeue may still list a job that accounting knows to have ended, and knows less of it.
    jobs = {**snapshot.jobs, **{name: job for name, job in history.items() if job.state.ended}}
    rows = tuple(_row(s, jobs.values(), memory) for s in book.submissions.values())
    return JobAccounting(rows, tuple(dict.fromkeys(notes)))


def _row(submission: Submission, jobs: Iterable[Job], memory: Mapping[str, int]) -> SubmissionRow:
    own = [job for job in jobs if submission.job_id is not None and job.array_id == submission.job_id]
    known = [
        ArrayTaskRow(j.id, j.state, j.nodes, j.elapsed_s, j.exit_code, j.signal, memory.get(j.id))
        for j in sorted(own, key=_index)
    ]
    return SubmissionRow(
        token=submission.token,
        role=submission.role,
        purpose=submission.purpose,
        job=submission.job_id,
        elements=submission.elements,
        gpus=submission.gpus,
        intended=submission.intended,
        ended=submission.ended,
        seconds=submission.seconds,
        known=tuple(known),
    )


def _index(job: Job) -> int:
    return int(job.id.partition("_")[2] or 0)


@dataclass(frozen=True)
class JobUsage:
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


class UsageMeter:
    """Adds up what jobs use, from one look at Slurm to the next; times are seconds of `clock`.

    A job that was running when last seen counts up to now. One that Slurm has forgotten counts as long as it was last
    seen to have run, and one that Slurm has never told of counts nothing yet.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ran: dict[str, dict[str, _Ran]] = {}
        self._seen_at = clock()

    def see(self, snapshot: QueueSnapshot) -> None:
        """Take what Slurm says now; one in which it says nothing changes nothing."""
        if snapshot.notes and not snapshot.jobs:
            return
        for array, elements in self._ran.items():
            self._ran[array] = {name: replace(ran, running=False) for name, ran in elements.items()}
        for job in snapshot.jobs.values():
            elements = self._ran.setdefault(job.array_id, {})
            elements[job.id] = elements.get(job.id, _Ran()).seen(job)
        self._seen_at = self._clock()

    def usage(self, book: SubmissionState) -> JobUsage:
        """Return what all submissions of a book used up to now."""
        submissions = [s for s in book.submissions.values() if s.job_id is not None or s.ended is None]
        unknown = [s for s in submissions if s.gpus and s.ended and s.seconds is None and not self._known(s)]
        return JobUsage(
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


def usage_now(book: SubmissionState, snapshot: QueueSnapshot) -> JobUsage:
    """Return what all submissions of a book used, by one look at Slurm."""
    meter = UsageMeter()
    meter.see(snapshot)
    return meter.usage(book)


def states_of(submission: Submission, snapshot: QueueSnapshot) -> Mapping[JobState, int]:
    """Return how many elements of a submission that has not ended are in which state, UNKNOWN where nobody says."""
    found: dict[JobState, int] = {}
    for job in snapshot.jobs.values():
        if job.array_id == submission.job_id:
            found[job.state] = found.get(job.state, 0) + 1
    silent = submission.elements - sum(found.values())
    return found if silent <= 0 else {**found, JobState.UNKNOWN: found.get(JobState.UNKNOWN, 0) + silent}


@dataclass(frozen=True)
class ServerGpuHours:
    """Server jobs of one model, and the GPU-hours that they held; of `unmetered` jobs nobody knows how many."""

    jobs: int = 0
    gpu_hours: float = 0.0
    unmetered: int = 0


def hours_by_model(
    book: SubmissionState, services: Iterable[ServerRegistration], now: float | None = None
) -> dict[str, ServerGpuHours]:
    """Return what each model's servers held GPUs for: by the book, and of those that answer now up to now.

    Servers without GPUs do not count.
    """
    started = {service.job: service.started for service in services}
    hours: dict[str, ServerGpuHours] = defaultdict(ServerGpuHours)
    for submission in book.of_role("server"):
        if submission.job_id is not None and submission.gpus:
            before, held = hours[submission.purpose], _held(submission, started, now or time.time())
            hours[submission.purpose] = ServerGpuHours(
                before.jobs + 1, before.gpu_hours + (held or 0.0), before.unmetered + (held is None)
            )
    return dict(hours)


def _held(submission: Submission, started: dict[str, float], now: float) -> float | None:
    """Return the GPU-hours of a job; one that answers nobody any more, or not yet, and has not ended: unknown."""
    if submission.ended is not None:
        return submission.gpu_hours
    began = started.get(submission.job_id or "")
    return None if began is None else submission.gpus * (now - began) / 3600
