"""`sharp retry`: another try of a run where its programs failed in ways that are doubted."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.campaign import has_campaign
from sharp.cli.options import SharpCommand, echo_json, json_option, run_argument
from sharp.errors import InputError

if TYPE_CHECKING:
    from sharp.runs.retry import Retry


@click.command(cls=SharpCommand)
@run_argument
@click.option(
    "--failed",
    "kinds",
    multiple=True,
    required=True,
    metavar="CLASS",
    help="How programs failed that are tried again: timeout, memory, import or exception. May be repeated.",
)
@click.option(
    "--run-dir",
    "target",
    type=click.Path(path_type=Path),
    help="Directory of the new run.  [default: RUN-retry]",
)
@click.option("--no-start", is_flag=True, help="Only make the new run; start it later.")
@json_option
def retry(path: Path, kinds: tuple[str, ...], target: Path | None, no_start: bool, as_json: bool) -> None:
    """Try a run again where programs failed in a way that is doubted.

    How a program failed is a result, and a run's record is never changed. But a program may have run out of time or
    memory because its node was slow or full, and it may have missed a library that others have. So this makes a new
    run, which takes every answer of the old one wherever the same is asked, and makes only the evaluations again that
    failed in the given ways, without looking into the cache. From the first result that differs it goes its own way.
    The old run stays as it is.

    Where a machine failed, nothing was recorded: such evaluations are made again whenever the run goes on (`sharp
    resume`). A new run starts at once, on this machine; one whose old run was launched on a cluster is only made.

    \b
    Examples:
      sharp retry runs/first --failed timeout
      sharp retry runs/first --failed timeout --failed memory --run-dir runs/second --no-start
    """
    from sharp.api import continue_run
    from sharp.cli.run import print_run
    from sharp.runs.directory import load_run
    from sharp.runs.retry import DOUBTFUL, refusal
    from sharp.runs.retry import retry as try_again

    doubtful = tuple(kind for kind in DOUBTFUL if kind in kinds)
    for kind in kinds:
        if kind not in doubtful:
            raise InputError(f"--failed {kind}: {refusal(kind)}. Valid: {', '.join(DOUBTFUL)}")
    made = try_again(load_run(path), doubtful, target or path.with_name(f"{path.name}-retry"))
    if no_start or has_campaign(path):
        _say(made, as_json, launched=has_campaign(path))
    else:
        print_run(continue_run(made.run, listener=None), as_json=as_json)


def _say(made: Retry, as_json: bool, *, launched: bool) -> None:
    place = shlex.quote(str(made.run.path))
    start = f"sharp launch {place} --cluster NAME" if launched else f"sharp resume {place}"
    if as_json:
        echo_json({"run": str(made.run.path), "again": list(made.again), "start": start})
        return
    click.echo(f"{made.run.path}: {len(made.again)} evaluations will be made again")
    for effect in made.again:
        click.echo(f"  {effect}")
    click.echo(f"Start it with: {start}")
