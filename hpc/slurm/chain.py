"""The chain of a campaign's controller jobs: each queues the next before it works, and the last lets none follow.

A link that ends in any way but well lets its successor start (`afternotok`), and one that ends well has it cancelled
(`kill-on-invalid-dep`). All have one name, of which Slurm runs one at a time (`singleton`). The successor is known by
its purpose in the book, so a link that Slurm requeued finds the one it has queued before.

FOLDER/slurm/chain.json    how many links there were, and how many in a row have recorded nothing new
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hpc.errors import WorkCancelled
from hpc.files import write_atomic
from hpc.slurm.book import JobBook, Submission
from hpc.slurm.campaign import Campaign
from hpc.slurm.client import Slurm
from hpc.slurm.errors import SlurmUnreachable
from hpc.slurm.parsing import Job
from hpc.slurm.script import Script, log_pattern, python_command, role_script
from hpc.slurm.states import JobState
from hpc.slurm.submission import settle, submit_job

Render = Callable[[Script], str]

FIRST = "launch"

_LOOK_UP_S = 60.0


@dataclass(frozen=True)
class Link:
    """One controller job of a campaign: the module that it runs, and the token by which it is known."""

    campaign: Campaign
    module: str
    token: str

    @property
    def follows(self) -> str:
        """The purpose of the job that comes after this one."""
        return f"after {self.token}"


def link_script(link: Link, *, after: str | None = None) -> Script:
    """Return the script of a controller job; it waits for the job `after` to end otherwise than well."""
    campaign = link.campaign
    dependency = "singleton" if after is None else f"afternotok:{after},singleton"
    script = role_script(
        campaign.cluster,
        "controller",
        name=campaign.job_name("controller"),
        token=link.token,
        command=python_command(campaign.cluster, link.module, str(campaign.folder), link.token),
        log=log_pattern(campaign.logs, "controller-%j.out"),
        directives={
            "chdir": str(campaign.folder),
            "dependency": dependency,
            "kill-on-invalid-dep": "yes",
            "requeue": True,
            "signal": f"B:USR2@{warning_s(campaign)}",
        },
        remarks=(f"Steers {campaign.folder}; see docs/cluster.md.",),
    )
    # Until Python listens, a signal would end the job before it has a successor.
    return replace(script, setup=("trap '' TERM USR2", *script.setup))


def warning_s(campaign: Campaign) -> int:
    """Return how many seconds before the end of its time Slurm warns a controller, which has left by then."""
    return max(round(campaign.cluster.margin_s / 2), 1)


def queue_first(campaign: Campaign, book: JobBook, slurm: Slurm, module: str, render: Render) -> str:
    """Submit a controller and return the id of its job; raises what `submit_job` raises."""
    link = Link(campaign, module, campaign.next_token(book.book, "controller"))
    return _submit(link, book, slurm, render(link_script(link)), FIRST)


def queue_successor(link: Link, job: str, book: JobBook, slurm: Slurm, render: Render) -> str:
    """See to it that a successor waits for a link, which runs as `job`, and return the id of the successor's job.

    Raises `SlurmUnreachable` while it cannot be known whether there is one, `SlurmRefused` where there can be none,
    `WorkCancelled` where somebody has cancelled it: people end campaigns by cancelling all of their jobs.
    """
    for submission in living_controllers(link.campaign, book, slurm):
        if submission.purpose == link.follows:
            return _id_of(submission)
    known = (s for s in book.book.of_role("controller") if s.purpose == link.follows)
    cancelled = next((s for s in known if s.ended == JobState.CANCELLED), None)
    if cancelled is not None:
        raise WorkCancelled(
            f"Controller job {cancelled.job_id}, the next one, was cancelled by somebody, so none follows. "
            f"To go on: sharp launch {shlex.quote(str(link.campaign.folder))}"
        )
    following = Link(link.campaign, link.module, link.campaign.next_token(book.book, "controller"))
    return _submit(following, book, slurm, render(link_script(following, after=job)), link.follows)


def living_controllers(campaign: Campaign, book: JobBook, slurm: Slurm) -> tuple[Submission, ...]:
    """Return the controller jobs that run or wait, and note in the book that others have ended.

    Raises `SlurmUnreachable` where Slurm does not say, or may yet have taken one whose submission it has not answered.
    """
    settle(book, slurm, patience_s=_LOOK_UP_S)
    asked = [s for s in book.book.of_role("controller") if s.ended is None]
    if any(submission.job_id is None for submission in asked):
        raise SlurmUnreachable("It is not known yet whether Slurm has taken the next controller job.")
    listed = {job.id: job for job in slurm.named(campaign.prefix)} if asked else {}
    living = [s for s in asked if _lives(listed.get(_id_of(s)))]
    for submission in asked:
        if submission not in living:
            _note_end(book, submission, listed.get(_id_of(submission)))
    return tuple(living)


def arrived(book: JobBook, token: str, job: str) -> None:
    """Note in the book that a submission has reached Slurm: its job itself says so."""
    submission = book.book.submissions.get(token)
    if submission is not None and submission.job_id is None:
        book.submitted(token, job)


def cancel_others(campaign: Campaign, slurm: Slurm, own: str | None) -> None:
    """Cancel all jobs of a campaign but one's own; raises `SlurmError`."""
    jobs = {job.array_id for job in slurm.named(campaign.prefix) if not job.state.ended}
    slurm.cancel(sorted(jobs - {own}))


