"""`sharp cluster`: list, show and draft cluster profiles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.options import SharpGroup, echo_blocks, echo_json, json_option

if TYPE_CHECKING:
    from hpc.slurm import RoleName

ROLES = click.Choice(["controller", "server", "evaluate"])


@click.group(cls=SharpGroup)
def cluster() -> None:
    """List, show and draft cluster profiles.

    A profile says how jobs are submitted on one cluster. Yours lie in ~/.config/pde-sharp/clusters and come before
    the shipped examples; every key is described in docs/slurm.md.

    \b
    Examples:
      sharp cluster init mycluster
      sharp cluster list
    """


@cluster.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List your profiles and the shipped examples.

    \b
    Examples:
      sharp cluster list
      sharp cluster list --json
    """
    from sharp.document import Table
    from sharp.runs.cluster.profiles import list_clusters, load_cluster

    found = {name: (path, load_cluster(path)) for name, path in list_clusters().items()}
    if as_json:
        echo_json([{"file": str(path), **loaded.model_dump(mode="json")} for path, loaded in found.values()])
        return
    rows = ((name, loaded.description, str(path)) for name, (path, loaded) in found.items())
    echo_blocks(Table(("profile", "description", "file"), tuple(rows)))


@cluster.command()
@click.argument("name", metavar="CLUSTER")
@click.option("--script", "role", type=ROLES, help="Show the batch script of a job in this role instead.")
@json_option
def show(name: str, role: RoleName | None, as_json: bool) -> None:
    """Show one profile, by name or from a file, or a batch script as it would be submitted with it.

    \b
    Examples:
      sharp cluster show gpu-cluster
      sharp cluster show gpu-cluster --script evaluate
    """
    import yaml

    from sharp.runs.cluster.profiles import example_script, load_cluster

    loaded = load_cluster(name)
    shown = {"script": example_script(loaded, role)} if role else loaded.model_dump(mode="json")
    if as_json:
        echo_json(shown)
    elif role:
        click.echo(shown["script"].rstrip())
    else:
        click.echo(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True).rstrip())


@cluster.command()
@click.argument("name")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead.")
@click.option("--force", is_flag=True, help="Replace a profile that is there.")
@json_option
def init(name: str, output: Path | None, force: bool, as_json: bool) -> None:
    """Draft a profile from what sinfo and scontrol say of the cluster at hand.

    \b
    Examples:
      sharp cluster init mycluster
      sharp cluster init mycluster --output mycluster.yaml
    """
    from hpc.slurm import Slurm
    from sharp.runs.cluster.profiles import draft_cluster

    path = draft_cluster(name, Slurm(), output, replace=force)
    if as_json:
        echo_json({"file": str(path)})
    else:
        click.echo(f"{path}\nRead it, correct it, then: sharp doctor --cluster {output or name}")
