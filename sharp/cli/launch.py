"""`sharp launch`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharp.cli.options import SharpCommand, echo_json, json_option, prior_option
from sharp.cli.workloads import workload_in
from sharp.errors import InputError

if TYPE_CHECKING:
    from hpc.campaign import Workload
    from hpc.slurm import ClusterProfile
    from sharp.config import RunConfig
    from sharp.problems import Problem
    from sharp.runs.cluster.launch import JobPreview
    from sharp.runs.cluster.workload import RunWorkload


@click.command(cls=SharpCommand)
@click.argument("what", metavar="PROBLEM|CONFIG.yaml|RUN")
@click.option(
    "--cluster", "cluster_name", metavar="NAME", help="Profile of the cluster (`sharp cluster list`)."
)
@click.option(
    "--run-dir", "path", type=click.Path(path_type=Path), help="Run directory.  [default: runs/NAME-TIME]"
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one key of a new run's configuration. May be repeated.",
)
@click.option("--model", help="Model card for every role of a new run.")
@click.option("--base-url", help="Where the OpenAI-compatible server of --model is (…/v1).")
@click.option(
    "--budget",
    "budgets",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a budget of an existing run before it goes on. May be repeated.",
)
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="MODEL=URL",
    help="Say where a model of an existing run is served now (…/v1). May be repeated.",
)
@prior_option
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print every script, its command and the cost; needs no Slurm, does nothing.",
)
@json_option
def launch(
    what: str,
    cluster_name: str | None,
    path: Path | None,
    overrides: tuple[str, ...],
    model: str | None,
    base_url: str | None,
    prior_run: Path | None,
    budgets: tuple[str, ...],
    servers: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Carry a run out on a Slurm cluster.

    Takes what `sharp run` takes, makes the run directory, which compute nodes must see, and submits a controller job.
    That carries the run on and submits the others: evaluations, servers of models, its own successor. Takes the
    directory of a run as well: one that was begun on this machine, or one that was launched before and has stopped.
    Launching what is under way changes nothing. All that has to do with the cluster lies in RUN/slurm
    (docs/cluster.md).

    \b
    Examples:
      sharp launch burgers --cluster mycluster --run-dir /scratch/me/runs/first
      sharp launch my-run.yaml --cluster mycluster --dry-run
      sharp launch /scratch/me/runs/first --budget gpu_hours=40
    """
    from sharp.runs.cluster.profiles import load_cluster

    cluster = None if cluster_name is None else load_cluster(cluster_name)
    if Path(what).is_dir():
        given = {"--run-dir": path, "--set": overrides, "--model": model, "--base-url": base_url}
        given["--prior-run"] = prior_run
        _refuse(f"{what} exists: %s only changes a new run", given)
        _launch_existing(Path(what), cluster, budgets, servers, dry_run=dry_run, as_json=as_json)
        return
    _refuse(
        "%s only changes an existing run; for a new one: --set KEY=VALUE",
        {"--budget": budgets, "--server": servers},
    )
    if cluster is None:
        raise InputError("--cluster NAME is missing; `sharp cluster list` shows the profiles that there are")
    from sharp.runs.configure import load_config

    config = load_config(what, overrides, model=model, base_url=base_url, prior_run=prior_run)
    _launch_new(config, path, cluster, dry_run, as_json)


def _launch_new(
    config: RunConfig, path: Path | None, cluster: ClusterProfile, dry_run: bool, as_json: bool
) -> None:
    """Find out what is wrong before data are made: it may take an hour."""
    from sharp.api import fresh_path, report_of
    from sharp.runs.cluster.launch import check_slurm
    from sharp.runs.cluster.workload import RunWorkload, check
    from sharp.runs.configure import problem_of
    from sharp.runs.creation import create_run, load_cards
    from sharp.runs.progress import progress_view

    folder, cards, problem = (
        path or fresh_path(Path(config.problem).stem),
        load_cards(config),
        problem_of(config),
    )
    check(config, problem, cards.values(), cluster)
    planned = _planned(folder, RunWorkload.module, cards.values(), cluster, config.n_judges)
    if dry_run:
        _show(planned, _cost(config, problem, cluster), as_json)
        return
    check_slurm()
    with progress_view() as progress:
        created = create_run(config, folder, progress.on_data, on_cluster=True)
    _launch(RunWorkload(created, report_of), cluster, as_json)


def _launch_existing(
    folder: Path,
    cluster: ClusterProfile | None,
    budgets: Sequence[str],
    servers: Sequence[str],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    from sharp.runs.cluster.launch import profile_of

    errand = workload_in(folder)
    if dry_run:
        profile = profile_of(errand.folder, cluster)
        _show(_planned(errand.folder, errand.module, errand.cards, profile, 1), None, as_json)
        return
    if budgets or servers:
        errand = _amended(folder, budgets, servers)
    _launch(errand, cluster, as_json)


def _amended(folder: Path, budgets: Sequence[str], servers: Sequence[str]) -> RunWorkload:
    from sharp.api import report_of
    from sharp.runs.advance import acquire_run
    from sharp.runs.amend import amended
    from sharp.runs.cluster.workload import RunWorkload
    from sharp.runs.directory import load_run

    with acquire_run(amended(load_run(folder), budgets, servers)) as (run, _):
        return RunWorkload(run, report_of)


def _launch(errand: Workload[Any], cluster: ClusterProfile | None, as_json: bool) -> None:
    from sharp.runs.cluster.launch import launch as launch_errand

    launched = launch_errand(errand, cluster)
    if as_json:
        echo_json(launched.to_json())
    else:
        place = launched.folder
        click.echo(f"{place}: on {launched.cluster} as campaign {launched.campaign}\n{launched.sentence}")
        click.echo(f"Look at it with: sharp status {shlex.quote(place)}")


def _refuse(sentence: str, given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value:
            raise InputError(sentence % option)


def _planned(
    folder: Path, module: str, cards: Any, cluster: ClusterProfile, at_once: int
) -> list[JobPreview]:
    from sharp.runs.cluster.launch import preview

    return preview(folder, module, cards, cluster, at_once=at_once)


def _cost(config: RunConfig, problem: Problem, cluster: ClusterProfile) -> dict[str, Any]:
    """Return what a run will need, and the GPU-hours of its evaluations were each to take all of its time."""
    from sharp.runs.plan import plan

    planned, gpus = plan(config), cluster.role("evaluate").gpus
    hours = planned["evaluations"]["most"] * (config.evaluation.wall_s or problem.limits.wall_s) / 3600
    return {**planned, "gpu_hours_at_most": hours * gpus}


def _show(planned: list[JobPreview], cost: dict[str, Any] | None, as_json: bool) -> None:
    from sharp.runs.plan import format_plan

    if as_json:
        echo_json({"scripts": [job.to_json() for job in planned], "cost": cost})
        return
    for job in planned:
        click.echo(job.in_words())
    if cost is not None:
        click.echo(format_plan(cost))
        click.echo(
            f"GPU-hours of evaluations: {cost['gpu_hours_at_most']:.3g} at most; servers of models besides"
        )
