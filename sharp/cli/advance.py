"""`sharp advance`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.campaign import campaign_of
from sharp.cli.exits import WAITING
from sharp.cli.options import SharpCommand, echo_json, json_option

if TYPE_CHECKING:
    from hpc.campaign import WorkloadProgress


@click.command(cls=SharpCommand)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@json_option
def advance(folder: Path, as_json: bool) -> None:
    """Do the next step of a run or sweep on a cluster.

    For people and for cron. Does all that can be done now, hands the rest to jobs, and ends without waiting for them:
    with 75 and a sentence of what is waited for, or with 0 once all is finished and reported. For clusters whose jobs
    may not submit jobs (`submit_from_compute: false`); elsewhere controller jobs do the same. Can be called at any
    time, by anybody, twice at once too.

    \b
    Examples:
      sharp advance runs/first
      sharp advance runs/first --json
    """
    from hpc.campaign import advance_campaign
    from sharp.cli.workloads import workload_in

    campaign = campaign_of(folder.absolute())
    step = advance_campaign(campaign, workload_in(folder.absolute()))
    if as_json:
        echo_json({"folder": str(folder), "done": step.done, "waiting_for": list(step.waiting_for)})
    else:
        click.echo(_format_progress(folder, step))
    if not step.done:
        raise click.exceptions.Exit(WAITING)


def _format_progress(folder: Path, step: WorkloadProgress) -> str:
    if step.done:
        return step.sentence
    reasons = (f"  {reason}" for reason in step.waiting_for)
    return "\n".join([f"{folder} is not finished. Waiting for:", *reasons])
