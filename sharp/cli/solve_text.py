"""A problem in words, for `sharp solve`: the team's course, its questions, its files."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharp.cli.exits import BUDGET_USED, NEEDS_ANSWER, NOT_VERIFIED, REFUSED
from sharp.cli.options import clock, echo_json

if TYPE_CHECKING:
    from sharp.agent.prog_act import SessionOutcome
    from sharp.agent.sessions import SessionResult
    from sharp.agent.settings import AgentConfig

# A conversation with somebody at a terminal goes on for so many questions at most.
MOST_ROUNDS = 5


@dataclass(frozen=True)
class SolveTextOptions:
    """What was asked on the command line of a problem in words."""

    statement: str
    folder: Path
    models: tuple[str, ...]
    policy: str
    seed: int
    error_rate: float
    as_json: bool


def solve_stated(asked: SolveTextOptions) -> None:
    """Carry the statement to a verified solution, ask what is open, write the files, and leave with the right code."""
    from sharp.agent.export import with_answers
    from sharp.api import run_agents

    config = _settings(asked)
    finished = run_agents(config, asked.folder, clock())
    for _ in range(MOST_ROUNDS):
        if not finished.course.questions or asked.as_json or not sys.stdin.isatty():
            break
        answers = {question: click.prompt(question) for question in finished.course.questions}
        config = replace(config, statement=with_answers(config.statement, answers))
        finished = run_agents(config, asked.folder, clock())
    print_result(finished, asked.folder / "report.html", "sharp solve", as_json=asked.as_json)


def solve_answered(path: Path, asked: SolveTextOptions) -> None:
    """Go on from a filled-in file of questions."""
    from sharp.agent.export import read_answers, with_answers

    statement, answers = read_answers(path)
    solve_stated(replace(asked, statement=with_answers(statement, answers)))


def _settings(asked: SolveTextOptions) -> AgentConfig:
    from sharp.agent.settings import AgentConfig, models_by_role

    return AgentConfig(
        asked.statement,
        models_by_role(asked.models or ("rule-based",)),
        asked.policy,  # type: ignore[arg-type]
        asked.seed,
        asked.error_rate,
        synthesis=True,
    )


def print_result(finished: SessionResult, report: Path, command: str, *, as_json: bool) -> None:
    """Say how a course ended, and leave with the right code; `command` takes the answers to its questions."""
    from sharp.agent.export import QUESTIONS, summary_dict
    from sharp.agent.session_report import headline

    questions = report.parent / QUESTIONS
    if as_json:
        shown: dict[str, Any] = {**summary_dict(finished), "report": str(report)}
        echo_json(shown)
    else:
        click.echo(headline(finished))
        for question in finished.course.questions:
            click.echo(f"Question: {question}")
        if finished.course.questions:
            click.echo(
                f"To be answered: {questions}; then: {command} --answers {shlex.quote(str(questions))}"
            )
        click.echo(f"Report: {report}")
    code = _code(finished.course)
    if code:
        raise click.exceptions.Exit(code)


def _code(course: SessionOutcome) -> int:
    if course.exhausted:
        return BUDGET_USED
    codes = {"unsolved": NOT_VERIFIED, "needs_clarification": NEEDS_ANSWER, "rejected": REFUSED}
    return codes.get(course.ending, 0)
