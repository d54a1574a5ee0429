"""A run directory and a campaign made by hand, and real jobs that only wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from hpc.slurm.book import JobBook
from hpc.slurm.campaign import Campaign, create_campaign
from hpc.slurm.client import Slurm
from hpc.slurm.profile import Cluster, Option, RoleName
from hpc.slurm.script import log_pattern, role_script
from sharp.clusters import render_script
from sharp.config import Budget
from sharp.llm.cards import load_card

WAIT = ("sleep", "600")


def made_run(path: Path, **budget: Any) -> Path:
    """A run directory that nobody has worked in."""
    path.mkdir(parents=True)
    manifest = {
        "format": 1,
        "problem": {"id": "advection", "hash": "0"},
        "models": {"playbook": load_card("playbook").model_dump(mode="json")},
        "config": {"budget": Budget(**budget).model_dump(mode="json")},
    }
    (path / "run.yaml").write_text(yaml.safe_dump(manifest))
    return path


def made_campaign(folder: Path, **changes: Any) -> Campaign:
    """A campaign on the test's cluster."""
    role = {"time": "20min", "memory": "100MB"}
    roles = {"controller": role, "server": role, "evaluate": role}
    profile = {"name": "private", "status": "squeue", "roles": roles, **changes}
    return create_campaign(folder, Cluster.model_validate(profile))


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
    with JobBook(campaign.book) as book:
        token = campaign.next_token(book.book, role)
        script = role_script(
            campaign.cluster,
            role,
            name=campaign.job_name(role),
            token=token,
            command=command,
            log=log_pattern(campaign.logs, "%A_%a_log.out" if array else "%j.out"),
            directives={**array, **directives},
        )
        book.intend(token, role, elements=elements, gpus=gpus)
        job = slurm.submit(render_script(script), token=token)
        book.submitted(token, job)
    return job
