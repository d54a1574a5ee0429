"""Handing a sweep over to a cluster's jobs."""

from __future__ import annotations

import shlex
from contextlib import suppress

from hpc.errors import RunLocked
from hpc.slurm.campaign import find_campaign
from hpc.slurm.ending import forget_ending, read_ending
from hpc.slurm.profile import Cluster
from sharp.cluster.launch import Launched, launch
from sharp.cluster.preview import Planned, preview
from sharp.numerics.reference import ProgressCallback
from sharp.problems import load_problem
from sharp.runs.directory import resolve_dataset
from sharp.sweeps.cellrun import data_key
from sharp.sweeps.errand import SweepErrand
from sharp.sweeps.library import Library
from sharp.sweeps.local import in_hand, keep_file
from sharp.sweeps.plan import SweepPlan


def launch_sweep(plan: SweepPlan, cluster: Cluster, progress: ProgressCallback) -> Launched:
    """See to it that a sweep is carried out by a cluster's jobs; its reference data are made first.

    Where a controller is at work already, it finds the new cells by itself. Raises what `launch` raises, and
    `DataError`.
    """
    keep_file(plan)
    _make_data(plan, progress)
    with suppress(RunLocked), in_hand(plan):
        pass  # from now on the record names all cells, unless somebody is at work, who will see to it
    _forget_end(plan)
    errand = SweepErrand.of(plan.folder)
    try:
        return launch(errand, cluster)
    except RunLocked:
        return _under_way(plan)


def scripts_of(plan: SweepPlan, cluster: Cluster) -> list[Planned]:
    """Return every kind of job that a sweep would submit."""
    judges = max((cell.config.n_judges for cell in plan.left), default=1)
    at_once = judges * min(plan.sweep.form.limits.runs, max(len(plan.left), 1))
    cards = Library().cards_asked(cell.config for cell in plan.left)
    return preview(plan.folder.absolute(), SweepErrand.module, cards, cluster, at_once=at_once)


def _make_data(plan: SweepPlan, progress: ProgressCallback) -> None:
    wanted = {data_key(cell.config): cell.config for cell in plan.left if cell.id not in plan.begun}
    for config in wanted.values():
        resolve_dataset(config, load_problem(config.problem), progress)


def _forget_end(plan: SweepPlan) -> None:
    """Let a campaign that had finished go on with the cells that are new."""
    campaign = find_campaign(plan.folder.absolute())
    ending = None if campaign is None else read_ending(campaign)
    if campaign is not None and ending is not None and ending.state == "finished" and plan.left:
        forget_ending(campaign)


def _under_way(plan: SweepPlan) -> Launched:
    campaign = find_campaign(plan.folder.absolute())
    assert campaign is not None, "somebody steers it"
    sentence = (
        "A controller is at work on it. When its cells are finished, it goes on with those that were added; look at it "
        f"with: sharp status {shlex.quote(str(plan.folder))}"
    )
    return Launched(str(campaign.folder), campaign.id, campaign.cluster.name, None, sentence)
