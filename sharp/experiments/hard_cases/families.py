"""Hard cases, declared by family: a specification with parameters, and the values that vary from case to case.

data/hard/CATEGORY.yaml is a list of families: `id`, `specification` (without `id` and `pde_spec`), `variants` (name:
values of parameters), `statements` (style: a text in which `{name}` stands for a parameter's value as it is written),
`numbers` (the expected value of each quantity, in its unit, as an expression of parameters), and `solution`, the name
of one in `solutions`, where no expression of the grammar of specifications is the solution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from sharp.error_messages import valid_values
from sharp.errors import SpecificationError
from sharp.experiments.hard_cases.solutions import SOLUTIONS, Exact
from sharp.problems import BenchmarkCase, Expression, Problem, ProblemId, build_problem, evaluate_tree
from sharp.resources import list_resources
from sharp.solvers import compile_function, known_eigenvalues
from sharp.yaml_source import YamlSource, read_yaml


class _Family(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    id: ProblemId
    specification: dict[str, Any]
    variants: dict[ProblemId, dict[str, Any]] = Field(min_length=1)
    statements: dict[str, str] = Field(min_length=1)
    numbers: dict[str, Expression] = {}
    solution: str | None = None


_FAMILIES = TypeAdapter(tuple[_Family, ...])


@dataclass(frozen=True)
class HardCase:
    """A case, its solution or eigenvalues, and the numbers that it asks for, by name, in their units."""

    case: BenchmarkCase
    exact: Exact
    numbers: Mapping[str, float]

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.case.problem


@cache
def _declared() -> Mapping[str, tuple[Path, _Family, str]]:
    """Return file, family and variant of every case by its id."""
    return {
        f"{family.id}-{variant}": (path, family, variant)
        for path in list_resources("data", "hard/*.yaml").values()
        for family in _families(path)
        for variant in family.variants
    }


def _families(path: Path) -> tuple[_Family, ...]:
    source = read_yaml(path.read_text(encoding="utf-8"), str(path))
    try:
        return _FAMILIES.validate_python(source.value)
    except ValidationError as error:
        first = error.errors()[0]
        raise SpecificationError(f"{path}:{source.line(first['loc'])}: {first['msg']}") from None


def list_hard_cases() -> dict[str, str]:
    """Return the ids of all hard cases with their categories; raises `SpecificationError` for a wrong file."""
    return {name: path.stem for name, (path, _, _) in _declared().items()}


@cache
def load_hard_case(name: str) -> HardCase:
    """Build the case of an id; raises `SpecificationError` for an unknown one and for all that is wrong with it."""
    known = _declared()
    if name not in known:
        raise SpecificationError(f"unknown case '{name}'; {valid_values('cases', name, known)}")
    path, family, variant = known[name]
    problem = build_problem(YamlSource(str(path), dict(_document(name, family, variant)), {(): 1}))
    numbers = {
        key: evaluate_tree(problem.tree(text), problem.parameters) for key, text in family.numbers.items()
    }
    return HardCase(BenchmarkCase(problem, path.stem), _exact(problem, family), numbers)


def _document(name: str, family: _Family, variant: str) -> Iterator[tuple[str, Any]]:
    given = dict(family.specification.get("parameters", {}))
    for key, value in family.variants[variant].items():
        if key not in given:
            raise SpecificationError(
                f"{name}: unknown parameter '{key}'; {valid_values('parameters', key, given)}"
            )
        given[key] = {**given[key], "value": value} if isinstance(given[key], dict) else value
    said = {key: value["value"] if isinstance(value, dict) else value for key, value in given.items()}
    yield from {"pde_spec": 1, "id": name, **family.specification, "parameters": given}.items()
    yield (
        "statements",
        [{"style": style, "text": text.format_map(said)} for style, text in family.statements.items()],
    )
    yield "tags", [family.id]


def _exact(problem: Problem, family: _Family) -> Exact:
    reference = problem.specification.reference
    if family.solution is not None:
        return SOLUTIONS[family.solution](problem)
    if reference.eigenvalues:
        return known_eigenvalues(problem)
    functions = [compile_function(problem, reference.value[field]) for field in problem.fields]
    return lambda points, times: np.stack([function(points, times) for function in functions])
