"""The jobs of a campaign one by one: the book, joined with what Slurm's queue and accounts say of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hpc.slurm.book import Book, Submission
from hpc.slurm.client import Slurm
from hpc.slurm.errors import SlurmError
from hpc.slurm.parsing import Job


@dataclass(frozen=True)
class Element:
    """A job, or an element of an array, as Slurm describes it; None where it says nothing."""

    job: str
    state: str
    nodes: str
    elapsed_s: int | None
    exit_code: int | None
    signal: int | None
    memory_mb: int | None


@dataclass(frozen=True)
class Row:
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
    known: tuple[Element, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Accounts:
    """All submissions of a campaign, in order; `notes` say what Slurm did not tell."""

    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def accounts(book: Book, slurm: Slurm | None, *, kept: bool = True) -> Accounts:
    """Return a campaign's submissions; with Slurm None, by the book alone. What Slurm does not answer is a note.

    `kept` False: this cluster keeps no accounts, so that they are not asked for.
    """
    ids = [s.job_id for s in book.submissions.values() if s.job_id is not None]
    if slurm is None or not ids:
        return Accounts(tuple(_row(s, (), {}) for s in book.submissions.values()), ())
    snapshot = slurm.snapshot(ids)
    history, notes = _history(slurm, ids) if kept else ({}, ())
    jobs = {**snapshot.jobs, **{name: job for name, job in history.items() if job.state.ended}}
    memory = _memory(slurm, ids) if history else {}
    rows = tuple(_row(s, jobs.values(), memory) for s in book.submissions.values())
    return Accounts(rows, tuple(dict.fromkeys((*snapshot.notes, *notes))))


def _history(slurm: Slurm, ids: Iterable[str]) -> tuple[Mapping[str, Job], tuple[str, ...]]:
    try:
        return slurm.history(ids), ()
    except SlurmError as error:
        return {}, (str(error),)


def _memory(slurm: Slurm, ids: Iterable[str]) -> Mapping[str, int]:
    try:
        return slurm.memory_mb(ids)
    except SlurmError:
        return {}


def _row(submission: Submission, jobs: Iterable[Job], memory: Mapping[str, int]) -> Row:
    own = [job for job in jobs if submission.job_id is not None and job.array_id == submission.job_id]
    return Row(
        token=submission.token,
        role=submission.role,
        purpose=submission.purpose,
        job=submission.job_id,
        elements=submission.elements,
        gpus=submission.gpus,
        intended=submission.intended,
        ended=submission.ended,
        seconds=submission.seconds,
        known=tuple(_element(job, memory) for job in sorted(own, key=_index)),
    )


def _element(job: Job, memory: Mapping[str, int]) -> Element:
    return Element(
        job=job.id,
        state=job.state,
        nodes=job.nodes,
        elapsed_s=job.elapsed_s,
        exit_code=job.exit_code,
        signal=job.signal,
        memory_mb=memory.get(job.id),
    )


def _index(job: Job) -> int:
    return int(job.id.partition("_")[2] or 0)
