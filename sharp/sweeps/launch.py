"""Handing a sweep over to a cluster's jobs."""

from __future__ import annotations

from dataclasses import replace

from hpc.errors import RunLocked
from hpc.slurm.campaign import find_campaign
from hpc.slurm.ending import forget_ending, read_ending
from hpc.slurm.profile import Cluster
from sharp.cluster.launch import Launched, launch
from sharp.cluster.preview import Planned, preview
from sharp.numerics.reference import ProgressCallback
from sharp.runs.configure import problem_of
from sharp.runs.directory import resolve_dataset
from sharp.sweeps.cellrun import data_key
from sharp.sweeps.errand import SweepErrand
from sharp.sweeps.library import Library
from sharp.sweeps.local import in_hand, keep_file
from sharp.sweeps.plan import SweepPlan

_LATER = "When the cells that it knows are at rest, it goes on with those that were added."


def launch_sweep(plan: SweepPlan, cluster: Cluster, progress: ProgressCallback) -> Launched:
    """See to it that a sweep is carried out by a cluster's jobs; its reference data are made first.

    Where a controller is at work already, it finds the new cells by itself. Raises what `launch` raises, and
    `DataError`.
    """
    keep_file(plan)
    _make_data(plan, progress)
    at_work = _is_at_work(plan)
    _forget_end(plan)
    try:
        launched = launch(SweepErrand.of(plan.folder), cluster)
    except RunLocked:
        return _under_way(plan)
    return replace(launched, sentence=f"{launched.sentence} {_LATER}") if at_work else launched


def scripts_of(plan: SweepPlan, cluster: Cluster) -> list[Planned]:
    """Return every kind of job that a sweep would submit."""
    judges = max((cell.config.n_judges for cell in plan.left), default=1)
    at_once = judges * min(plan.sweep.form.limits.runs, max(len(plan.left), 1))
    cards = Library().cards_asked(cell.config for cell in plan.left)
    return preview(plan.folder.absolute(), SweepErrand.module, cards, cluster, at_once=at_once)


def _make_data(plan: SweepPlan, progress: ProgressCallback) -> None:
    wanted = {data_key(cell.config): cell.config for cell in plan.left if cell.id not in plan.begun}
    for config in wanted.values():
        resolve_dataset(config, problem_of(config), progress)


def _is_at_work(plan: SweepPlan) -> bool:
    """Whether a controller has the sweep in hand; where nobody has, its record names all cells from now on."""
    try:
        with in_hand(plan):
            return False
    except RunLocked:
        return find_campaign(plan.folder.absolute()) is not None


def _forget_end(plan: SweepPlan) -> None:
    """Let a campaign that had finished go on with the cells that are new."""
    campaign = find_campaign(plan.folder.absolute())
    ending = None if campaign is None else read_ending(campaign)
    if campaign is not None and ending is not None and ending.state == "finished" and plan.left:
        forget_ending(campaign)


def _under_way(plan: SweepPlan) -> Launched:
    campaign = find_campaign(plan.folder.absolute())
    assert campaign is not None, "somebody steers it"
    sentence = f"A controller is at work on it. {_LATER}"
    return Launched(str(campaign.folder), campaign.id, campaign.cluster.name, None, sentence)
