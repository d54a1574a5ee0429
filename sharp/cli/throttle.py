"""`sharp throttle`: how many evaluations of a run or sweep go on at once on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from sharp.cli.campaign import campaign_of
from sharp.cli.options import SharpCommand, echo_json, folder_argument, json_option
from sharp.errors import InputError


@click.command(cls=SharpCommand)
@folder_argument
@click.argument("count", metavar="N|none")
@json_option
def throttle(path: Path, count: str, as_json: bool) -> None:
    """Let at most N evaluations go on at once on a cluster, from now on.

    Whoever steers reads this within seconds; evaluations that have begun go on. With `none` the cluster profile's own
    limit holds again.

    \b
    Examples:
      sharp throttle runs/first 4
      sharp throttle runs/first none
    """
    from hpc.campaign import quick_slurm
    from hpc.campaign import throttle as throttle_arrays
    from hpc.slurm import SlurmError

    wanted, campaign = _number(count), campaign_of(path)
    try:
        arrays, note = throttle_arrays(campaign, quick_slurm(campaign), wanted), ""
    except SlurmError as error:
        arrays, note = (), str(error)
    if as_json:
        echo_json({"throttle": wanted, "arrays": list(arrays), "note": note})
    else:
        click.echo(_format_result(wanted, arrays, note))


def _format_result(wanted: int | None, arrays: Sequence[str], note: str) -> str:
    many = "As many evaluations at once as the cluster profile allows"
    asked = many if wanted is None else f"At most {wanted} evaluations at once"
    now = f" Changed already: {', '.join(arrays)}." if arrays else ""
    return f"{asked}; the controller goes by it from now on.{now}" + (f"\n{note}" if note else "")


def _number(text: str) -> int | None:
    if text == "none":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InputError(
            f"expected a number from 1 on, or none, found {text!r}; to end all jobs: sharp cancel"
        )
    return int(text)
