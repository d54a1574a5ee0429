"""`sharp problems`: list, show and check problem specifications."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharp.cli.exits import NEEDS_ANSWER, REFUSED
from sharp.cli.options import SharpGroup, echo_blocks, echo_json, json_option

if TYPE_CHECKING:
    from sharp.experiments.agent_benchmark.pde_agent_bench import RejectedCase
    from sharp.problems.cases import CatalogueEntry
    from sharp.problems.diagnosis import Diagnosis

_VERDICTS = {"reject": "wrong", "clarify": "open", "warn": "warning"}
_RESULTS = {"solve": "correct", "clarify": "needs an answer", "reject": "rejected"}


@click.group(cls=SharpGroup)
def problems() -> None:
    """List, show and check problem specifications.

    A problem is named by its id or by the path of a YAML file.

    \b
    Examples:
      sharp problems list
      sharp problems show burgers
      sharp problems check my-problem.yaml
      sharp problems import benchmark_v2.jsonl
    """


@problems.command("list")
@click.option(
    "--kind",
    type=click.Choice(["dataset", "case", "ill-posed"]),
    help="Only problems with data sets, only well-posed cases, or only those that are wrong on purpose.",
)
@click.option("--tag", help="Only problems with this tag or of this category, such as `units` or `heat`.")
@json_option
def list_(kind: str | None, tag: str | None, as_json: bool) -> None:
    """List all known problems (and your own in $SHARP_RESOURCES/data/problems).

    \b
    Examples:
      sharp problems list
      sharp problems list --kind dataset
      sharp problems list --tag heat --json
    """
    from sharp.document import Table
    from sharp.problems.cases import list_entries

    chosen = [
        entry
        for entry in list_entries()
        if kind in (None, entry.kind) and (tag is None or tag in (entry.category, *entry.tags))
    ]
    if as_json:
        echo_json([asdict(entry) for entry in chosen])
        return
    rows = tuple((e.id, e.kind, e.category, e.title, _parameters(e)) for e in chosen)
    echo_blocks(Table(("problem", "kind", "category", "title", "parameters"), rows))


def _parameters(entry: CatalogueEntry) -> str:
    """Return the values of the parameters of a problem with data, by which its data sets are told apart."""
    values = ", ".join(f"{name} = {value}" for name, value in entry.parameters.items())
    return values if entry.kind == "dataset" else ""


@problems.command()
@click.argument("problem")
@json_option
def show(problem: str, as_json: bool) -> None:
    """Show a problem as models see it: its description and the solver template.

    \b
    Examples:
      sharp problems show reaction-diffusion
      sharp problems show my-problem.yaml --json
    """
    from sharp.problems import load_problem, render_description, render_template

    loaded = load_problem(problem)
    description, template = render_description(loaded), render_template(loaded)
    if as_json:
        echo_json({"id": loaded.id, "hash": loaded.hash, "description": description, "template": template})
    else:
        click.echo(f"{description}\n\n{template}")


@problems.command()
@click.argument("problem")
@json_option
def check(problem: str, as_json: bool) -> None:
    """Check a specification, and whether its problem is well posed.

    Every finding names file, line and key. What is missing is asked for (exit code 9); what is wrong, contradictory
    or ill-posed is refused (exit code 2).

    \b
    Examples:
      sharp problems check my-problem.yaml
      sharp problems check my-problem.yaml --json
    """
    from sharp.problems.diagnosis import diagnose_file

    found = diagnose_file(problem)
    if as_json:
        echo_json(_facts(found))
    else:
        _show(found, problem)
    if found.verdict != "solve":
        raise click.exceptions.Exit(NEEDS_ANSWER if found.verdict == "clarify" else REFUSED)


@problems.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("pde-agent-bench"),
    show_default=True,
    help="Where to write the specifications.",
)
@json_option
def import_(file: Path, folder: Path, as_json: bool) -> None:
    """Import the scalar cases of pde-agent-bench as specifications.

    FILE is a case file of the benchmark, in JSON lines. Each case that can be said becomes a specification in the
    folder; the others are counted by reason, and with --json listed. A file that is there already and differs is
    kept. Where nothing could be imported the exit code is 2.

    \b
    Examples:
      sharp problems import benchmark_v2.jsonl
      sharp problems import benchmark_v2.jsonl --dir cases --json
    """
    from sharp.experiments.agent_benchmark.pde_agent_bench import RejectedCase, import_cases, save_case

    results = [(found.case, save_case(found, folder)) for found in import_cases(file)]
    written = [(case, path) for case, path in results if isinstance(path, Path)]
    refused = [result for _, result in results if isinstance(result, RejectedCase)]
    if as_json:
        imported = [{"case": case, "file": str(path)} for case, path in written]
        echo_json({"imported": imported, "rejected": [asdict(one) for one in refused]})
    else:
        _show_imports(len(written), refused, folder)
    if not written:
        raise click.exceptions.Exit(REFUSED)


def _show_imports(count: int, refused: Sequence[RejectedCase], folder: Path) -> None:
    from sharp.document import Paragraph, Table

    rows = []
    for reason, number in Counter(one.reason for one in refused).most_common():
        first = next(one for one in refused if one.reason == reason)
        rows.append((str(number), reason, f"{first.case}: {first.detail}" if first.detail else first.case))
    echo_blocks(
        Paragraph(f"{count} of {count + len(refused)} cases imported into {folder}"),
        *([Table(("cases", "left out because", "such as"), tuple(rows), ("cases",))] if rows else []),
    )


def _facts(found: Diagnosis) -> dict[str, Any]:
    problem = found.problem
    return {
        "id": problem.id if problem else None,
        "hash": problem.hash if problem else None,
        "ok": found.verdict == "solve",
        "verdict": found.verdict,
        "concerns": [
            {"place": place, **asdict(concern)}
            for place, concern in zip(found.places, found.concerns, strict=True)
        ],
    }


def _show(found: Diagnosis, name: str) -> None:
    for place, concern in zip(found.places, found.concerns, strict=True):
        click.echo(f"{place}: {_VERDICTS[concern.verdict]} ({concern.kind}): {concern.message}")
        if concern.question:
            click.echo(f"  {concern.question}")
    click.echo(f"{found.problem.id if found.problem else name}: {_RESULTS[found.verdict]}")
