"""`sharp cache`, `sharp sandbox` and `sharp doctor`: what there is on this machine, and what works."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.exits import MACHINE_FAILED
from sharp.cli.options import ROLES, SharpCommand, SharpGroup, echo_json, fitting, json_option, repeated, show
from sharp.cli.progress import work_log

if TYPE_CHECKING:
    from hpc.doctor import Finding
    from hpc.slurm import RoleName
    from sharp.document import Block

_DAY_S = 86400.0
_COLOURS = {"ok": "green", "note": "blue", "warning": "yellow", "failure": "red"}


@click.group(cls=SharpGroup)
def cache() -> None:
    """Show and clear the evaluation cache.

    Finished evaluations are stored in $SHARP_CACHE and used by every run (`evaluation.cache`).

    \b
    Examples:
      sharp cache status
      sharp cache clear --older-than 90
    """


@cache.command()
@json_option
def status(as_json: bool) -> None:
    """Show location, number and use of the entries.

    \b
    Examples:
      sharp cache status --json
    """
    from sharp.evaluation import EvaluationCache, cache_home

    kept = EvaluationCache(cache_home())
    with work_log(f"reading the entries of {kept.root}"):
        usage = kept.usage()
    size = f"{usage.entries} ({usage.bytes / 1e6:.1f} MB)"
    lines = [str(kept.root), f"  entries     {size}, of which {usage.used_again} were used again"]
    if usage.last_used is not None:
        lines.append(f"  last used   {usage.last_used}")
    show(as_json, {"path": str(kept.root), **usage.to_json()}, "\n".join(lines))


@cache.command()
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="DAYS",
    help="Only entries unused for this many days.  [default: all]",
)
@json_option
def clear(older_than: float, as_json: bool) -> None:
    """Remove entries. Runs keep their results.

    \b
    Examples:
      sharp cache clear --older-than 90
      sharp cache clear
    """
    from sharp.evaluation import EvaluationCache, cache_home

    kept = EvaluationCache(cache_home())
    with work_log(f"removing entries of {kept.root}"):
        removed = kept.clear(older_than * _DAY_S)
    facts = {"path": str(kept.root), "removed": removed.entries, "bytes": removed.bytes}
    show(as_json, facts, f"{kept.root}: removed {removed.entries} entries ({removed.bytes / 1e6:.1f} MB)")


@click.command(cls=SharpCommand)
@click.option(
    "--image", type=click.Path(path_type=Path, exists=True), help="Try the apptainer tier with this image."
)
@json_option
def sandbox(image: Path | None, as_json: bool) -> None:
    """Show which sandbox tiers work on this machine.

    Run it where the programs will run (srun sharp sandbox); `auto` uses the first that works.

    \b
    Examples:
      sharp sandbox
      sharp sandbox --json
    """
    from hpc.sandbox import SandboxPolicy, gpu_devices, limit_keepers, open_interpreter, probe_tiers
    from sharp.document import Paragraph, Table

    with work_log("trying each tier"):
        tiers, devices = probe_tiers(image), [str(device) for device in gpu_devices()]
        with open_interpreter(SandboxPolicy(image=image)) as chosen:
            auto = {"tier": chosen.tier, "warm": chosen.warm, "note": chosen.note}
        limits = limit_keepers()
    rows = tuple((tier.tier, "works" if tier.usable else "-", tier.reason) for tier in tiers)
    speed = "with an interpreter kept warm" if auto["warm"] else "with a fresh interpreter for each program"
    blocks: list[Block] = [
        Table(("tier", "", "reason"), rows),
        Paragraph(f"\nauto takes {auto['tier']} here, {speed}. {auto['note']}"),
        Table(("limit", "kept by"), tuple(limits.items())),
        Paragraph(f"Devices passed to programs: {', '.join(devices) or 'none'}."),
    ]
    facts = {
        "tiers": [asdict(tier) for tier in tiers],
        "auto": auto,
        "limits": limits,
        "gpu_devices": devices,
    }
    show(as_json, facts, blocks)


def _finding_text(finding: Finding) -> str:
    place = "" if finding.where == "here" else f" [{finding.where}]"
    remedy = f"\n         {finding.remedy}" if finding.remedy else ""
    text = fitting(f"{finding.level:8} {finding.check}{place}: {finding.found}{remedy}", sys.stdout)
    # Styled last: colours take no room.
    return click.style(text[:8], fg=_COLOURS[finding.level]) + text[8:]


@click.command(cls=SharpCommand)
@click.option("--cluster", metavar="NAME", help="Also check this profile, and a compute node by a job.")
@repeated("--role", "roles", "Role of the job.", type=ROLES, default="evaluate")
@click.option("--no-job", is_flag=True, help="Submit no job.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    show_default=True,
    help="Directory for runs; made if missing.",
)
@click.option("--wait", default="10min", show_default=True, help="Time to wait for the job.")
@json_option
def doctor(
    cluster: str | None, roles: tuple[RoleName, ...], no_job: bool, folder: Path, wait: str, as_json: bool
) -> None:
    """Check this machine or a cluster, and list fixes.

    Checks Slurm, file system, free space, sandbox, GPUs, model weights and clocks; with --cluster also a compute node
    by a short job. Exit code 7: something does not work.

    \b
    Examples:
      sharp doctor
      sharp doctor --cluster mycluster --dir /scratch/me/runs
      sharp doctor --cluster mycluster --role server --wait 2h
    """
    from hpc.files import make_directory
    from sharp.runs import checkup, seconds

    make_directory(folder)
    findings: list[Finding] = []
    with work_log("checking this machine") as log:
        where, wait_s = folder.resolve(), seconds(wait)
        for finding in checkup(
            cluster, roles or ("evaluate",), where, wait_s, job=not no_job, tell=log.begin
        ):
            findings.append(finding)
            log.begin(f"{finding.check}: checked; the next check is at work")
            if not as_json:
                log.echo(_finding_text(finding))
    failed = any(finding.level == "failure" for finding in findings)
    if as_json:
        echo_json({"ok": not failed, "findings": [asdict(finding) for finding in findings]})
    if failed:
        raise click.exceptions.Exit(MACHINE_FAILED)
