"""`sharp sandbox`: which ways to keep programs of a model apart work on this machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from sharp.cli.options import SharpCommand, echo_blocks, echo_json, json_option


@click.command(cls=SharpCommand)
@click.option(
    "--image", type=click.Path(path_type=Path, exists=True), help="Try the Apptainer tier with this image."
)
@json_option
def sandbox(image: Path | None, as_json: bool) -> None:
    """Say which ways to keep programs apart work on this machine.

    Every tier is tried with a small program; `auto` takes the first that works. Run it where the programs will run
    (srun sharp sandbox): a login node may differ from the nodes of a job.

    \b
    Examples:
      sharp sandbox
      sharp sandbox --json
    """
    from hpc.sandbox import SandboxPolicy, gpu_devices, open_interpreter, probe_tiers
    from sharp.document import Paragraph, Table

    tiers, devices = probe_tiers(image), [str(device) for device in gpu_devices()]
    with open_interpreter(SandboxPolicy(image=image)) as chosen:
        auto = {"tier": chosen.tier, "warm": chosen.warm, "note": chosen.note}
    if as_json:
        echo_json({"tiers": [asdict(tier) for tier in tiers], "auto": auto, "gpu_devices": devices})
        return
    rows = tuple((tier.tier, "works" if tier.usable else "-", tier.reason) for tier in tiers)
    speed = "with an interpreter kept warm" if auto["warm"] else "with a fresh interpreter for each program"
    echo_blocks(
        Table(("tier", "", "reason"), rows),
        Paragraph(f"\nauto takes {auto['tier']} here, {speed}. {auto['note']}"),
        Paragraph(f"Devices passed to programs: {', '.join(devices) or 'none'}."),
    )
