"""The hundred cases of the agent benchmark: well-posed problems, each stated in several ways, with a reference.

A case is a problem specification (see docs/problems.md) in `data/cases/CATEGORY/ID.yaml`. What is wrong on
purpose lies in the folder `ill-posed` beside them and is no case of these hundred.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sharp.errors import SpecificationError
from sharp.problems import Problem, load_problem
from sharp.problems.spec import Statement
from sharp.problems.wording import valid_values
from sharp.resources import list_resources

ILL_POSED = "ill-posed"


@dataclass(frozen=True)
class Case:
    """A problem of the benchmark, and the category (heat, wave, …) whose folder it lies in."""

    problem: Problem
    category: str

    @property
    def id(self) -> str:
        """The id, unique among all cases."""
        return self.problem.id

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The problem as different people put it."""
        return self.problem.specification.statements

    @property
    def tags(self) -> tuple[str, ...]:
        """Free labels, such as `units` or `nonlinear`."""
        return self.problem.specification.tags


def list_cases() -> dict[str, Path]:
    """Return the ids of all cases and their files; a user's file hides a shipped one of the same id."""
    found = list_resources("data", "cases/*/*.yaml")
    return {name: path for name, path in found.items() if path.parent.name != ILL_POSED}


def load_case(name: str) -> Case:
    """Load the case of an id.

    Raises `SpecificationError` for an unknown id, for all that is wrong with the file as `load_problem` does,
    and where the file has another id than its name says, no statements, or no reference.
    """
    known = list_cases()
    if name not in known:
        raise SpecificationError(f"unknown case '{name}'; {valid_values('cases', name, known)}")
    return _load(known[name])


def load_cases(category: str | None = None) -> list[Case]:
    """Load all cases, or those of a category, in the order of their ids; raises like `load_case`."""
    paths = list_cases().values()
    categories = sorted({path.parent.name for path in paths})
    if category is not None and category not in categories:
        valid = valid_values("categories", category, categories)
        raise SpecificationError(f"unknown category '{category}'; {valid}")
    return [_load(path) for path in paths if category in (None, path.parent.name)]


def _load(path: Path) -> Case:
    case = Case(load_problem(path), path.parent.name)
    if case.id != path.stem:
        raise SpecificationError(
            f"{path}: expected the id '{path.stem}', as the file is called, found '{case.id}'"
        )
    if not case.statements:
        raise SpecificationError(f"{path}: statements: expected the problem in words, found nothing")
    if case.problem.specification.reference.kind == "data":
        raise SpecificationError(f"{path}: reference: expected one of kind exact or computed, found none")
    return case
