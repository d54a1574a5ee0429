"""`sharp solve`: from a specification to a verified solution."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharp.cli.exits import NEEDS_ANSWER, NOT_VERIFIED
from sharp.cli.options import SharpCommand, clock, echo_blocks, echo_json, json_option

if TYPE_CHECKING:
    from sharp.problems.diagnosis import Diagnosis
    from sharp.solvers.driver import SolveOptions
    from sharp.solvers.export import Folder


@click.command(cls=SharpCommand)
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
@click.option(
    "--dir", "folder", type=click.Path(path_type=Path), help="Where all files go.  [default: solution-ID]"
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds for everything.  [default: limits.wall_s of the specification]",
)
@click.option("--no-cross-check", is_flag=True, help="Do without the comparison with a second method.")
@click.option(
    "--check-only",
    "only_check",
    is_flag=True,
    help="Check the problem and show it as understood; do not solve.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    help="For words: the model that plays all agents, or five: planner, parser, solver, orchestrator, "
    "programmer.  [default: rule-based]",
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
    "--error-rate",
    type=click.FloatRange(min=0, max=1, max_open=True),
    default=0.0,
    show_default=True,
    help="For words: rate at which the rule-based model errs.",
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
    no_cross_check: bool,
    only_check: bool,
    models: tuple[str, ...],
    policy: str,
    seed: int,
    error_rate: float,
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
      sharp solve rod.yaml --check-only
      sharp solve rod.yaml --accuracy 1e-9 --dir results/rod
      sharp solve rod.yaml --method fd --resolution 200 --no-cross-check --json
      sharp solve "u_t = 0.1 u_xx on (0, 1), u = 0 at both ends, u = sin(pi x) at first, until t = 1" --model qwen3-32b
      sharp solve --answers solution-text/questions.yaml --model qwen3-32b
    """
    from sharp.problems.loader import is_natural_language
    from sharp.solvers.driver import SolveOptions

    if (what is None) == (answers is None):
        raise click.UsageError(
            "expected a specification, the id of a problem or a problem in words; or --answers"
        )
    options = SolveOptions(method, accuracy, resolution, time_limit, cross_check=not no_cross_check)
    if what is not None and not is_natural_language(what):
        _solve_specified(what, options, folder, only_check, as_json)
        return
    if options != SolveOptions() or only_check:
        raise click.UsageError(
            "--method, --accuracy, --resolution, --time-limit, --no-cross-check and --check-only are for specifications"
        )
    from sharp.cli.solve_text import SolveTextOptions, solve_answered, solve_stated

    target = folder or (answers.parent if answers else Path("solution-text"))
    asked = SolveTextOptions(what or "", target, models, policy, seed, error_rate, as_json)
    if answers:
        solve_answered(answers, asked)
    else:
        solve_stated(asked)


def _solve_specified(
    what: str, options: SolveOptions, folder: Path | None, only_check: bool, as_json: bool
) -> None:
    from sharp.api import diagnosed
    from sharp.solvers.export import Folder, id_in

    diagnosis, text = diagnosed(what)
    target = folder or Path(f"solution-{id_in(text) or Path(what).stem}")
    if diagnosis.problem is not None and not as_json:
        _show(diagnosis)
    if diagnosis.verdict == "clarify":
        _ask(diagnosis, None if only_check else Folder(target, text), as_json)
    if only_check:
        _tell_checked(diagnosis, as_json)
        return
    _solve(diagnosis, text, options, target, as_json)


def _show(diagnosis: Diagnosis) -> None:
    from sharp.document import Facts, Paragraph
    from sharp.solvers.problem_summary import problem_summary

    assert diagnosis.problem is not None
    noted = (("note", line) for line in diagnosis.lines("warn"))
    echo_blocks(Paragraph(diagnosis.problem.title), Facts((*problem_summary(diagnosis.problem), *noted)))


def _ask(diagnosis: Diagnosis, target: Folder | None, as_json: bool) -> None:
    """Write the questions down, say them, and leave."""
    from sharp.solvers.export import export_questions

    written = str(export_questions(diagnosis, target)) if target else None
    asked = list(diagnosis.questions)
    if as_json:
        echo_json({"outcome": "needs_clarification", "questions": asked, "file": written})
    else:
        for line in (*diagnosis.lines("clarify"), *(f"Question: {question}" for question in asked)):
            click.echo(line)
        if written:
            click.echo(f"To be answered: {written}")
    raise click.exceptions.Exit(NEEDS_ANSWER)


def _tell_checked(diagnosis: Diagnosis, as_json: bool) -> None:
    from sharp.problems import render_latex
    from sharp.solvers.problem_summary import problem_summary

    problem = diagnosis.problem
    assert problem is not None
    if as_json:
        shown: dict[str, Any] = {"id": problem.id, "outcome": "well-posed", "latex": render_latex(problem)}
        echo_json(
            {
                **shown,
                "understood": [list(pair) for pair in problem_summary(problem)],
                "notes": diagnosis.lines("warn"),
            }
        )
    else:
        click.echo("The problem is well posed, as far as can be seen without solving it.")


def _solve(diagnosis: Diagnosis, text: str, options: SolveOptions, target: Path, as_json: bool) -> None:
    from sharp.api import solve_diagnosed
    from sharp.solvers.export import facts

    solution = solve_diagnosed(diagnosis, text, options, target, clock())
    report = target / "report.html"
    if as_json:
        echo_json({**facts(solution), "report": str(report)})
    else:
        click.echo(f"{solution.verdict.headline}\nReport: {report}")
    if not solution.verdict.verified:
        raise click.exceptions.Exit(NOT_VERIFIED)
