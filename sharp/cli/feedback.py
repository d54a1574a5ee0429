"""`sharp feedback`: what programs can be judged by."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from sharp.cli.options import Verb, echo_json, json_option

if TYPE_CHECKING:
    from sharp.feedback import Measure


@click.command(cls=Verb)
@click.argument("name", required=False)
@click.option("--problem", metavar="PROBLEM", help="Only what is for this problem: its id or file.")
@json_option
def feedback(name: str | None, problem: str | None, as_json: bool) -> None:
    """List what programs can be judged by.

    With a name, all about that kind of feedback. Names are values of the option `feedback.kinds` of a run: `--set
    feedback.kinds=[residual,two_grid]`.

    \b
    Examples:
      sharp feedback
      sharp feedback --problem burgers
      sharp feedback two_grid --json
    """
    known = _known(problem)
    if name is not None and name not in known:
        from sharp.documents import hint

        raise click.UsageError(f"there is no feedback kind {name!r}{hint(name, known)}")
    chosen = list(known.values()) if name is None else [known[name]]
    if as_json:
        plain = [_plain(measure) for measure in chosen]
        echo_json(plain if name is None else plain[0])
    else:
        click.echo("\n".join(map(_row, chosen)) if name is None else _whole(chosen[0]))


def _known(problem: str | None) -> dict[str, Measure]:
    from sharp.feedback import ALL, measures_for
    from sharp.problems import load_problem

    return dict(ALL) if problem is None else measures_for(load_problem(problem))


def _plain(measure: Measure) -> dict[str, Any]:
    names = (field.name for field in fields(measure) if field.name != "function")
    return {name: getattr(measure, name) for name in names}


def _row(measure: Measure) -> str:
    return f"{measure.name:22} {measure.title:38} {_whom(measure)}"


def _whole(measure: Measure) -> str:
    needs = {
        "reference data": measure.needs_reference,
        "a second run on a coarser grid": measure.needs_coarse,
    }
    lines = {
        "for": _whom(measure),
        "looks at": measure.shape,
        "measured as": measure.normalisation,
        "needs": " and ".join(what for what, needed in needs.items() if needed)
        or "neither reference nor second run",
        "source": measure.source,
    }
    told = [f"{label:12} {text}" for label, text in lines.items()]
    return "\n".join([f"{measure.name}: {measure.title}", measure.description, "", *told])


def _whom(measure: Measure) -> str:
    return ", ".join(measure.families) or "every problem"
