"""Steering a campaign: who may, a step of it, and how it ends."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hpc.errors import Fenced, HpcError, RunDirectoryError, RunLocked, StorageFull
from hpc.lease import Lease
from hpc.parking import Parking
from hpc.serving.pool import ServerFailed
from hpc.slurm.book import JobBook
from hpc.slurm.campaign import Campaign, find_campaign, read_wishes
from hpc.slurm.chain import cancel_others
from hpc.slurm.client import Slurm
from hpc.slurm.ending import write_ending
from hpc.slurm.errors import SlurmError, SlurmFull, SlurmUnreachable
from sharp.cluster.errand import Errand, Step
from sharp.cluster.site import ClusterSite
from sharp.errors import ModelUnavailable, SharpError

WAITING = 75
FAILED = 1
BUDGET_USED = 6
STOPPED = "It was asked to stop."

TRANSIENT = (SlurmUnreachable, SlurmFull, StorageFull, RunLocked, ModelUnavailable, OSError)
"""What may be over when the same is tried again later."""


@dataclass(frozen=True)
class Control:
    """The right to steer a campaign: one process at a time has it, and another that takes it ends this one's."""

    campaign: Campaign
    lease: Lease
    book: JobBook
    slurm: Slurm


@contextmanager
def in_control(campaign: Campaign, lease: Lease | None = None) -> Iterator[Control]:
    """Steer a campaign, by a lease that was got before perhaps; raises `RunLocked` while another process does."""
    held = lease or Lease.acquire(campaign.place)
    try:
        with JobBook(campaign.book, held.beat) as book:
            yield Control(campaign, held, book, Slurm(source=campaign.cluster.status))
    finally:
        held.release()


def campaign_of(folder: Path) -> Campaign:
    """Return the campaign of a folder; raises `RunDirectoryError` where it has none."""
    campaign = find_campaign(folder)
    if campaign is None:
        raise RunDirectoryError(
            f"{folder} has not been launched on a cluster; launch it with: sharp launch {shlex.quote(str(folder))} "
            "--cluster NAME"
        )
    return campaign


async def attempt(
    control: Control,
    errand: Errand,
    leave: Callable[[Parking], Awaitable[tuple[str, ...]]],
    warn: Callable[[str], None],
) -> Step:
    """Carry an errand on until it is done, or `leave` returns or something fails; then leave the cluster's jobs alone.

    Where nobody is to go on with it, its work is taken back from them.
    """
    site = ClusterSite(control.campaign, control.book, control.slurm, errand.cards, warn)
    async with site:
        try:
            step = await errand.step(site, lambda: leave(site.parking), warn)
        except (SharpError, HpcError) as error:
            if is_final(error):
                await _close_down(site)
            raise
        if step.done or read_wishes(control.campaign).stop:
            await _close_down(site)
        return step


def is_final(error: BaseException) -> bool:
    """Whether the same would happen again; a model that jobs could not serve has been given up after several."""
    given_up = isinstance(error.__cause__, ServerFailed)
    passing = isinstance(error, (*TRANSIENT, Fenced)) and not given_up
    return isinstance(error, (SharpError, HpcError)) and not passing


def conclude(control: Control, step: Step, own: str | None = None) -> bool:
    """Record it where a campaign is over, cancel all its jobs but one's own, and return whether it is."""
    if step.done:
        write_ending(control.campaign, "finished", step.sentence)
    elif read_wishes(control.campaign).stop:
        write_ending(control.campaign, "stopped", STOPPED)
    else:
        return False
    cancel_all(control, own)
    return True


def fail(control: Control, sentence: str, own: str | None = None) -> None:
    """Record that a campaign does not go on, and why, and cancel all its jobs but one's own."""
    if read_wishes(control.campaign).stop:
        write_ending(control.campaign, "stopped", STOPPED)
    else:
        write_ending(control.campaign, "failed", sentence)
    cancel_all(control, own)


def cancel_all(control: Control, own: str | None = None) -> None:
    """Cancel all jobs of a campaign but one's own, as far as Slurm answers: one that is left finds nothing to do."""
    try:
        cancel_others(control.campaign, control.slurm, own)
    except SlurmError as error:
        say(f"Not all jobs of the campaign could be cancelled: {error}")


def say(sentence: str) -> None:
    """Tell whoever reads the job's log, or looks on."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


async def _close_down(site: ClusterSite) -> None:
    try:
        await site.close_down()
    except SlurmError as error:
        say(f"Not all work of the campaign could be taken back: {error}")
