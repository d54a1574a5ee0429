"""The files of a session for its user, and questions that are answered in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from hpc.files import make_directory, write_atomic
from sharp.agent.session_report import build_report, headline
from sharp.agent.sessions import SessionResult
from sharp.document import render_html, render_markdown
from sharp.error_messages import describe
from sharp.errors import ConfigurationError
from sharp.problems import to_yaml
from sharp.solvers import npz
from sharp.solvers.output import output

PROBLEM = "problem.yaml"
QUESTIONS = "questions.yaml"
_ANSWERED = "\n\nAsked and answered:\n"
_ASKING = """\
# What has to be answered before this problem can be solved. Fill in the answers, and solve it again:
# the same command with --answers and the path of this file.
"""


def export_course(finished: SessionResult, folder: Path) -> Path:
    """Write the files of a session into a folder and return the path of the report as a page.

    report.html and report.md; solve_result.json with all figures; problem.yaml, the specification that was understood,
    where there is one; solution.npz where it was solved; questions.yaml where something has to be answered.
    """
    make_directory(folder)
    report = build_report(finished)
    _write(folder / "report.md", render_markdown(report))
    _write(
        folder / "solve_result.json", json.dumps(summary_dict(finished), indent=1, ensure_ascii=False) + "\n"
    )
    if finished.problem is not None:
        _write(folder / PROBLEM, to_yaml(finished.problem))
    solution = finished.solution.solution if finished.solution else None
    if finished.problem is not None and solution is not None:
        found = output(finished.problem, solution)
        write_atomic(folder / "solution.npz", npz(found, solution, headline(finished)))
    if finished.course.questions:
        write_questions(folder, finished.settings.statement, dict.fromkeys(finished.course.questions))
    _write(folder / "report.html", render_html(report))
    return folder / "report.html"


def summary_dict(finished: SessionResult) -> dict[str, Any]:
    """Return the figures of a session in plain JSON."""
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
        "synthesis": finished.synthesis.to_json(),
        "solver": finished.solver.to_json() if finished.solver else None,
        "tool_uses": len(course.memory.records),
        "steps": len(course.memory.plan.steps),
        "plan": [
            {
                "id": step.id,
                "tool": step.tool,
                "inputs": step.wiring,
                "parameters": dict(course.memory.parameters.get(step.id, {})),
            }
            for step in course.memory.plan.steps
        ],
        "findings": [{"step": step, **asdict(found)} for step, found in course.memory.findings()],
        "session": str(finished.folder),
    }


def with_answers(statement: str, answers: Mapping[str, str]) -> str:
    """Return a statement with what was answered later, as it is put to the agents."""
    told = "\n".join(f"- {question} {answer}" for question, answer in answers.items())
    return f"{statement.rstrip()}{_ANSWERED}{told}"


def without_answers(statement: str) -> str:
    """Return a statement as it was before anything was asked."""
    return statement.partition(_ANSWERED)[0].rstrip()


def read_answers(path: Path) -> tuple[str, dict[str, str]]:
    """Return the statement and the answers of a filled-in questions.yaml.

    Raises `ConfigurationError` naming the question that is not answered.
    """
    statement, answers = read_questions(path)
    open_ones = [question for question, answer in answers.items() if not answer]
    if open_ones:
        raise ConfigurationError(
            f"{path}: expected an answer to each question; missing: {'; '.join(open_ones)}"
        )
    return statement, answers


def read_questions(path: Path) -> tuple[str, dict[str, str]]:
    """Return the statement and the questions of a questions.yaml, with their answers as far as there are any.

    Raises `ConfigurationError` where it is of another form.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from None
    if not isinstance(document, Mapping) or not {"statement", "questions"} <= document.keys():
        raise ConfigurationError(f"{path}: expected a filled-in {QUESTIONS}, found {describe(document)}")
    entries = document["questions"]
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        found = describe(entries)
        raise ConfigurationError(f"{path}: questions: expected a list of question and answer, found {found}")
    answers = {str(entry.get("question")): str(entry.get("answer") or "").strip() for entry in entries}
    return str(document["statement"]), answers


def write_questions(folder: Path, statement: str, answers: Mapping[str, str | None]) -> None:
    """Write questions.yaml: what was asked of a statement, with the answers, or None where there is none yet."""
    entries = [{"question": question, "answer": answer} for question, answer in answers.items()]
    document = {"statement": statement, "questions": entries}
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)
    _write(folder / QUESTIONS, _ASKING + text)


def _write(path: Path, text: str) -> None:
    write_atomic(path, text.encode())
