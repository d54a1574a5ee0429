"""Carrying a sweep out for a verb: its plan shown, a yes asked for, played here or handed over to a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from sharp.cli.options import echo_json

if TYPE_CHECKING:
    from hpc.slurm.profile import Cluster
    from sharp.cluster.preview import Planned
    from sharp.sweeps.estimate import SweepEstimate
    from sharp.sweeps.library import Library
    from sharp.sweeps.plan import SweepPlan
    from sharp.sweeps.play import SweepOutcome


def carry_out(
    plan: SweepPlan,
    library: Library,
    cluster_name: str | None,
    *,
    yes: bool,
    dry_run: bool,
    takeover: bool,
    as_json: bool,
    command: str,
) -> SweepOutcome | None:
    """Show what a sweep would need, ask where it is paid for, and do it; return its outcome where it was played here.

    `command` is how to go on after an interruption. Raises what ends the sweep, and `Abort` where it is declined.
    """
    from sharp.clusters import load_cluster
    from sharp.runs.directory import check_models
    from sharp.sweeps.estimate import estimate_sweep

    cluster = None if cluster_name is None else load_cluster(cluster_name)
    guess = estimate_sweep(plan, library, cluster)
    if dry_run:
        _show_plan(plan, guess, cluster, as_json)
        return None
    if cluster is None:
        check_models(library.cards_asked(cell.config for cell in plan.left))
    _confirm(plan, guess, agreed=yes or (cluster is None and _is_free(plan, library)))
    if cluster is None:
        return _play_here(plan, takeover, command)
    _launch(plan, cluster, as_json)
    return None


def _play_here(plan: SweepPlan, takeover: bool, command: str) -> SweepOutcome:
    from sharp.sweeps.local import play_here
    from sharp.sweeps.progress import watching_sweep

    with watching_sweep(plan) as view, _advice(command):
        outcome = play_here(plan, view, takeover=takeover)
        if outcome.stopped is not None:
            raise outcome.stopped
    return outcome


def _launch(plan: SweepPlan, cluster: Cluster, as_json: bool) -> None:
    from sharp.runs.progress import watching
    from sharp.sweeps.launch import launch_sweep

    with watching() as progress:
        launched = launch_sweep(plan, cluster, progress.on_data)
    if as_json:
        echo_json(launched.to_json())
    else:
        click.echo(
            f"{launched.folder}: on {launched.cluster} as campaign {launched.campaign}\n{launched.sentence}"
        )
        click.echo(f"Look at it with: sharp status {launched.folder}")


def _show_plan(plan: SweepPlan, guess: SweepEstimate, cluster: Cluster | None, as_json: bool) -> None:
    from sharp.sweeps.words import plan_as_json, plan_in_words

    scripts = [] if cluster is None else _scripts(plan, cluster)
    if as_json:
        echo_json({**plan_as_json(plan, guess), "scripts": [script.to_json() for script in scripts]})
    else:
        click.echo("\n".join([*(script.in_words() for script in scripts), plan_in_words(plan, guess)]))


def _scripts(plan: SweepPlan, cluster: Cluster) -> list[Planned]:
    from sharp.sweeps.launch import scripts_of

    return scripts_of(plan, cluster)


def _is_free(plan: SweepPlan, library: Library) -> bool:
    """Whether the playbook answers for every model that is asked, so that nothing is paid for."""
    cards = library.cards_asked(cell.config for cell in plan.left)
    return all(card.kind == "playbook" for card in cards)


def _confirm(plan: SweepPlan, guess: SweepEstimate, *, agreed: bool) -> None:
    """Show what is left to be done, if anything is, and ask whether to go on; raises `Abort` where it is declined."""
    from sharp.sweeps.words import plan_in_words

    if not plan.left:
        return
    click.echo(plan_in_words(plan, guess), err=True)
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
