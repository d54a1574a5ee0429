"""`sharp doctor`: check this machine and a cluster, and say what to do about what is wrong."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.exits import MACHINE_FAILED
from sharp.cli.options import SharpCommand, echo_json, json_option

if TYPE_CHECKING:
    from hpc.doctor import Finding
    from hpc.slurm import RoleName

_COLOURS = {"ok": "green", "note": "blue", "warning": "yellow", "failure": "red"}


@click.command(cls=SharpCommand)
@click.option(
    "--cluster", metavar="NAME", help="Check this cluster profile too, and by a job a compute node."
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(["controller", "server", "evaluate"]),
    help="Run the job in this role. May be repeated.  [default: evaluate]",
)
@click.option("--no-job", is_flag=True, help="Submit no job.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=".",
    show_default=True,
    help="Where runs are to lie.",
)
@click.option("--wait", default="10min", show_default=True, help="How long to wait for a job's report.")
@json_option
def doctor(
    cluster: str | None, roles: tuple[RoleName, ...], no_job: bool, folder: Path, wait: str, as_json: bool
) -> None:
    """Check this machine or a cluster, and say how to mend it.

    Looked at are commands, versions and limits of Slurm, the file system of runs, free space and quota, the
    confinement of programs, GPUs, weights of models, and clocks. With --cluster a short job does the same on a
    compute node. The exit code is 7 if anything does not work.

    \b
    Examples:
      sharp doctor
      sharp doctor --cluster mycluster --dir /scratch/me/runs
      sharp doctor --cluster mycluster --role server --wait 2h
    """
    from sharp.runs.cluster.doctor_checks import checkup, seconds

    findings: list[Finding] = []
    for finding in checkup(cluster, roles or ("evaluate",), folder.resolve(), seconds(wait), job=not no_job):
        findings.append(finding)
        if not as_json:
            _show(finding)
    failures = [finding for finding in findings if finding.level == "failure"]
    if as_json:
        echo_json({"ok": not failures, "findings": [asdict(finding) for finding in findings]})
    if failures:
        raise SystemExit(MACHINE_FAILED)


def _show(finding: Finding) -> None:
    level = click.style(f"{finding.level:8}", fg=_COLOURS[finding.level])
    place = "" if finding.where == "here" else f" [{finding.where}]"
    click.echo(f"{level} {finding.check}{place}: {finding.found}")
    if finding.remedy:
        click.echo(f"         {finding.remedy}")
