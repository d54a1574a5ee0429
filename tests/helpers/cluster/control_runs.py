"""A run directory and a campaign made by hand, and real jobs that only wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from hpc.slurm import (
    Campaign,
    ClusterProfile,
    ControllerContext,
    Option,
    RoleName,
    Slurm,
    SubmissionLog,
    create_campaign,
    log_pattern,
    role_script,
)
from sharp.config import Budget
from sharp.llm.cards import load_card
from sharp.runs.cluster.profiles import render_script

WAIT = ("sleep", "600")


def made_run(path: Path, **budget: Any) -> Path:
    """A run directory that nobody has worked in."""
    path.mkdir(parents=True)
    manifest = {
        "format": 2,
        "problem": {"id": "advection", "hash": "0"},
        "models": {"rule-based": load_card("rule-based").model_dump(mode="json")},
        "config": {"budget": Budget(**budget).model_dump(mode="json")},
    }
    (path / "run.yaml").write_text(yaml.safe_dump(manifest))
    return path


def made_campaign(folder: Path, **changes: Any) -> Campaign:
    """A campaign on the test's cluster."""
    role = {"time": "20min", "memory": "100MB"}
    roles = {"controller": role, "server": role, "evaluate": role}
    profile = {"name": "private", "job_state_source": "squeue", "roles": roles, **changes}
    return create_campaign(folder, ClusterProfile.model_validate(profile))


def submit(
    campaign: Campaign,
    slurm: Slurm,
    role: RoleName,
    *,
    command: tuple[str, ...] = WAIT,
    elements: int = 1,
    gpus: int = 0,
    **directives: Option,
) -> str:
    """Submit a real job (or array) and write it into the book; return its id."""
    array: dict[str, Option] = {"array": f"0-{elements - 1}"} if elements > 1 else {}
    with SubmissionLog(campaign.book) as book:
        token = ControllerContext(campaign, None, book, None).next_token(role)
        script = role_script(
            campaign.cluster,
            role,
            name=campaign.job_name(role),
            token=token,
            command=command,
            log=log_pattern(campaign.logs, "%A_%a_log.out" if array else "%j.out"),
            directives={**array, **directives},
        )
        book.log_intent(token, role, elements=elements, gpus=gpus)
        job = slurm.submit(render_script(script), token=token)
        book.submitted(token, job)
    return job
