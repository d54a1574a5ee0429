"""Carrying a sweep out for a verb: its plan shown, a yes asked for, played here or handed over to a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from sharp.cli.options import echo_json

if TYPE_CHECKING:
    from hpc.slurm import ClusterProfile
    from sharp.experiments.sweeps.estimate import SweepEstimate
    from sharp.experiments.sweeps.fingerprint import ResourceCache
    from sharp.experiments.sweeps.plan import SweepPlan
    from sharp.experiments.sweeps.runner import SweepOutcome
    from sharp.runs.cluster.launch import JobPreview


def execute_sweep(
    plan: SweepPlan,
    library: ResourceCache,
    cluster_name: str | None,
    *,
    yes: bool,
    dry_run: bool,
    steal_lease: bool,
    as_json: bool,
    command: str,
) -> SweepOutcome | None:
    """Show what a sweep would need, ask where it is paid for, and do it; return its outcome where it was played here.

    `command` is how to go on after an interruption. Raises what ends the sweep, and `Abort` where it is declined.
    """
    from sharp.experiments.sweeps.estimate import estimate_sweep
    from sharp.runs.cluster.profiles import load_cluster
    from sharp.runs.creation import check_models

    cluster = None if cluster_name is None else load_cluster(cluster_name)
    guess = estimate_sweep(plan, library, cluster)
    if dry_run:
        _show_plan(plan, guess, cluster, as_json)
        return None
    if cluster is None:
        check_models(library.cards_asked(cell.config for cell in plan.unfinished_cells))
    _confirm(plan, guess, agreed=yes or (cluster is None and _is_free(plan, library)))
    if cluster is None:
        return _play_here(plan, steal_lease, command)
    _launch(plan, cluster, as_json)
    return None


def _play_here(plan: SweepPlan, steal_lease: bool, command: str) -> SweepOutcome:
    from sharp.experiments.sweeps.progress import sweep_progress_view
    from sharp.experiments.sweeps.runner import run_sweep_locally

    with sweep_progress_view(plan) as view, _advice(command):
        outcome = run_sweep_locally(plan, view, steal_lease=steal_lease)
        if outcome.stopped is not None:
            raise outcome.stopped
    return outcome


def _launch(plan: SweepPlan, cluster: ClusterProfile, as_json: bool) -> None:
    from sharp.experiments.sweeps.workload import launch_sweep
    from sharp.runs.progress import progress_view

    with progress_view() as progress:
        launched = launch_sweep(plan, cluster, progress.on_data)
    if as_json:
        echo_json(launched.to_json())
    else:
        click.echo(
            f"{launched.folder}: on {launched.cluster} as campaign {launched.campaign}\n{launched.sentence}"
        )
        click.echo(f"Look at it with: sharp status {launched.folder}")


def _show_plan(plan: SweepPlan, guess: SweepEstimate, cluster: ClusterProfile | None, as_json: bool) -> None:
    from sharp.experiments.sweeps.estimate import format_sweep_plan, plan_as_json

    scripts = [] if cluster is None else _scripts(plan, cluster)
    if as_json:
        echo_json({**plan_as_json(plan, guess), "scripts": [script.to_json() for script in scripts]})
    else:
        click.echo("\n".join([*(script.in_words() for script in scripts), format_sweep_plan(plan, guess)]))


def _scripts(plan: SweepPlan, cluster: ClusterProfile) -> list[JobPreview]:
    from sharp.experiments.sweeps.workload import scripts_of

    return scripts_of(plan, cluster)


def _is_free(plan: SweepPlan, library: ResourceCache) -> bool:
    """Whether the rule-based model answers for every model that is asked, so that nothing is paid for."""
    from sharp.llm.cards import RULE_BASED

    cards = library.cards_asked(cell.config for cell in plan.unfinished_cells)
    return all(card.kind == RULE_BASED for card in cards)


def _confirm(plan: SweepPlan, guess: SweepEstimate, *, agreed: bool) -> None:
    """Show what is left to be done, if anything is, and ask whether to go on; raises `Abort` where it is declined."""
    from sharp.experiments.sweeps.estimate import format_sweep_plan

    if not plan.unfinished_cells:
        return
    click.echo(format_sweep_plan(plan, guess), err=True)
    if agreed:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("nobody can be asked here whether to go on; say so with --yes")
    click.confirm("Go on?", abort=True, err=True)


@contextmanager
def _advice(command: str) -> Iterator[None]:
    """Add to an error that ends a sweep what was kept and how to go on."""
    from hpc.errors import RunLocked
    from sharp.errors import BudgetExceeded

    try:
        yield
    except RunLocked:
        raise
    except BudgetExceeded as error:
        error.add_note(
            f"what was finished is kept; raise the budget in the sweep file and run it again, or {command}"
        )
        raise
    except BaseException as error:
        error.add_note(f"what was finished is kept; go on with: {command}")
        raise
