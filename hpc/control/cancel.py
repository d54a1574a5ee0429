"""Ending a campaign's jobs, found by their names: the chain of controllers first, so that no successor starts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import get_args

from hpc.errors import RunLocked
from hpc.lease import Lease
from hpc.slurm.book import JobBook
from hpc.slurm.campaign import Campaign, wish
from hpc.slurm.client import Slurm
from hpc.slurm.ending import read_ending, write_ending
from hpc.slurm.parsing import Job
from hpc.slurm.profile import RoleName
from hpc.slurm.states import JobState

_LOOK_S = 1.0


def living_jobs(campaign: Campaign, slurm: Slurm) -> tuple[Job, ...]:
    """Return the campaign's jobs that have not ended, each element of an array by itself; raises `SlurmError`."""
    jobs = slurm.named(campaign.prefix)
    return tuple(job for job in jobs if not job.state.ended)


def count_by_role(campaign: Campaign, jobs: Sequence[Job]) -> Mapping[str, int]:
    """Return how many jobs there are of each role."""
    beginning = len(campaign.prefix)
    counts = Counter(job.name[beginning:].partition("-")[0] for job in jobs)
    return {role: counts[role] for role in get_args(RoleName) if counts[role]}


def cancel(campaign: Campaign, slurm: Slurm, wait_s: float = 60.0) -> tuple[Job, ...]:
    """Ask the campaign to stop and cancel its jobs until none is left; return those that still end after `wait_s`.

    The wish to stop is on disk before Slurm is asked: a controller that this misses stops by itself. Where none is
    left, what the jobs used is noted in the book, and that the campaign was stopped. Raises `SlurmError` where Slurm
    does not do it; then the wish stands.
    """
    wish(campaign, stop=True)
    left = _until_none_is_left(campaign, slurm, wait_s)
    if not left:
        _close(campaign, slurm)
    return left


def _until_none_is_left(campaign: Campaign, slurm: Slurm, wait_s: float) -> tuple[Job, ...]:
    deadline = time.monotonic() + wait_s
    while True:
        jobs = living_jobs(campaign, slurm)
        if not jobs or time.monotonic() > deadline:
            return jobs
        for group in _in_turn(campaign, [job for job in jobs if job.state is not JobState.COMPLETING]):
            slurm.cancel(sorted({job.array_id for job in group}))
        time.sleep(_LOOK_S)


def _in_turn(campaign: Campaign, jobs: Sequence[Job]) -> list[list[Job]]:
    """Return waiting controllers, other controllers, and the rest, without empty groups."""
    name = campaign.job_name("controller")
    chain = [job for job in jobs if job.name.startswith(name)]
    waiting = [job for job in chain if job.state.waits]
    groups = [
        waiting,
        [job for job in chain if job not in waiting],
        [job for job in jobs if job not in chain],
    ]
    return [group for group in groups if group]


def _close(campaign: Campaign, slurm: Slurm) -> None:
    """Note how the jobs ended, unless somebody steers the campaign by hand just now, who stops and does it then."""
    with suppress(RunLocked):
        lease = Lease.acquire(campaign.place)
        try:
            with JobBook(campaign.book, lease.beat) as book:
                _note_ends(book, slurm)
            if read_ending(campaign) is None:
                write_ending(campaign, "stopped", "It was cancelled.")
        finally:
            lease.release()


def _note_ends(book: JobBook, slurm: Slurm) -> None:
    known = slurm.snapshot([s.job_id for s in book.book.open if s.job_id is not None])
    for submission in (*book.book.open, *book.book.unanswered):
        jobs = [job for job in known.jobs.values() if job.array_id == submission.job_id]
        times = [job.elapsed_s for job in jobs if job.elapsed_s is not None]
        states = ", ".join(sorted({str(job.state) for job in jobs})) or str(JobState.CANCELLED)
        book.ended(submission.token, states, float(sum(times)) if times else None)
