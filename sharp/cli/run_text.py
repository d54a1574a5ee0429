"""A problem in words, for `sharp run`: its translation, its questions, and whether it is the problem that was meant."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.exits import NEEDS_ANSWER
from sharp.cli.options import clock

if TYPE_CHECKING:
    from sharp.agent.translation import Answering, Translation
    from sharp.config import RunConfig


@dataclass(frozen=True)
class RunTextOptions:
    """What was given: words, or a filled-in file of questions about them.

    `confirm` says that somebody at a terminal is asked whether they were understood.
    """

    statement: str
    answers: Path | None
    confirm: bool
    as_json: bool

    @property
    def dialogue(self) -> bool:
        """Whether there is somebody to ask."""
        return at_terminal() and not self.as_json


def at_terminal() -> bool:
    """Return whether somebody can answer."""
    return sys.stdin.isatty()


def place_of(answers: Path | None) -> Path:
    """Return where the run of some words goes that nobody gave a place: where its file of questions lies already."""
    from sharp.api import TRANSLATION, fresh_path

    if answers is not None and answers.parent.name == TRANSLATION:
        return answers.parent.parent
    return fresh_path("text")


def specified(words: RunTextOptions, run: Path, configured: Callable[..., RunConfig]) -> Path:
    """Return the file of the specification that the words mean, in the folder of a run that is to be.

    `configured` gives the configuration of a specification's file; the model of `models.analyst` translates. Leaves
    with the code for it where something has to be answered, where the problem is refused, and where it was not
    understood.
    """
    from sharp.agent.export import PROBLEM
    from sharp.api import TRANSLATION, translate_words
    from sharp.cli.solve_text import print_result
    from sharp.runs.creation import check_unused

    config = configured(str(run / TRANSLATION / PROBLEM), foreseen=True)
    check_unused(run)
    with _kept(run):
        found = translate_words(words.answers or words.statement, run, config, _answers(words), clock())
    if not found.understood:
        print_result(
            found.finished,
            found.report,
            f"sharp run --run-dir {shlex.quote(str(run))}",
            as_json=words.as_json,
        )
    if not words.as_json:
        _show(found)
    if words.confirm and words.dialogue and not click.confirm("Is this the problem that you mean?"):
        click.echo(f"Say it in other words, or change {found.problem} and run that.")
        raise click.exceptions.Exit(NEEDS_ANSWER)
    return found.problem


def _answers(words: RunTextOptions) -> Answering:
    def answer(questions: tuple[str, ...]) -> dict[str, str]:
        return {question: click.prompt(question) for question in questions} if words.dialogue else {}

    return answer


def _show(found: Translation) -> None:
    from sharp.solvers.problem_summary import problem_summary

    problem = found.finished.problem
    assert problem is not None, "what was understood is a problem"
    click.echo(problem.title)
    for name, value in problem_summary(problem):
        click.echo(f"  {name:22} {value}")
    click.echo(f"Specification: {found.problem}")


@contextmanager
def _kept(run: Path) -> Iterator[None]:
    """Add to an error that ends a translation how to go on with it."""
    try:
        yield
    except BaseException as error:
        error.add_note(
            f"what was answered is kept; the same words go on with: --run-dir {shlex.quote(str(run))}"
        )
        raise
