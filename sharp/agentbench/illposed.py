"""The track of problems that are wrong on purpose: under-specified, contradictory or ill-posed.

A case in `data/cases/ill-posed/ID.yaml` has statements as people might put them, the specification that says
faithfully what they say, and the verdict and kind that are right: to ask for what is missing, or to refuse.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sharp.errors import SpecificationError
from sharp.problems.diagnosis import Diagnosis, diagnose_source
from sharp.problems.spec import ProblemId, Statement
from sharp.problems.wording import valid_values
from sharp.problems.yaml_source import Fault, Source, read_yaml
from sharp.resources import list_resources

RightVerdict = Literal["ask", "refuse"]


class _Expected(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    verdict: RightVerdict
    kind: ProblemId


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: ProblemId
    expected: _Expected
    statements: tuple[Statement, ...] = Field(min_length=1)
    problem: dict[str, Any]


@dataclass(frozen=True)
class IllPosedCase:
    """Statements of a problem that cannot be solved as it stands, and what is right to do.

    `verdict` is `ask` or `refuse`, `kind` the word for what is wrong (see docs/problems.md). `problem` is the
    specification of what the statements say, with the lines of the case's file.
    """

    id: str
    verdict: RightVerdict
    kind: str
    statements: tuple[Statement, ...]
    problem: Source

    def diagnose(self) -> Diagnosis:
        """Diagnose the specification."""
        return diagnose_source(self.problem)


def list_ill_posed() -> dict[str, Path]:
    """Return the ids of all cases and their files; a user's file hides a shipped one of the same id."""
    return list_resources("data", "cases/ill-posed/*.yaml")


def load_ill_posed(name: str) -> IllPosedCase:
    """Load the case of an id; raises `SpecificationError` for an unknown id and as `parse_ill_posed` does."""
    known = list_ill_posed()
    if name not in known:
        raise SpecificationError(f"unknown case '{name}'; {valid_values('cases', name, known)}")
    case = parse_ill_posed(known[name].read_text(encoding="utf-8"), str(known[name]))
    if case.id != name:
        raise SpecificationError(
            f"{known[name]}: expected the id '{name}', as the file is called, found '{case.id}'"
        )
    return case


def parse_ill_posed(text: str, name: str) -> IllPosedCase:
    """Build a case from YAML; `name` stands for the file in errors.

    Raises `SpecificationError` with a line for all that is wrong with the case, but not with its problem.
    """
    source = read_yaml(text, name)
    try:
        written = _File.model_validate(source.value)
    except ValidationError as error:
        raise source.error(_fault(part) for part in error.errors(include_url=False)) from None
    if written.problem.get("id") != written.id:
        message = f"expected the id of the case, '{written.id}', found {written.problem.get('id')!r}"
        raise source.error([Fault(("problem", "id"), message)])
    expected = written.expected
    return IllPosedCase(
        written.id, expected.verdict, expected.kind, written.statements, _part(source, "problem")
    )


def _part(source: Source, key: str) -> Source:
    """Return what stands under a key as a document of its own, with its lines."""
    lines = {path[1:]: line for path, line in source.lines.items() if path[:1] == (key,)}
    return Source(source.name, source.value[key], lines)


def _fault(error: Any) -> Fault:
    path = tuple(error["loc"])
    match error["type"]:
        case "missing":
            message = "this key is required, and missing"
        case "extra_forbidden":
            keys = _Expected.model_fields if path[0] == "expected" else _File.model_fields
            message = f"unknown key; {valid_values('keys', str(path[-1]), keys)}"
        case "literal_error" if path[0] == "expected":
            message = f"found {error['input']!r}; {valid_values('values', str(error['input']), get_args(RightVerdict))}"
        case _:
            message = f"{error['msg'][0].lower()}{error['msg'][1:]}, found {error['input']!r:.80}"
    return Fault(path, message)
