"""`sharp compare`."""

from __future__ import annotations

from pathlib import Path

import click

from sharp.cli.options import SharpCommand, echo_blocks, echo_json, json_option


@click.command(cls=SharpCommand)
@click.argument(
    "paths", metavar="RUN|SWEEP…", nargs=-1, required=True, type=click.Path(path_type=Path, file_okay=False)
)
@click.option(
    "--gpu-price",
    type=click.FloatRange(min=0),
    metavar="DOLLARS",
    help="What an hour of the GPU that programs run on costs.  [default: not counted]",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for a page, a table and a figure.",
)
@json_option
def compare(paths: tuple[Path, ...], gpu_price: float | None, output: Path | None, as_json: bool) -> None:
    """Hold runs against each other: errors, evaluations, tokens, dollars.

    Runs may be of any method, finished or not; of a sweep, all its runs are taken. They are read from their records
    alone, and grouped by problem; the first run of a problem is the one that the others' break-even is against. Each is
    counted as if it stood alone, whatever other runs or the cache have given it. With --output, compare.html,
    compare.md, compare.csv, compare.parquet and cost.svg (error against total cost) are written.

    \b
    Examples:
      sharp compare runs/codepde runs/pde-sharp
      sharp compare runs/codepde runs/pde-sharp --gpu-price 2.5 --output comparison
      sharp compare sweeps/ablation --json
    """
    from sharp import api, experiments
    from sharp.document import Paragraph

    compared = api.compare(paths, gpu_price)
    files = None if output is None else experiments.publish_comparison(compared, output)
    if as_json:
        echo_json({**compared.to_json(), "files": {} if files is None else files.to_json()})
    else:
        written = [Paragraph("\n" + "\n".join(map(str, files.paths())))] if files else []
        echo_blocks(*experiments.comparison_overview(compared), *written)
