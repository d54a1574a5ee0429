"""Campaigns made by hand, and what Slurm might say of their jobs."""

from __future__ import annotations

from pathlib import Path

from hpc.slurm import (
    Campaign,
    ClusterProfile,
    ControllerContext,
    Job,
    JobState,
    QueueSnapshot,
    RoleName,
    SubmissionLog,
    create_campaign,
)


def made_campaign(folder: Path) -> Campaign:
    """A campaign on a cluster whose roles ask for next to nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    role = {"time": "5min"}
    roles = {"controller": role, "server": role, "evaluate": role}
    return create_campaign(folder, ClusterProfile.model_validate({"name": "here", "roles": roles}))


def submitted(
    campaign: Campaign, role: RoleName, job: str | None, *, elements: int = 1, gpus: int = 0
) -> str:
    """Write a submission into the campaign's book, without asking any Slurm; return its token."""
    with SubmissionLog(campaign.book) as book:
        token = ControllerContext(campaign, None, book, None).next_token(role)
        book.log_intent(token, role, elements=elements, gpus=gpus)
        if job is not None:
            book.submitted(token, job)
    return token


def said(*jobs: tuple[str, JobState], notes: tuple[str, ...] = ()) -> QueueSnapshot:
    """What Slurm says of some jobs, all on n1 and ten seconds old."""
    found = {name: Job(name, state, "squeue", nodes="n1", elapsed_s=10) for name, state in jobs}
    return QueueSnapshot(found, notes)
