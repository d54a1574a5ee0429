"""What a campaign would submit, without Slurm and without a file: every kind of script, and how it is handed over."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hpc.serving.plan import server_script
from hpc.slurm.campaign import Campaign, find_campaign
from hpc.slurm.chain import Link, link_script
from hpc.slurm.client import Slurm
from hpc.slurm.profile import Cluster
from hpc.work.arrays import Arrays, Program
from sharp.cluster.pilot import evaluate_entries
from sharp.clusters import render_script
from sharp.llm.cards import ModelCard
from sharp.llm.hosting import server_plans

_UNKNOWN = "0" * 8


@dataclass(frozen=True)
class Planned:
    """A kind of job: `when` it is submitted, by which command, and the script that the command reads."""

    role: str
    when: str
    argv: tuple[str, ...]
    script: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def in_words(self) -> str:
        """Return text for a person; all of it is a script."""
        return f"# {self.role}: {self.when}\n# {' '.join(self.argv)} < this\n{self.script}"


def preview(
    folder: Path, module: str, cards: Collection[ModelCard], cluster: Cluster, *, at_once: int
) -> list[Planned]:
    """Return every kind of job that a campaign would submit; an array for `at_once` evaluations.

    The campaign's id (unless it has one) and ids of jobs are not known yet: they are zeros. Raises `ScriptError`
    where a path or a setting cannot stand in a script.
    """
    found = find_campaign(folder)
    campaign = Campaign(folder.absolute(), found.id if found else _UNKNOWN, cluster, "")
    return [
        *_controllers(campaign, module),
        _array(campaign, at_once),
        *_servers(campaign, cards),
    ]


def _controllers(campaign: Campaign, module: str) -> list[Planned]:
    if not campaign.cluster.submit_from_compute:
        return []
    links = [Link(campaign, module, f"{campaign.id}-c{number}") for number in (1, 2)]
    first, following = link_script(links[0]), link_script(links[1], after="0")
    return [
        _planned("controller", "at the launch", render_script(first)),
        _planned("controller", "by each one, before it works", render_script(following)),
    ]


def _array(campaign: Campaign, at_once: int) -> Planned:
    dispatch = campaign.cluster.dispatch
    elements = max(min(-(-at_once // dispatch.pack), dispatch.parallel), 1)
    arrays = Arrays(campaign, Slurm(), Program(evaluate_entries), render_script, beat_s=0.0)
    return _planned("evaluate", "whenever evaluations wait", arrays.script(f"{campaign.id}-e1", elements))


def _servers(campaign: Campaign, cards: Collection[ModelCard]) -> list[Planned]:
    plans = server_plans(cards, campaign.cluster)
    key = campaign.services / "key"
    return [
        _planned(
            "server",
            f"when {model} is asked, {plan.replicas} of them",
            render_script(server_script(campaign, plan, f"{campaign.id}-s{number}", key_file=key)),
        )
        for number, (model, plan) in enumerate(plans.items(), start=1)
    ]


def _planned(role: str, when: str, script: str) -> Planned:
    return Planned(role, when, ("sbatch", "--parsable"), script)
