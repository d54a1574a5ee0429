"""One step of a campaign by whoever asks for it: by hand, or by cron where jobs may not submit jobs."""

from __future__ import annotations

import asyncio
import shlex

from hpc.errors import HpcError, RunDirectoryError, RunLocked
from hpc.lease import read_holder
from hpc.slurm.campaign import Campaign, read_wishes
from hpc.slurm.chain import living_controllers
from hpc.slurm.ending import Ending, read_ending
from sharp.cluster.control import STOPPED, Control, attempt, conclude, fail, in_control, is_final, say
from sharp.cluster.departure import until_waiting
from sharp.cluster.errand import Errand, Step
from sharp.errors import SharpError

_HOW = {"failed": "ended", "stopped": "was stopped"}


def advance_campaign(campaign: Campaign, errand: Errand) -> Step:
    """Do all that can be done now, and return what came of it or what is waited for.

    Where controller jobs, or another process, carry the campaign on, that is what is waited for. Raises what ends a
    campaign, which is recorded, and `RunDirectoryError` where it has ended before otherwise than well.
    """
    ending = read_ending(campaign)
    if ending is not None and ending.state == "finished":
        return Step(True, sentence=ending.sentence)
    if ending is not None or read_wishes(campaign).stop:
        raise RunDirectoryError(_refusal(campaign, ending))
    try:
        with in_control(campaign) as control:
            return _advance(control, errand)
    except RunLocked:
        holder = read_holder(campaign.place)
        return Step(False, (f"{holder or 'another process'}, who carries it on",))


def _advance(control: Control, errand: Errand) -> Step:
    if control.book.book.of_role("controller"):
        living = living_controllers(control.campaign, control.book, control.slurm)
        if living:
            return Step(False, tuple(f"controller job {s.job_id}, which carries it on" for s in living))
    try:
        step = asyncio.run(_step(control, errand))
    except (SharpError, HpcError) as error:
        if is_final(error):
            fail(control, str(error))
        raise
    conclude(control, step)
    return step


async def _step(control: Control, errand: Errand) -> Step:
    return await attempt(control, errand, lambda parking: until_waiting(parking, control.lease), say)


def _refusal(campaign: Campaign, ending: Ending | None) -> str:
    what = STOPPED if ending is None else f"It {_HOW[ending.state]} at {ending.time}: {ending.sentence}"
    return f"{campaign.folder}: {what} To let it go on: sharp launch {shlex.quote(str(campaign.folder))}"
