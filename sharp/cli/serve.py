"""`sharp serve`: a model on a cluster, for runs elsewhere or for people."""

from __future__ import annotations

import shlex
import socket
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from sharp.cli.exits import MACHINE_FAILED
from sharp.cli.options import SharpCommand, echo_json, json_option

if TYPE_CHECKING:
    from hpc.serving import ServerPlan, ServerRegistration
    from hpc.slurm import ClusterProfile


@click.command(cls=SharpCommand)
@click.argument("model")
@click.option(
    "--cluster", metavar="NAME", help="Cluster profile, by name or file; needed unless with --stop."
)
@click.option(
    "--replicas", type=click.IntRange(min=1), help="Servers at once; by default the profile's number."
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where jobs, key and logs are kept; by default served/MODEL.",
)
@click.option("--dry-run", is_flag=True, help="Print the batch script and what it asks for; needs no Slurm.")
@click.option("--stop", "ending", is_flag=True, help="Let the servers finish what they are at, and end them.")
@json_option
def serve(
    model: str,
    cluster: str | None,
    replicas: int | None,
    folder: Path | None,
    dry_run: bool,
    ending: bool,
    as_json: bool,
) -> None:
    """Serve a model on a cluster with vLLM, without a run.

    Submits one job for each replica, waits until all answer, prints where, and leaves them there: they end when nobody
    has asked them for a while, when their time is up, or with --stop. Run again, it finds those that answer and
    submits what is missing. Runs that are launched on a cluster need none of this: they start their servers themselves.

    \b
    Examples:
      sharp serve qwen3-32b --cluster mycluster --dry-run
      sharp serve qwen3-32b --cluster mycluster --replicas 2
      sharp serve qwen3-32b --stop
    """
    place = folder or Path("served") / Path(model).stem
    if ending:
        _stop(place, as_json)
        return
    if cluster is None:
        raise click.UsageError(
            "missing option '--cluster'; `sharp cluster list` lists the profiles there are"
        )
    from sharp.llm.cards import load_card
    from sharp.runs.cluster.profiles import load_cluster

    card, profile = load_card(model), load_cluster(cluster)
    if dry_run:
        from sharp.runs.cluster.serve_model import preview

        plan, script = preview(card, profile, place, replicas)
        _show_plan(plan, profile, script, as_json)
        return
    from sharp.runs.cluster import serve_model as serving

    again = f"sharp serve {shlex.quote(model)} --dir {shlex.quote(str(place))}"
    try:
        served = serving.serve(card, profile, place, replicas, lambda line: click.echo(line, err=True))
    except KeyboardInterrupt as error:
        error.add_note(f"Its jobs stay with Slurm. Wait for them again: {again} --cluster {cluster}")
        error.add_note(f"End them: {again} --stop")
        raise
    if served.shortfall:
        click.echo(f"warning: fewer servers than asked for: {served.shortfall}", err=True)
    if as_json:
        echo_json([_facts(service) for service in served.services])
    else:
        click.echo("\n\n".join(_format_server(service) for service in served.services))
        click.echo(f"\nEnd: {again} --stop")


def _stop(folder: Path, as_json: bool) -> None:
    from sharp.runs.cluster.serve_model import stop

    ended = stop(folder)
    if as_json:
        echo_json({"ended": ended})
    else:
        click.echo("All servers have ended." if ended else "Some servers still finish what they are at.")
    if not ended:
        raise click.exceptions.Exit(MACHINE_FAILED)


def _show_plan(plan: ServerPlan, cluster: ClusterProfile, script: str, as_json: bool) -> None:
    hours = cluster.roles.server.time / 60
    most = plan.replicas * plan.gpus * hours
    if as_json:
        echo_json({"jobs": plan.replicas, "gpus": plan.gpus, "gpu_hours": most, "script": script})
        return
    click.echo(
        f"{plan.replicas} times: sbatch --parsable < this script\n"
        f"Up to {most:g} GPU-hours: {plan.replicas} jobs with {plan.gpus} GPUs for {hours:g} h; a server ends earlier "
        f"where nobody asks it for {plan.timing.idle_timeout / 60:g} min.\n\n{script.rstrip()}"
    )


def _facts(service: ServerRegistration) -> dict[str, Any]:
    return {
        "model": service.model,
        "served_name": service.served_name,
        "url": service.url,
        "key_file": service.key_file,
        "job": service.job,
        "node": service.node,
        "ends": _moment(service.ends),
    }


def _format_server(service: ServerRegistration) -> str:
    url, key = urlsplit(service.url), shlex.quote(service.key_file)
    server = f"{{base_url: {service.url}, served_name: {service.served_name}, api_key_env: SHARP_KEY}}"
    return "\n".join(
        (
            f"{service.model} answers as {service.served_name}: job {service.job} on {service.node}, "
            f"until {_moment(service.ends)}",
            f"  url     {service.url}",
            f"  key     {service.key_file}",
            f'  try     curl -H "Authorization: Bearer $(cat {key})" {service.url}/models',
            f"  run     SHARP_KEY=$(cat {key}) sharp run PROBLEM --model {service.model} \\",
            f"            --set {shlex.quote(f'models.servers.{service.model}={server}')}",
            f"  tunnel  ssh -N -L 8000:{url.hostname}:{url.port} {_login(service)}    then http://127.0.0.1:8000/v1",
        )
    )


def _login(service: ServerRegistration) -> str:
    """Return the host to tunnel through: this one, or the node itself where the server is bound to that alone."""
    return service.node if urlsplit(service.url).hostname == "127.0.0.1" else socket.getfqdn()


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="minutes")
