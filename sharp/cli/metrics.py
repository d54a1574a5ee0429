"""`sharp metrics`: what programs can be judged by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from sharp.cli.options import SharpCommand, echo_blocks, echo_json, json_option

if TYPE_CHECKING:
    from sharp.document import Block
    from sharp.reference.metrics import FeedbackMetric


@click.command(cls=SharpCommand)
@click.argument("name", required=False)
@click.option("--problem", metavar="PROBLEM", help="Only what is for this problem: its id or file.")
@json_option
def metrics(name: str | None, problem: str | None, as_json: bool) -> None:
    """List what programs can be judged by.

    With a name, all about that kind of feedback. Names are values of the option `feedback.metrics` of a run: `--set
    feedback.metrics=[residual,two_grid]`.

    \b
    Examples:
      sharp metrics
      sharp metrics --problem burgers
      sharp metrics two_grid --json
    """
    known = _known(problem)
    if name is not None and name not in known:
        from sharp.yaml_documents import hint

        raise click.UsageError(f"there is no feedback kind {name!r}{hint(name, known)}")
    chosen = list(known.values()) if name is None else [known[name]]
    if as_json:
        plain = [_plain(measure) for measure in chosen]
        echo_json(plain if name is None else plain[0])
    else:
        echo_blocks(*([_table(chosen)] if name is None else _whole(chosen[0])))


def _known(problem: str | None) -> dict[str, FeedbackMetric]:
    from sharp.problems import load_problem
    from sharp.reference.feedback import all_metrics, metrics_for

    return dict(all_metrics()) if problem is None else metrics_for(load_problem(problem))


def _plain(measure: FeedbackMetric) -> dict[str, Any]:
    names = (field.name for field in fields(measure) if field.name != "function")
    return {name: getattr(measure, name) for name in names}


def _table(measures: Iterable[FeedbackMetric]) -> Block:
    from sharp.document import Table

    return Table(
        ("measure", "title", "for"), tuple((each.name, each.title, _whom(each)) for each in measures)
    )


def _whole(measure: FeedbackMetric) -> Iterator[Block]:
    from sharp.document import Facts, Paragraph

    needs = {
        "reference data": measure.needs_data,
        "a second run on a coarser grid": measure.needs_coarse_run,
    }
    lines = {
        "for": _whom(measure),
        "looks at": measure.shape,
        "measured as": measure.normalisation,
        "needs": " and ".join(what for what, needed in needs.items() if needed)
        or "neither reference nor second run",
        "source": measure.source,
    }
    yield Paragraph(f"{measure.name}: {measure.title}\n{measure.description}\n")
    yield Facts(tuple(lines.items()))


def _whom(measure: FeedbackMetric) -> str:
    return ", ".join(measure.families) or "every problem"
