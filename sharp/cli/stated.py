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
    from sharp.agent.prog_act import Course
    from sharp.agent.runs import Finished
    from sharp.agent.settings import Settings

# A conversation with somebody at a terminal goes on for so many questions at most.
MOST_ROUNDS = 5


@dataclass(frozen=True)
class Asked:
    """What was asked on the command line of a problem in words."""

    statement: str
    folder: Path
    models: tuple[str, ...]
    policy: str
    seed: int
    mistakes: float
    as_json: bool


def solve_stated(asked: Asked) -> None:
    """Carry the statement to a verified solution, ask what is open, write the files, and leave with the right code."""
    from sharp.agent.export import export_course

    finished = _course(asked, _settings(asked))
    for _ in range(MOST_ROUNDS):
        if not finished.course.questions or asked.as_json or not sys.stdin.isatty():
            break
        answers = {question: click.prompt(question) for question in finished.course.questions}
        finished = _course(asked, _answered(finished.settings, answers))
    tell(finished, export_course(finished, asked.folder), "sharp solve", as_json=asked.as_json)


def solve_answered(path: Path, asked: Asked) -> None:
    """Go on from a filled-in file of questions."""
    from sharp.agent.export import read_answers, with_answers

    statement, answers = read_answers(path)
    solve_stated(replace(asked, statement=with_answers(statement, answers)))


def _settings(asked: Asked) -> Settings:
    """One model plays all roles; with more, they are planner, parser, solver and orchestrator in this order."""
    from sharp.agent.settings import ROLES, Settings
    from sharp.errors import ConfigurationError

    names = asked.models or ("playbook",)
    if len(names) not in (1, len(ROLES)):
        raise ConfigurationError(
            f"--model: expected one model, or one for each of {', '.join(ROLES)}; found {len(names)}"
        )
    models = dict(zip(ROLES, names if len(names) > 1 else names * len(ROLES), strict=True))
    return Settings(
        asked.statement,
        models,
        asked.policy,  # type: ignore[arg-type]
        asked.seed,
        asked.mistakes,
        synthesis=True,
    )


def _answered(settings: Settings, answers: dict[str, str]) -> Settings:
    from sharp.agent.export import with_answers

    return replace(settings, statement=with_answers(settings.statement, answers))


def _course(asked: Asked, settings: Settings) -> Finished:
    from sharp.agent.runs import run_course

    return run_course(asked.folder, settings, clock())


def tell(finished: Finished, report: Path, command: str, *, as_json: bool) -> None:
    """Say how a course ended, and leave with the right code; `command` takes the answers to its questions."""
    from sharp.agent.export import QUESTIONS, facts
    from sharp.agent.page import headline

    questions = report.parent / QUESTIONS
    if as_json:
        shown: dict[str, Any] = {**facts(finished), "report": str(report)}
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


def _code(course: Course) -> int:
    if course.exhausted:
        return BUDGET_USED
    codes = {"unsolved": NOT_VERIFIED, "asks": NEEDS_ANSWER, "refused": REFUSED}
    return codes.get(course.ending, 0)
