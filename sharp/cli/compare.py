"""`sharp compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.options import Verb, echo_json, json_option

if TYPE_CHECKING:
    from sharp.comparison.publish import ComparisonFiles


@click.command(cls=Verb)
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
    compare.md, compare.csv and cost.svg (error against total cost) are written.

    \b
    Examples:
      sharp compare runs/codepde runs/pde-sharp
      sharp compare runs/codepde runs/pde-sharp --gpu-price 2.5 --output comparison
      sharp compare sweeps/ablation --json
    """
    from sharp.comparison.collect import collect
    from sharp.comparison.publish import publish
    from sharp.comparison.words import as_json as plain
    from sharp.comparison.words import in_words

    entries = collect(paths, gpu_price)
    files = None if output is None else publish(entries, output)
    if as_json:
        echo_json({**plain(entries), "files": _names(files)})
    else:
        click.echo("\n".join([in_words(entries), *filter(None, _names(files).values())]))


def _names(files: ComparisonFiles | None) -> dict[str, str | None]:
    if files is None:
        return {}
    return {name: None if file is None else str(file) for name, file in vars(files).items()}