def end_of_time(job: str, slurm: Slurm, environment: Mapping[str, str] = os.environ) -> float | None:
    """Return when Slurm will end a job, in seconds since 1970; None where it does not say."""
    told = environment.get("SLURM_JOB_END_TIME", "")
    if told.isdigit():
        return float(told)
    known = slurm.snapshot([job]).jobs.get(job)
    return None if known is None or known.left_s is None else time.time() + known.left_s


@dataclass(frozen=True)
class Links:
    """How a chain stands: its last link (`worker`: job and restart), how much was recorded before that began, and how
    many links in a row before it have recorded nothing (`fruitless`)."""

    worker: str
    count: int
    progress: int
    fruitless: int


def count_link(campaign: Campaign, worker: str, progress: int) -> Links:
    """Note that a link begins, and return how the chain stands."""
    path = campaign.place / "chain.json"
    last = _read_links(path)
    if last is None:
        links = Links(worker, 1, progress, 0)
    elif last.worker == worker:
        links = last
    else:
        fruitless = last.fruitless + 1 if progress == last.progress else 0
        links = Links(worker, last.count + 1, progress, fruitless)
    write_atomic(path, json.dumps(asdict(links)).encode())
    return links


def restart_chain(campaign: Campaign) -> None:
    """Forget fruitless links: somebody has launched the campaign again."""
    (campaign.place / "chain.json").unlink(missing_ok=True)


def _submit(link: Link, book: JobBook, slurm: Slurm, script: str, purpose: str) -> str:
    gpus = link.campaign.cluster.role("controller").gpus
    return submit_job(book, slurm, link.token, script, role="controller", gpus=gpus, purpose=purpose)


def _id_of(submission: Submission) -> str:
    assert submission.job_id is not None, "only what was settled comes here"
    return submission.job_id


def _lives(job: Job | None) -> bool:
    # squeue lists every job that waits or runs, whatever else it has forgotten.
    return job is not None and not job.state.ended


def _note_end(book: JobBook, submission: Submission, job: Job | None) -> None:
    how = "forgotten by Slurm" if job is None else str(job.state)
    seconds = None if job is None or job.elapsed_s is None else float(job.elapsed_s)
    book.ended(submission.token, how, seconds)


def _read_links(path: Path) -> Links | None:
    try:
        return Links(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
