"""`sharp problems`: list, show and check problem specifications."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharp.cli.exits import NEEDS_ANSWER, REFUSED
from sharp.cli.options import Verbs, echo_json, json_option

if TYPE_CHECKING:
    from sharp.agentbench.pde_agent_bench import Refused
    from sharp.problems.diagnosis import Diagnosis

_VERDICTS = {"refuse": "wrong", "ask": "open", "warn": "warning"}
_RESULTS = {"solve": "correct", "ask": "needs an answer", "refuse": "refused"}


@click.group(cls=Verbs)
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
@json_option
def list_(as_json: bool) -> None:
    """List the shipped problems (and your own in $SHARP_RESOURCES/data/problems).

    \b
    Examples:
      sharp problems list
      sharp problems list --json
    """
    from sharp.problems import list_problems, load_problem

    loaded = [load_problem(path) for path in list_problems().values()]
    if as_json:
        echo_json([{"id": p.id, "title": p.title, "parameters": dict(p.parameters)} for p in loaded])
        return
    for problem in loaded:
        values = ", ".join(f"{name} = {value:g}" for name, value in problem.parameters.items())
        click.echo(f"{problem.id:20} {problem.title} ({values})")


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
        raise click.exceptions.Exit(NEEDS_ANSWER if found.verdict == "ask" else REFUSED)


@problems.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--folder",
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
      sharp problems import benchmark_v2.jsonl --folder cases --json
    """
    from sharp.agentbench.pde_agent_bench import Refused, import_cases, save

    results = [(found.case, save(found, folder)) for found in import_cases(file)]
    written = [(case, path) for case, path in results if isinstance(path, Path)]
    refused = [result for _, result in results if isinstance(result, Refused)]
    if as_json:
        imported = [{"case": case, "file": str(path)} for case, path in written]
        echo_json({"imported": imported, "refused": [asdict(one) for one in refused]})
    else:
        _show_imports(len(written), refused, folder)
    if not written:
        raise click.exceptions.Exit(REFUSED)


def _show_imports(count: int, refused: Sequence[Refused], folder: Path) -> None:
    click.echo(f"{count} of {count + len(refused)} cases imported into {folder}")
    for reason, number in Counter(one.reason for one in refused).most_common():
        first = next(one for one in refused if one.reason == reason)
        example = f"{first.case}: {first.detail}" if first.detail else first.case
        click.echo(f"{number:6}  {reason} (such as {example})")


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
