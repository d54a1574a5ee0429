"""The Translator of PDE-SHARP: what is stated in words becomes a specification (arXiv 2511.00183, section 3).

The agents that set problems up do it, with the Parser's tools alone, so that nothing can be solved here. What is
missing or contradictory is to be asked for and not invented; questions are answered at most `ROUNDS` times.

    FOLDER/session-…/                    the journals of the sessions, one for each round of answers
    FOLDER/problem.yaml                 the specification, where the words were understood
    FOLDER/questions.yaml               what was asked last, with the answers that were given
    FOLDER/report.html, solve_result.json     how it went, and what it took
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hpc.files import make_directory
from sharp.agent.export import (
    PROBLEM,
    QUESTIONS,
    export_course,
    read_answers,
    read_questions,
    with_answers,
    without_answers,
    write_questions,
)
from sharp.agent.sessions import MessageCallback, SessionResult, run_session
from sharp.agent.settings import ROLES, AgentConfig
from sharp.llm import ModelCard

ROUNDS = 3

Answering = Callable[[tuple[str, ...]], Mapping[str, str]]
"""Answers questions; nothing where there is nobody to ask."""


@dataclass(frozen=True)
class Translation:
    """How the last session on the words ended, with its report in the folder of all of them."""

    finished: SessionResult
    report: Path

    @property
    def understood(self) -> bool:
        """Whether `problem` holds the specification of what was said."""
        return self.finished.course.ending == "specified"

    @property
    def problem(self) -> Path:
        """The file of the specification."""
        return self.report.parent / PROBLEM


def translate(
    statement: str,
    model: str,
    card: ModelCard,
    folder: Path,
    answer: Answering,
    say: MessageCallback = lambda _: None,
) -> Translation:
    """Let a model translate a statement, or go on where this was left, with the answers in the folder.

    Raises what `run_session` raises, and `ConfigurationError` where the answers cannot be read or some are missing.
    """
    begun = _begun(statement, folder / QUESTIONS)
    settings = AgentConfig(begun, dict.fromkeys(ROLES, model), policy="translation")
    finished = run_session(folder, settings, say, {model: card})
    for _ in range(ROUNDS):
        answers = answer(finished.course.questions) if finished.course.questions else {}
        if not answers:
            break
        write_questions(folder, settings.statement, answers)
        settings = replace(settings, statement=with_answers(settings.statement, answers))
        finished = run_session(folder, settings, say, {model: card})
    return Translation(finished, export_course(finished, folder))


def load_answers(path: Path, folder: Path) -> str:
    """Put a filled-in questions.yaml into the folder of a translation, and return the statement that it is about.

    Raises `ConfigurationError` where it cannot be read, or a question is not answered.
    """
    statement, answers = read_answers(path)
    make_directory(folder)
    write_questions(folder, statement, answers)
    return without_answers(statement)


def _begun(statement: str, questions: Path) -> str:
    """Return the statement with what was answered of it so far."""
    if not questions.exists():
        return statement
    stated, answers = read_questions(questions)
    if without_answers(stated) != statement.rstrip():
        return statement
    return with_answers(*read_answers(questions)) if any(answers.values()) else stated
