"""The files of a course for its user, and questions that are answered in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from hpc.files import make_directory, write_atomic
from sharp.agent.page import compose, headline
from sharp.agent.runs import Finished
from sharp.errors import ConfigurationError
from sharp.problems.wording import describe
from sharp.problems.writing import as_yaml
from sharp.report.html import render_html
from sharp.report.markdown import render_markdown
from sharp.solving.output import npz, output

QUESTIONS = "questions.yaml"
_ASKING = """\
# What has to be answered before this problem can be solved. Fill in the answers, and solve it again:
# the same command with --answers and the path of this file.
"""


def export_course(finished: Finished, folder: Path) -> Path:
    """Write the files of a course into a folder and return the path of the report as a page.

    report.html and report.md; answer.json with all figures; problem.yaml, the specification that was understood, where
    there is one; solution.npz where it was solved; questions.yaml where something has to be answered.
    """
    make_directory(folder)
    report = compose(finished)
    _write(folder / "report.md", render_markdown(report))
    _write(folder / "answer.json", json.dumps(facts(finished), indent=1, ensure_ascii=False) + "\n")
    if finished.problem is not None:
        _write(folder / "problem.yaml", as_yaml(finished.problem))
    solution = finished.solution.solution if finished.solution else None
    if finished.problem is not None and solution is not None:
        write_atomic(folder / "solution.npz", npz(output(finished.problem, solution), solution))
    if finished.course.questions:
        _write(folder / QUESTIONS, _asking(finished.settings.statement, finished.course.questions))
    _write(folder / "report.html", render_html(report))
    return folder / "report.html"


def facts(finished: Finished) -> dict[str, Any]:
    """Return the figures of a course in plain JSON."""
    course, solution = finished.course, finished.solution
    return {
        "ending": course.ending,
        "sentence": headline(finished),
        "questions": list(course.questions),
        "error": solution.error if solution else None,
        "method": solution.method if solution else None,
        "policy": finished.settings.policy,
        "models": dict(finished.settings.models),
        "calls": finished.calls,
        "prompt_tokens": finished.usage.prompt,
        "completion_tokens": finished.usage.completion,
        "tool_uses": len(course.memory.records),
        "steps": len(course.memory.plan.steps),
        "course": str(finished.folder),
    }


def with_answers(statement: str, answers: Mapping[str, str]) -> str:
    """Return a statement with what was answered later, as it is put to the agents."""
    told = "\n".join(f"- {question} {answer}" for question, answer in answers.items())
    return f"{statement.rstrip()}\n\nAsked and answered:\n{told}"


def read_answers(path: Path) -> tuple[str, dict[str, str]]:
    """Return the statement and the answers of a filled-in questions.yaml.

    Raises `ConfigurationError` naming the question that is not answered.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from None
    if not isinstance(document, Mapping) or not {"statement", "questions"} <= document.keys():
        raise ConfigurationError(f"{path}: expected a filled-in {QUESTIONS}, found {describe(document)}")
    entries = document["questions"]
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise ConfigurationError(
            f"{path}: questions: expected a list of question and answer, found {describe(entries)}"
        )
    answers = {str(entry.get("question")): str(entry.get("answer") or "").strip() for entry in entries}
    open_ones = [question for question, answer in answers.items() if not answer]
    if open_ones:
        raise ConfigurationError(
            f"{path}: expected an answer to each question; missing: {'; '.join(open_ones)}"
        )
    return str(document["statement"]), answers


def _asking(statement: str, questions: Sequence[str]) -> str:
    entries = [{"question": question, "answer": None} for question in questions]
    document = {"statement": statement, "questions": entries}
    return _ASKING + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)


def _write(path: Path, text: str) -> None:
    write_atomic(path, text.encode())
