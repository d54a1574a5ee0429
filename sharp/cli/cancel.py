"""`sharp cancel`: end the jobs of a run or sweep on a cluster."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.campaign import campaign_of
from sharp.cli.options import SharpCommand, echo_json, folder_argument, json_option

if TYPE_CHECKING:
    from hpc.slurm import Campaign, Job


@click.command(cls=SharpCommand)
@folder_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def cancel(path: Path, yes: bool, as_json: bool) -> None:
    """Cancel all jobs of a run or sweep on a cluster.

    The controllers go first, so that none starts a successor; then servers and evaluations. What was finished is kept,
    and the run can go on later; programs that were being evaluated are evaluated again then.

    \b
    Examples:
      sharp cancel runs/first
      sharp cancel runs/first --yes
    """
    from hpc.slurm import read_campaign_outcome

    campaign = campaign_of(path)
    jobs, ending = _living(campaign), read_campaign_outcome(campaign)
    if jobs == () and ending is not None:
        if as_json:
            echo_json({"cancelled": [], "left": []})
        else:
            click.echo(f"{path} has no jobs; it ended at {ending.time}: {ending.sentence}")
        return
    if jobs != () and not yes:
        click.confirm(_question(path, campaign, jobs), abort=True, err=True)
    left = [job.id for job in _cancelled(path, campaign)]
    gone = [job.id for job in jobs or () if job.id not in left]
    if as_json:
        echo_json({"cancelled": gone, "left": left})
    else:
        click.echo(_format_result(path, len(gone), left))


def _living(campaign: Campaign) -> tuple[Job, ...] | None:
    """Return the jobs that are to be cancelled, None where Slurm does not say in time."""
    from hpc.campaign import living_jobs, quick_slurm
    from hpc.slurm import SlurmUnreachable

    try:
        return living_jobs(campaign, quick_slurm(campaign))
    except SlurmUnreachable:
        return None


def _cancelled(path: Path, campaign: Campaign) -> tuple[Job, ...]:
    """Cancel all jobs and return those that are still ending."""
    from hpc.campaign import cancel as cancel_jobs
    from hpc.slurm import Commands, Slurm, SlurmError

    try:
        return cancel_jobs(campaign, Slurm(Commands(pauses_s=(1.0, 3.0))))
    except SlurmError as error:
        error.add_note(
            "the wish to stop is written, and the controller obeys as soon as it reads it; cancel again when Slurm "
            f"answers: sharp cancel {shlex.quote(str(path))}"
        )
        raise


def _question(path: Path, campaign: Campaign, jobs: Sequence[Job] | None) -> str:
    from hpc.campaign import count_by_role

    if jobs is None:
        return f"Slurm does not answer just now. Cancel all jobs of {path} all the same?"
    counts = ", ".join(f"{count} {role}" for role, count in count_by_role(campaign, jobs).items())
    return f"Cancel {len(jobs)} jobs ({counts}) of {path}?"


def _format_result(path: Path, gone: int, left: Sequence[str]) -> str:
    ending = f"; still ending: {', '.join(left)}" if left else "; none is left"
    place = shlex.quote(str(path))
    return f"{gone} jobs were cancelled{ending}.\nWhat was finished is kept. Go on with: sharp launch {place}"
