"""Launching a campaign: the first controller job, or what to run by hand where jobs may not submit jobs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hpc.errors import RunLocked
from hpc.files import make_directory
from hpc.lease import Lease, read_holder
from hpc.slurm.campaign import Campaign, change_profile, create_campaign, find_campaign, wish
from hpc.slurm.chain import living_controllers, queue_first, restart_chain
from hpc.slurm.commands import INSTALLATION, Commands
from hpc.slurm.ending import forget_ending, read_ending
from hpc.slurm.errors import SlurmMissing
from hpc.slurm.profile import Cluster
from sharp.cluster.control import Control, in_control
from sharp.cluster.errand import Errand
from sharp.clusters import render_script
from sharp.errors import ConfigurationError


@dataclass(frozen=True)
class Launched:
    """What launching came to. `job` is the controller's, None where there is none; `sentence` says how it goes on."""

    folder: str
    campaign: str
    cluster: str
    job: str | None
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def launch(errand: Errand, cluster: Cluster | None) -> Launched:
    """See to it that an errand is carried on by a cluster's jobs; `cluster` None: by the profile of its first launch.

    Launching what is under way, or finished, changes nothing. What has stopped goes on: a wish to stop and an ending
    are forgotten. Raises `ConfigurationError` where the cluster cannot do it, `SlurmError` where Slurm takes no job,
    `RunLocked` where it is under way by another profile.
    """
    profile = profile_of(errand.folder, cluster)
    errand.check(profile)
    try:
        with _control(errand.folder, profile) as control:
            return _go_on(control, errand)
    except RunLocked:
        known, holder = find_campaign(errand.folder), read_holder(errand.folder / "slurm")
        if known is None or known.cluster != profile or holder is None:
            raise
        return _launched(known, holder.job, f"It is under way already: {holder}.")


def profile_of(folder: Path, cluster: Cluster | None) -> Cluster:
    """Return the given profile or that of a folder's first launch; raises `ConfigurationError` without either."""
    if cluster is not None:
        return cluster
    known = find_campaign(folder)
    if known is None:
        raise ConfigurationError(
            f"{folder} has not been launched yet: say on which cluster with --cluster NAME; `sharp profile list` shows "
            "the profiles that there are"
        )
    return known.cluster


def check_slurm() -> None:
    """Raise `SlurmMissing` where no job can be submitted from."""
    commands = Commands()
    if commands.find("sbatch") is None:
        raise SlurmMissing(
            f"There is no command 'sbatch'. {INSTALLATION}; --dry-run shows what would be submitted."
        )


def cron_line(folder: Path) -> str:
    """Return the line of a crontab that advances a campaign every ten minutes."""
    log = folder / "slurm" / "logs" / "advance.log"
    command = shlex.join([sys.executable, "-P", "-m", "sharp.cli", "advance", str(folder)])
    line = f"{command} >> {shlex.quote(str(log))} 2>&1"
    return "*/10 * * * * " + line.replace("%", r"\%")


@contextmanager
def _control(folder: Path, cluster: Cluster) -> Iterator[Control]:
    lease = _lease(folder)
    try:
        campaign = _campaign(folder, cluster)
    except BaseException:
        lease.release()
        raise
    with in_control(campaign, lease) as control:
        yield control


def _lease(folder: Path) -> Lease:
    place = folder / "slurm"
    make_directory(place)
    try:
        return Lease.acquire(place)
    except RunLocked:
        raise RunLocked(
            f"{folder} is being carried on by {read_holder(place) or 'another process'} just now. Wait for it, or stop "
            f"it first: sharp cancel {shlex.quote(str(folder))}"
        ) from None


def _campaign(folder: Path, cluster: Cluster) -> Campaign:
    known = find_campaign(folder)
    if known is None:
        return create_campaign(folder, cluster)
    return known if cluster == known.cluster else change_profile(known, cluster)


def _go_on(control: Control, errand: Errand) -> Launched:
    campaign, ending = control.campaign, read_ending(control.campaign)
    living = living_controllers(campaign, control.book, control.slurm)
    if living:
        job = living[0].job_id
        return _launched(campaign, job, f"Controller job {job} is under way already.")
    if ending is not None and ending.state == "finished":
        return _launched(campaign, None, f"It has finished already. {ending.sentence}")
    forget_ending(campaign)
    restart_chain(campaign)
    wish(campaign, stop=False)
    if not campaign.cluster.submit_from_compute:
        return _launched(campaign, None, _by_hand(campaign))
    job = queue_first(campaign, control.book, control.slurm, errand.module, render_script)
    return _launched(campaign, job, f"Controller job {job} is submitted.")


def _by_hand(campaign: Campaign) -> str:
    folder = campaign.folder
    return (
        f"On {campaign.cluster.name} jobs may not submit jobs (submit_from_compute: false): no job steers this. Run\n"
        f"  sharp advance {shlex.quote(str(folder))}\n"
        "on a login node again and again until it exits with 0 instead of 75, or let cron do it (crontab -e):\n"
        f"  {cron_line(folder)}"
    )


def _launched(campaign: Campaign, job: str | None, sentence: str) -> Launched:
    return Launched(str(campaign.folder), campaign.id, campaign.cluster.name, job, sentence)
