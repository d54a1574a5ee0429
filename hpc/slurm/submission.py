"""Submitting a job at most once, by the book: intent, submission, answer; and looking up what was left open."""

from __future__ import annotations

from datetime import UTC, datetime

from hpc.slurm.book import JobBook
from hpc.slurm.client import Slurm
from hpc.slurm.errors import SlurmMissing, SlurmRefused
from hpc.slurm.profile import RoleName

PATIENCE_S = 600.0
"""Seconds after which a job that Slurm does not know has never reached it; accounts may lag by minutes."""


def submit_job(
    book: JobBook, slurm: Slurm, token: str, script: str, *, role: RoleName, gpus: int = 0, purpose: str = ""
) -> str:
    """Submit a script and return the id of the job.

    Raises `SlurmUnreachable` where it is not known whether Slurm took it (`settle` finds out later),
    `SlurmRefused` and `SlurmMissing` where it did not.
    """
    book.intend(token, role, gpus=gpus, purpose=purpose)
    try:
        job_id = slurm.submit(script, token=token)
    except (SlurmRefused, SlurmMissing):
        book.ended(token, "refused")
        raise
    book.submitted(token, job_id)
    return job_id


def settle(book: JobBook, slurm: Slurm, patience_s: float = PATIENCE_S) -> None:
    """Find out which unanswered submissions reached Slurm; raises `SlurmUnreachable` while it cannot be known."""
    for submission in book.book.unanswered:
        found = slurm.find_by_token(submission.token)
        if found:
            book.submitted(submission.token, found[0])
        elif age_s(submission.intended) > patience_s:
            book.ended(submission.token, "never reached Slurm")


def age_s(moment: str) -> float:
    """Return the seconds since a moment (ISO 8601)."""
    return (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
