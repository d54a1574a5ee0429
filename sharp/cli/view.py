"""`sharp view`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.options import FOLDER, SharpCommand, json_option, show

if TYPE_CHECKING:
    from sharp.document import Block

_LOGS, _LINES = 6, 60  # logs of jobs that are shown, and last lines of each


@click.command(cls=SharpCommand)
@click.argument("path", metavar="RUN|SWEEP|FOLDER", type=FOLDER)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port.  [default: a free one]",
)
@json_option
def view(path: Path, port: int, as_json: bool) -> None:
    """Show runs as a live page in a browser.

    Serves on this machine's loopback, for the printed address with its token: state, lineage, programs, judges'
    reasons, failures, spending, jobs and servers; several runs side by side. Only files are read. From another machine:
    ssh -L PORT:127.0.0.1:PORT HOST. Needs: pip install 'pde-sharp[view]'.

    \b
    Examples:
      sharp view runs/first
      sharp view runs --port 8600
    """
    from sharp import view as live

    live.serve(path, _jobs, port, lambda address: show(as_json, {"address": address}, address))


def _jobs(path: Path) -> tuple[Block, ...]:
    """Return what the files of a campaign tell of its jobs, servers and logs; nothing where there is none."""
    from sharp.cli.campaign import campaign_facts, campaign_of, has_campaign, job_blocks

    if not has_campaign(path):
        return ()
    from hpc.campaign import accounts, campaign_status, newest_logs, tail
    from hpc.slurm import read_submission_log
    from sharp.document import Code, Details, Facts

    campaign = campaign_of(path)
    found = accounts(
        read_submission_log(campaign.submission_log),
        None,
        kept=campaign.cluster.job_state_source != "squeue",
    )
    logs = (
        Details(f"{file.relative_to(campaign.logs)}:", (Code(tail(file, _LINES), "text", wrap=True),))
        for file in newest_logs(campaign, _LOGS)
    )
    return Facts(tuple(campaign_facts(campaign_status(campaign, None)))), *job_blocks(found, {}), *logs
