"""`sharp sweep`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.exits import CELLS_FAILED
from sharp.cli.options import SharpCommand, echo_blocks, echo_json, json_option
from sharp.cli.sweeping import execute_sweep

if TYPE_CHECKING:
    from sharp.experiments.sweeps.fingerprint import ResourceCache
    from sharp.experiments.sweeps.plan import SweepPlan
    from sharp.experiments.sweeps.runner import SweepOutcome


@click.command(cls=SharpCommand)
@click.argument("what", metavar="FILE.yaml|NAME|SWEEP")
@click.option(
    "--dir", "folder", type=click.Path(path_type=Path), help="Directory of the sweep.  [default: sweeps/NAME]"
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one key of the base, for example --set genesis.candidates=8. May be repeated.",
)
@click.option("--model", help="Model card for every role in the base.")
@click.option("--base-url", help="Where the OpenAI-compatible server of --model is (…/v1).")
@click.option(
    "--cluster", "cluster_name", metavar="NAME", help="Carry it out by jobs on this cluster, not here."
)
@click.option("--yes", is_flag=True, help="Do not ask before anything is paid for or submitted.")
@click.option("--dry-run", is_flag=True, help="Show the plan, its graph and what it would cost; do nothing.")
@click.option(
    "--steal-lease", is_flag=True, help="Take the sweep over from a process that still seems alive."
)
@json_option
def sweep(
    what: str,
    folder: Path | None,
    overrides: tuple[str, ...],
    model: str | None,
    base_url: str | None,
    cluster_name: str | None,
    yes: bool,
    dry_run: bool,
    steal_lease: bool,
    as_json: bool,
) -> None:
    """Run a matrix of runs, and put them into one table.

    The argument is a sweep file (docs/sweeps.md), the name of a shipped one, or the directory of a sweep that was
    begun. Cells that would ask the
    same before their first judge share the answers. What is finished is never run again: after an interruption, and
    after rows were added to the file, the same command does what is left. A cell that fails does not stop the others,
    and is tried again the next time. With --cluster a controller job carries it out, and rows may be added meanwhile.

    \b
    Examples:
      sharp sweep small --dry-run
      sharp sweep ablation.yaml --yes
      sharp sweep sweeps/ablation
      sharp sweep ablation.yaml --cluster mycluster --dir /scratch/me/ablation
    """
    from sharp.experiments.sweeps.fingerprint import ResourceCache

    library = ResourceCache()
    plan = _planned(what, folder, overrides, model, base_url, library)
    outcome = execute_sweep(
        plan,
        library,
        cluster_name,
        yes=yes,
        dry_run=dry_run,
        steal_lease=steal_lease,
        as_json=as_json,
        command=f"sharp sweep {shlex.quote(str(plan.folder))}",
    )
    if outcome is not None:
        _show_outcome(plan, outcome, as_json)


def _planned(
    what: str,
    folder: Path | None,
    overrides: tuple[str, ...],
    model: str | None,
    base_url: str | None,
    library: ResourceCache,
) -> SweepPlan:
    from sharp.experiments.sweeps.file import read_sweep
    from sharp.experiments.sweeps.folder import find_sweep
    from sharp.experiments.sweeps.plan import make_plan

    path, begun = find_sweep(what)
    file = read_sweep(path, overrides, model=model, base_url=base_url)
    return make_plan(file, folder or begun or Path("sweeps") / file.form.name, library)


def _show_outcome(plan: SweepPlan, outcome: SweepOutcome, as_json: bool) -> None:
    from sharp.experiments.publishing import NO_PARQUET
    from sharp.experiments.sweeps.runner import TABLE
    from sharp.experiments.sweeps.status import sweep_blocks, view_sweep

    if outcome.files.parquet is None:
        click.echo(NO_PARQUET.format(name=TABLE), err=True)
    status = view_sweep(plan.folder)
    if as_json:
        echo_json({**status.to_json(), "files": outcome.files.to_json()})
    else:
        echo_blocks(*sweep_blocks(status))
    if status.failed:
        raise click.exceptions.Exit(CELLS_FAILED)
