"""`sharp cache`: show and clear what earlier runs measured."""

from __future__ import annotations

import click

from sharp.cli.options import SharpGroup, echo_json, json_option

_DAY_S = 86400.0


@click.group(cls=SharpGroup)
def cache() -> None:
    """Show and clear what earlier runs measured.

    Finished evaluations are kept by content in $SHARP_CACHE and used by every run (`evaluation.cache`).

    \b
    Examples:
      sharp cache status
      sharp cache clear --older-than 90
    """


@cache.command()
@json_option
def status(as_json: bool) -> None:
    """Show where the entries are, how many, and how many have been of use.

    \b
    Examples:
      sharp cache status --json
    """
    from sharp.evaluation.cache import EvaluationCache, cache_home

    kept = EvaluationCache(cache_home())
    usage = kept.usage()
    if as_json:
        echo_json({"path": str(kept.root), **usage.to_json()})
        return
    click.echo(str(kept.root))
    click.echo(
        f"  entries     {usage.entries} ({usage.bytes / 1e6:.1f} MB), of which {usage.used_again} were used again"
    )
    if usage.last_used is not None:
        click.echo(f"  last used   {usage.last_used}")


@cache.command()
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="DAYS",
    help="Only entries that have not been used for so many days.  [default: all]",
)
@json_option
def clear(older_than: float, as_json: bool) -> None:
    """Remove entries. Runs keep their results; nothing else is touched.

    \b
    Examples:
      sharp cache clear --older-than 90
      sharp cache clear
    """
    from sharp.evaluation.cache import EvaluationCache, cache_home

    kept = EvaluationCache(cache_home())
    removed = kept.clear(older_than * _DAY_S)
    facts = {"path": str(kept.root), "removed": removed.entries, "bytes": removed.bytes}
    if as_json:
        echo_json(facts)
    else:
        click.echo(f"{kept.root}: removed {removed.entries} entries ({removed.bytes / 1e6:.1f} MB)")
