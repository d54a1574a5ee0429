"""`sharp solve`: from a specification to a verified solution."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharp.cli.exits import NEEDS_ANSWER, NOT_VERIFIED
from sharp.cli.options import Verb, clock, echo_json, json_option

if TYPE_CHECKING:
    from sharp.problems.diagnosis import Diagnosis
    from sharp.solving.answer import Options
    from sharp.solving.export import Folder


@click.command(cls=Verb)
@click.argument("what", metavar='[SPEC.yaml|PROBLEM|"WORDS"]', required=False)
@click.option(
    "--method", help="Method to solve by; the others only check it.  [default: chosen by the problem]"
)
@click.option(
    "--accuracy",
    type=click.FloatRange(min=0, max=1, min_open=True, max_open=True),
    help="Relative error to aim at.  [default: the specification's]",
)
@click.option(
    "--resolution",
    type=click.IntRange(min=8),
    help="Nodes, cells or modes along an axis; compared with two thirds of it.  [default: raised until accurate]",
)
@click.option("--folder", type=click.Path(path_type=Path), help="Where all files go.  [default: solution-ID]")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds for everything.  [default: limits.wall_s of the specification]",
)
@click.option("--no-check", is_flag=True, help="Do without the comparison with a second method.")
@click.option(
    "--check", "only_check", is_flag=True, help="Check the problem and show it as understood; do not solve."
)
@click.option(
    "--model",
    "models",
    multiple=True,
    help="For words: the model that plays all agents, or five: planner, parser, solver, orchestrator, "
    "programmer.  [default: playbook]",
)
@click.option(
    "--policy",
    default="prog-act",
    show_default=True,
    help="For words: how the team goes about it (docs/agent.md).",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="For words: seed of the models' sampling."
)
@click.option(
    "--mistakes",
    type=click.FloatRange(min=0, max=1, max_open=True),
    default=0.0,
    show_default=True,
    help="For words: rate at which the playbook errs.",
)
@click.option(
    "--answers",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="For words: a filled-in questions.yaml, in place of the words.",
)
@json_option
def solve(
    what: str | None,
    method: str | None,
    accuracy: float | None,
    resolution: int | None,
    folder: Path | None,
    time_limit: float | None,
    no_check: bool,
    only_check: bool,
    models: tuple[str, ...],
    policy: str,
    seed: int,
    mistakes: float,
    answers: Path | None,
    as_json: bool,
) -> None:
    """Solve a problem to a stated accuracy, and verify the solution.

    The argument is a specification (docs/problems.md), the id of a shipped problem or case, or a problem in words.
    With a specification nothing is asked of a language model. The problem is checked first: what has no solution is
    refused, what is missing is asked for in FOLDER/questions.yaml. Files, methods and the limits of all checks are
    described in docs/solving.md. Words are worked on by a team of agents with typed tools (docs/agent.md); the same
    command again goes on where it was.

    \b
    Examples:
      sharp solve rod.yaml
      sharp solve rod.yaml --check
      sharp solve rod.yaml --accuracy 1e-9 --folder results/rod
      sharp solve rod.yaml --method fd --resolution 200 --no-check --json
      sharp solve "u_t = 0.1 u_xx on (0, 1), u = 0 at both ends, u = sin(pi x) at first, until t = 1" --model qwen3-32b
      sharp solve --answers solution-stated/questions.yaml --model qwen3-32b
    """
    from sharp.cli.specified import in_words
    from sharp.solving.answer import Options

    if (what is None) == (answers is None):
        raise click.UsageError(
            "expected a specification, the id of a problem or a problem in words; or --answers"
        )
    options = Options(method, accuracy, resolution, time_limit, cross_check=not no_check)
    if what is not None and not in_words(what):
        _solve_specified(what, options, folder, only_check, as_json)
        return
    if options != Options() or only_check:
        raise click.UsageError(
            "--method, --accuracy, --resolution, --time-limit, --no-check and --check are for specifications"
        )
    from sharp.cli.stated import Asked, solve_answered, solve_stated

    target = folder or (answers.parent if answers else Path("solution-stated"))
    asked = Asked(what or "", target, models, policy, seed, mistakes, as_json)
    if answers:
        solve_answered(answers, asked)
    else:
        solve_stated(asked)


def _solve_specified(
    what: str, options: Options, folder: Path | None, only_check: bool, as_json: bool
) -> None:
    from sharp.cli.specified import find_specification
    from sharp.solving.export import Folder, id_in

    path, text = find_specification(what)
    diagnosis = _checked(text, str(path))
    target = Folder(folder or Path(f"solution-{id_in(text) or path.stem}"), text)
    if diagnosis.problem is not None and not as_json:
        _show(diagnosis)
    if diagnosis.verdict == "ask":
        _ask(diagnosis, None if only_check else target, as_json)
    if only_check:
        _tell_checked(diagnosis, as_json)
        return
    _solve(diagnosis, options, target, as_json)


def _checked(text: str, name: str) -> Diagnosis:
    """Return the diagnosis of a specification; raises `SpecificationError` where it is refused."""
    from sharp.errors import SpecificationError
    from sharp.problems.diagnosis import diagnose

    diagnosis = diagnose(text, name)
    if diagnosis.verdict == "refuse":
        raise SpecificationError("\n".join(_lines(diagnosis, "refuse")))
    return diagnosis


def _lines(diagnosis: Diagnosis, verdict: str) -> list[str]:
    return [
        f"{place}: {concern.message}"
        for concern, place in zip(diagnosis.concerns, diagnosis.places, strict=True)
        if concern.verdict == verdict
    ]


def _show(diagnosis: Diagnosis) -> None:
    from sharp.solving.understood import understood

    assert diagnosis.problem is not None
    click.echo(diagnosis.problem.title)
    for name, value in understood(diagnosis.problem):
        click.echo(f"  {name:22} {value}")
    for line in _lines(diagnosis, "warn"):
        click.echo(f"  {'note':22} {line}")


def _ask(diagnosis: Diagnosis, target: Folder | None, as_json: bool) -> None:
    """Write the questions down, say them, and leave."""
    from sharp.solving.export import export_questions

    written = str(export_questions(diagnosis, target)) if target else None
    asked = list(diagnosis.questions)
    if as_json:
        echo_json({"outcome": "asked", "questions": asked, "file": written})
    else:
        for line in (*_lines(diagnosis, "ask"), *(f"Question: {question}" for question in asked)):
            click.echo(line)
        if written:
            click.echo(f"To be answered: {written}")
    raise click.exceptions.Exit(NEEDS_ANSWER)


def _tell_checked(diagnosis: Diagnosis, as_json: bool) -> None:
    from sharp.problems import render_latex
    from sharp.solving.understood import understood

    problem = diagnosis.problem
    assert problem is not None
    if as_json:
        shown: dict[str, Any] = {"id": problem.id, "outcome": "well-posed", "latex": render_latex(problem)}
        echo_json(
            {
                **shown,
                "understood": [list(pair) for pair in understood(problem)],
                "notes": _lines(diagnosis, "warn"),
            }
        )
    else:
        click.echo("The problem is well posed, as far as can be seen without solving it.")


def _solve(diagnosis: Diagnosis, options: Any, target: Folder, as_json: bool) -> None:
    from sharp.solving.answer import answer
    from sharp.solving.export import export, facts
    from sharp.solving.page import headline

    problem = diagnosis.problem
    assert problem is not None
    target.check()

    found = answer(problem, options, clock(), known=diagnosis.concerns)
    report = export(found, target)
    if as_json:
        echo_json({**facts(found), "report": str(report)})
    else:
        click.echo(f"{headline(found)}\nReport: {report}")
    if found.outcome != "verified":
        raise click.exceptions.Exit(NOT_VERIFIED)
