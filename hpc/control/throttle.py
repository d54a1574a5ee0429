"""Changing how many evaluations go on at once: asked of the controller, and of the arrays that are there already."""

from __future__ import annotations

from hpc.slurm.book import read_book
from hpc.slurm.campaign import Campaign, wish
from hpc.slurm.client import Slurm
from hpc.slurm.errors import SlurmRefused
from hpc.work.fleet import shares


def throttle(campaign: Campaign, slurm: Slurm, running: int | None) -> tuple[str, ...]:
    """Ask for so many evaluations at once from now on, None for no such limit; return the arrays changed at once.

    The wish is on disk before Slurm is asked, and holds for arrays to come. Raises `SlurmError` where Slurm does not
    answer; then the controller changes the arrays when it does.
    """
    wish(campaign, throttle=running)
    if running is None:
        return ()
    arrays = [
        s.job_id for s in read_book(campaign.book).open if s.role == "evaluate" and s.job_id is not None
    ]
    shared = zip(arrays, shares(running, len(arrays)) if arrays else (), strict=True)
    return tuple(array for array, share in shared if _was_throttled(slurm, array, share))


def _was_throttled(slurm: Slurm, array: str, share: int) -> bool:
    try:
        slurm.throttle(array, share)
    except SlurmRefused:  # it has ended, or is no array
        return False
    return True
