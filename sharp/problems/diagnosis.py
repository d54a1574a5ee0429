"""What to do with a specification: solve it, ask about what is missing, or refuse it.

What is wrong with the text and what is wrong with the problem are told in the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, Literal

from sharp.errors import SpecificationError
from sharp.problems.diagnostics import Diagnostic, Verdict
from sharp.problems.loader import build_problem, check_id, read_specification
from sharp.problems.problem import Problem
from sharp.yaml_source import InvalidSpecification, Path, ValidationIssue, YamlSource, read_yaml, show


@dataclass(frozen=True)
class Diagnosis:
    """What to do with a specification, and why.

    `problem` is None where the specification cannot be read as one. `places` holds `file:line: path` for each of
    the concerns.
    """

    verdict: Literal["solve", "clarify", "reject"]
    problem: Problem | None
    concerns: tuple[Diagnostic, ...]
    places: tuple[str, ...]

    @property
    def questions(self) -> tuple[str, ...]:
        """What has to be answered, each question once."""
        return tuple(dict.fromkeys(concern.question for concern in self.concerns if concern.question))

    def lines(self, verdict: Verdict) -> list[str]:
        """Return the messages of a verdict, each after its place."""
        return [
            f"{place}: {concern.message}"
            for concern, place in zip(self.concerns, self.places, strict=True)
            if concern.verdict == verdict
        ]


def diagnose_file(name_or_path: str | FilePath) -> Diagnosis:
    """Diagnose the specification of an id or a path; raises `SpecificationError` where it cannot be read."""
    path, text = read_specification(name_or_path)
    found = diagnose(text, str(path))
    if found.problem is not None:
        check_id(name_or_path, path, found.problem.id)
    return found


def diagnose(text: str, name: str) -> Diagnosis:
    """Diagnose a specification in YAML; `name` stands for the file in places."""
    try:
        source = read_yaml(text, name)
    except InvalidSpecification as error:
        return _of_faults(error.source, error.faults)
    except SpecificationError as error:
        return Diagnosis("reject", None, (Diagnostic("form", "reject", (), str(error)),), (f"{name}:1",))
    return diagnose_source(source)


def diagnose_source(source: YamlSource) -> Diagnosis:
    """Diagnose a parsed document."""
    from sharp.problems.well_posedness import check_well_posedness

    try:
        problem = build_problem(source)
    except InvalidSpecification as error:
        return _of_faults(error.source, error.faults)
    return _diagnosis(source, problem, check_well_posedness(problem))


def _of_faults(source: YamlSource, faults: tuple[ValidationIssue, ...]) -> Diagnosis:
    return _diagnosis(source, None, tuple(_concern(fault, source.value) for fault in faults))


def _diagnosis(source: YamlSource, problem: Problem | None, found: tuple[Diagnostic, ...]) -> Diagnosis:
    verdicts = {concern.verdict for concern in found}
    verdict: Literal["solve", "clarify", "reject"] = (
        "reject" if "reject" in verdicts else "clarify" if "clarify" in verdicts else "solve"
    )
    places = tuple(
        ": ".join(
            [f"{source.name}:{source.line(concern.path)}", *([show(concern.path)] if concern.path else [])]
        )
        for concern in found
    )
    return Diagnosis(verdict, problem, found, places)


def _concern(fault: ValidationIssue, document: Any) -> Diagnostic:
    """Return a fault as a concern: what can be asked for is missing, everything else is refused."""
    kind, question = (fault.kind, fault.question) if fault.kind != "form" else _missing(fault.path, document)
    return Diagnostic(kind, "clarify" if question else "reject", fault.path, fault.message, question)


# By the section of the format: the kind of what is missing there, and the question for it.
_SECTIONS: Mapping[str, tuple[str, Callable[[Path], str]]] = {
    "domain": ("missing-domain", lambda path: _domain_question(path)),
    "time": ("missing-time-interval", lambda _: "From when to when is the solution wanted?"),
    "boundary": ("missing-boundary-condition", lambda path: _boundary_question(path)),
    "initial": ("missing-initial-condition", lambda path: f"What is {path[1]} at the beginning?"),
    "parameters": ("unknown-name", lambda path: f"What is the value of {path[1]}?"),
    "equations": ("missing-equation", lambda _: "Which equation is to be solved?"),
}


def _missing(path: Path, document: Any) -> tuple[str, str]:
    """Return kind and question of a part of the format that is missing; `form` and no question for any other fault."""
    section = str(path[0]) if path else ""
    if section not in _SECTIONS or not (_absent(path, document) or _has_no_value(path, document)):
        return "form", ""
    if section in ("initial", "parameters") and len(path) < 2:
        return "form", ""
    kind, question = _SECTIONS[section]
    return kind, question(path)


def _absent(path: Path, value: Any) -> bool:
    """Whether nothing is written at a path."""
    for part in path:
        entries = (
            value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
        )
        value = entries.get(part)
    return value is None


def _has_no_value(path: Path, document: Any) -> bool:
    """Whether a path leads to a boundary condition with everything but a value."""
    if path[0] != "boundary" or len(path) != 2:
        return False
    condition = document["boundary"][path[1]]
    return (
        isinstance(condition, dict)
        and {"type", "where", "field"} <= condition.keys()
        and "value" not in condition
    )


def _domain_question(path: Path) -> str:
    if len(path) == 1:
        return "In which domain is the problem posed, and how large is it?"
    return _DOMAIN_QUESTIONS.get(path[1], f"What is the {path[1]} of the domain?")


_DOMAIN_QUESTIONS: Mapping[str | int, str] = {
    "type": "Which shape has the domain?",
    "bounds": "From where to where does the domain reach along each axis?",
    "inner": "What is the inner radius of the domain?",
    "outer": "What is the outer radius of the domain?",
    "vertices": "Where are the vertices of the domain?",
}


def _boundary_question(path: Path) -> str:
    if len(path) == 1:
        return "What holds at the boundary of the domain?"
    return f"What is the value of boundary condition {int(path[1]) + 1}?"
