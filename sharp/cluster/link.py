"""A controller job from its beginning to its end: one link of the chain that carries a campaign through."""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from hpc.errors import Fenced, HpcError, InfrastructureError, RunLocked, WorkCancelled
from hpc.lease import Lease
from hpc.slurm.campaign import Campaign
from hpc.slurm.chain import Link, arrived, count_link, end_of_time, queue_successor
from hpc.slurm.ending import read_ending
from hpc.slurm.errors import SlurmError, SlurmUnreachable
from sharp.cluster.control import (
    BUDGET_USED,
    FAILED,
    STOPPED,
    TRANSIENT,
    WAITING,
    Control,
    attempt,
    campaign_of,
    cancel_all,
    conclude,
    fail,
    in_control,
    is_final,
    say,
)
from sharp.cluster.departure import Departure
from sharp.cluster.errand import Errand, Step
from sharp.cluster.told import Told
from sharp.clusters import render_script
from sharp.errors import BudgetExceeded, SharpError

_PAUSE_S = 30.0
_LOOK_S = 2.0

OpenErrand = Callable[[Path], Errand]


def run_link(module: str, folder: Path, token: str, open_errand: OpenErrand, told: Told) -> int:
    """Be the controller job that runs `module` and was submitted with a token, and return its exit code.

    It has a successor before it works. 0 ends the chain because all is done (or people want it to stop), 6 because a
    budget is used up, 1 because going on makes no sense otherwise; 75 lets the successor go on. Raises
    `RunDirectoryError` where the folder has no campaign.
    """
    campaign, job = campaign_of(folder), os.environ["SLURM_JOB_ID"]
    lease = _when_free(campaign, told)
    if lease is None:
        return WAITING
    with in_control(campaign, lease) as control:
        try:
            return _run(control, Link(campaign, module, token), job, open_errand, told)
        except Fenced as error:
            say(str(error))
            return WAITING


def _run(control: Control, link: Link, job: str, open_errand: OpenErrand, told: Told) -> int:
    began = time.monotonic()
    arrived(control.book, link.token, job)
    if read_ending(control.campaign) is not None:
        cancel_all(control, job)
        return 0
    _queue_successor(control, link, job, told)
    code = _steer(control, job, open_errand, told)
    if code == WAITING:
        _queue_successor(control, link, job, told)
        # Who was told to leave may have to come back: Slurm may put the job into the queue again.
        if not told.yet:
            control.book.ended(link.token, "left", time.monotonic() - began)
    return code


def _steer(control: Control, job: str, open_errand: OpenErrand, told: Told) -> int:
    campaign = control.campaign
    try:
        errand = _counted(campaign, job, open_errand)
        step = asyncio.run(_go_on(control, job, errand, told))
    except Fenced:
        raise
    except (SharpError, HpcError) as error:
        say(str(error))
        fail(control, str(error), job)
        return BUDGET_USED if isinstance(error, BudgetExceeded) else FAILED
    if conclude(control, step, job):
        say(step.sentence or STOPPED)
        return 0
    waiting = f" Waiting for: {'; '.join(step.waiting_for)}" if step.waiting_for else ""
    say(f"Leaving for the next controller job.{waiting}")
    return WAITING


async def _go_on(control: Control, job: str, errand: Errand, told: Told) -> Step:
    """Carry on until it is done or time to leave, again and again where something may be over that was in the way."""
    campaign, failures, progress = control.campaign, 0, errand.progress()
    ends = await asyncio.to_thread(end_of_time, job, control.slurm)
    departure = Departure(campaign, control.lease, told, ends, campaign.cluster.margin_s)
    with told.in_loop():
        while True:
            try:
                return await attempt(control, errand, departure.wait, say)
            except TRANSIENT as error:
                if is_final(error):
                    raise
                before, progress = progress, errand.progress()
                failures = failures + 1 if progress == before else 1
                if failures >= campaign.cluster.chain.fruitless:
                    raise InfrastructureError(f"{failures} times in a row: {error}") from error
                pause_s = _PAUSE_S * 2 ** (failures - 1)
                say(f"{error} Trying again in {pause_s:g} s.")
                if await departure.within(pause_s):
                    return Step(False, (str(error),))


def _counted(campaign: Campaign, job: str, open_errand: OpenErrand) -> Errand:
    """Return the errand of a link that is now counted; raises `InfrastructureError` where the last brought nothing."""
    worker = f"{job}.{os.environ.get('SLURM_RESTART_COUNT', '0')}"
    try:
        errand = open_errand(campaign.folder)
        links = count_link(campaign, worker, errand.progress())
    except (SharpError, HpcError):
        raise
    except Exception as error:  # a link that could end here uncounted would have successors for ever
        traceback.print_exc()
        raise InfrastructureError(f"{type(error).__name__}: {error}") from error
    if links.fruitless >= campaign.cluster.chain.fruitless:
        raise InfrastructureError(
            f"Nothing new was recorded in {links.fruitless} controller jobs in a row; what they printed is in "
            f"{campaign.logs}."
        )
    return errand


def _queue_successor(control: Control, link: Link, job: str, told: Told) -> None:
    """Queue the next link, as soon as Slurm answers; say so where there can be none."""
    while not _has_successor(control, link, job) and not told.yet:
        control.lease.beat()
        time.sleep(_LOOK_S)


def _has_successor(control: Control, link: Link, job: str) -> bool:
    """Whether the next link is queued, or cannot be."""
    try:
        queue_successor(link, job, control.book, control.slurm, render_script)
    except SlurmUnreachable as error:
        say(str(error))
        return False
    except WorkCancelled as error:
        say(str(error))
    except SlurmError as error:
        say(f"No controller job can follow this one: {error}")
    return True


def _when_free(campaign: Campaign, told: Told) -> Lease | None:
    """Return the lease of a campaign once nobody else has it, None if told to leave before."""
    said = ""
    while not told.yet:
        try:
            return Lease.acquire(campaign.place)
        except RunLocked as error:
            if str(error) != said:
                said = str(error)
                say(said)
            time.sleep(_LOOK_S)
    return None
