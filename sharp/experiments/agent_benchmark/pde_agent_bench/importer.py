"""Import of the scalar cases of pde-agent-bench (arXiv 2605.09636, CC BY 4.0) as problem specifications.

The source term of a case with a manufactured solution is derived from it; the solution becomes the exact reference.
Each import has been read as a specification, and its exact solution checked against equations and conditions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import sympy
import yaml

from hpc.files import make_directory, write_atomic
from sharp.error_messages import clip
from sharp.errors import SpecificationError
from sharp.experiments.agent_benchmark.pde_agent_bench.cases import (
    NO_CASE,
    BenchCase,
    UnsupportedCase,
    coordinates_of,
    domain_of,
    read_case,
    read_lines,
)
from sharp.experiments.agent_benchmark.pde_agent_bench.equations import (
    derived,
    equation_template,
    read_expression,
    time_interval,
    write_expression,
)
from sharp.problems import Problem, Scope, check_exact_solution, linearised_system, parse_problem, parse_tree

_TIME, _FIELD = "t", "u"
_VALUES = ("dirichlet", "neumann")
_OTHER_KIND = "a boundary condition of another kind"
_HEADER = """\
# Case {case} of pde-agent-bench (arXiv 2605.09636), by its authors, licence CC BY 4.0.
# Changed: written as a problem specification; a source term that the case leaves open is derived from its solution.
"""


@dataclass(frozen=True)
class ImportedCase:
    """A case that was imported: its id in the benchmark, the problem, and the text of its specification."""

    case: str
    problem: Problem
    text: str


@dataclass(frozen=True)
class RejectedCase:
    """A case that was not: its id or line, a reason that cases share, and what it is in this one."""

    case: str
    reason: str
    detail: str = ""


def import_cases(path: Path) -> Iterator[ImportedCase | RejectedCase]:
    """Yield what becomes of each line of a case file; raises `DataError` where the file cannot be read."""
    taken: set[str] = set()
    for number, line in read_lines(path):
        found = _imported(line, f"line {number}")
        if isinstance(found, ImportedCase) and found.problem.id in taken:
            found = RejectedCase(found.case, "an id that another case has", found.problem.id)
        elif isinstance(found, ImportedCase):
            taken.add(found.problem.id)
        yield found


def save_case(found: ImportedCase | RejectedCase, folder: Path) -> Path | RejectedCase:
    """Write the specification of an imported case into a folder and return its path; others are returned as they are.

    Another file of the same name is never overwritten: the case counts as refused.
    """
    if isinstance(found, RejectedCase):
        return found
    make_directory(folder)
    path = folder / f"{found.problem.id}.yaml"
    if not path.exists():
        write_atomic(path, found.text.encode())
    elif path.read_bytes() != found.text.encode():
        return RejectedCase(found.case, "another file of this name is there", str(path))
    return path


def _imported(line: str, name: str) -> ImportedCase | RejectedCase:
    try:
        case = read_case(line)
        name = case.id
        text = _text(case)
        problem = parse_problem(text, name)
        _check(problem)
    except UnsupportedCase as error:
        return RejectedCase(name, error.reason, error.detail)
    except SpecificationError as error:
        return RejectedCase(name, "not a valid specification", str(error).partition("\n")[0])
    return ImportedCase(name, problem, text)


def _text(case: BenchCase) -> str:
    written = {key: value for key, value in _Specification(case).document().items() if value not in ({}, [])}
    body = yaml.safe_dump(written, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)
    return _HEADER.format(case=" ".join(case.id.split())) + body


def _check(problem: Problem) -> None:
    """Raise `UnsupportedCase` where the exact solution does not satisfy an equation or a condition."""
    with np.errstate(all="ignore"):
        for concern in check_exact_solution(linearised_system(problem)):
            if concern.verdict == "reject":
                raise UnsupportedCase(
                    "a solution that does not satisfy the case's own conditions", concern.message
                )


class _Specification:
    """A case as the document of a specification; raises `UnsupportedCase` where it cannot be said as one."""

    def __init__(self, case: BenchCase) -> None:
        self.case, self.oracle, self.pde = case, case.oracle_config, case.oracle_config.pde
        self.domain = domain_of(self.oracle.domain)
        self.space = coordinates_of(self.domain)
        self.times = time_interval(self.pde)
        self.form = equation_template(self.pde, self.space)
        self.coordinates = (*self.space, _TIME) if self.times else self.space
        self.fields = (_FIELD, *self.form.further)

    def document(self) -> dict[str, Any]:
        pde, times, exact = self.pde, self.times, self.exact
        return {
            "pde_spec": 1,
            "id": re.sub("[^a-z0-9]+", "-", self.case.id.lower()).strip("-"),
            "title": pde.description or f"{pde.type} on {self.oracle.domain.type}",
            "coordinates": {"space": list(self.space), **({"time": _TIME} if times else {})},
            "fields": list(self.fields),
            "coefficients": dict(self.form.coefficients),
            "parameters": dict(self.form.parameters),
            "equations": [
                *(f"{text} = {name}" for name, text in self.form.further.items()),
                f"{self.form.left} = {write_expression(self._source())}",
            ],
            "domain": self.domain,
            **({"time": list(times)} if times else {}),
            "initial": self._initial(times[0]) if times else {},
            "boundary": list(self._conditions()),
            "outputs": self._outputs(),
            "reference": {"kind": "exact", "value": _written(exact)} if exact else {},
            # Initial and boundary values are meant as they are given, whether they agree where they meet or not.
            "allow": ["corner-jump"] if times and not exact else [],
            "limits": {"wall_s": self.case.evaluation_config.timeout_sec},
            "tags": ["pde-agent-bench", self.case.id, pde.type],
        }

    @cached_property
    def exact(self) -> dict[str, Any]:
        """The exact solution of each field, nothing where the case has none."""
        if not self.pde.manufactured_solution:
            return {}
        given = self.pde.manufactured_solution.get("u")
        solution = read_expression(given, self.coordinates, "the manufactured solution")
        further = {name: self._applied(text, solution) for name, text in self.form.further.items()}
        return {_FIELD: solution, **further}

    def _applied(self, operator: str, solution: Any) -> Any:
        """Return what an operator on u, such as `-kappa*lap(u)`, makes of a solution."""
        names = [*self.form.parameters, *self.form.coefficients]
        tree = parse_tree(operator, Scope.of(names, [_FIELD], self.coordinates))
        space = [sympy.Symbol(name) for name in self.space]
        known = {name: sympy.Function(name)(*space) for name in self.form.coefficients}
        return derived(tree, {_FIELD: solution, **known}, self.space)

    def _source(self) -> Any:
        if self.exact:
            return self._applied(self.form.operator or self.form.left, self.exact[_FIELD])
        return read_expression(self.pde.source_term or 0, self.coordinates, "the source term")

    def _initial(self, start: float) -> dict[str, str]:
        """Return the initial state: that of the exact solution, or as given, which is 0 where nothing is."""
        given = {_FIELD: self.pde.initial_condition}
        if self.pde.type == "wave":
            given[f"{_FIELD}_{_TIME}"] = self.pde.initial_velocity
        if self.exact:
            t = sympy.Symbol(_TIME)
            return _written(
                {name: self.exact[_FIELD].diff(t, order).subs(t, start) for order, name in enumerate(given)}
            )
        return _written(
            {
                name: read_expression(value or 0, self.space, f"the initial {name}")
                for name, value in given.items()
            }
        )

    def _outputs(self) -> dict[str, Any]:
        """Return the grid of a case; of a transient one the last time is compared, and the first is always there."""
        grid = self.oracle.output.grid
        counts = dict(zip(self.space, (grid.nx, grid.ny, grid.nz), strict=False))
        if None in counts.values():
            raise UnsupportedCase(NO_CASE, "output.grid.nz: expected a number, found nothing")
        return {"grid": "nodes", "points": counts, **({"times": 2} if self.times else {})}

    def _conditions(self) -> Iterator[dict[str, Any]]:
        """Yield the conditions of a case; raises `UnsupportedCase` for kinds and places that cannot be said."""
        bounds: Mapping[str, Any] = self.domain.get("bounds", {})
        unknown = sorted(self.oracle.bc.keys() - {*_VALUES, "periodic"})
        if unknown:
            raise UnsupportedCase(_OTHER_KIND, ", ".join(map(clip, unknown)))
        axes = [axis for entry in self._entries("periodic") for axis in _listed(entry.get("on"))]
        if not all(axis in bounds for axis in axes):
            raise UnsupportedCase(_OTHER_KIND, f"periodic on {clip(', '.join(axes))}")
        yield from ({"type": "periodic", "axis": axis} for axis in axes)
        # `x0` is the low end of an axis.
        ends = {
            f"{axis}{i}": f"{axis} = {end:g}" for axis, pair in bounds.items() for i, end in enumerate(pair)
        }
        for kind in _VALUES:
            for entry in self._entries(kind):
                for place in _listed(entry.get("on", "all")):
                    if place != "all" and place not in ends:
                        raise UnsupportedCase("a condition on an unknown part of the boundary", clip(place))
                    yield from self._on(kind, ends.get(place, place), entry.get("value"))

    def _entries(self, kind: str) -> list[Mapping[str, Any]]:
        entries = self.oracle.bc.get(kind) or []
        entries = [entries] if isinstance(entries, Mapping) else entries
        if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
            raise UnsupportedCase(NO_CASE, f"bc.{kind}: expected mappings of on and value")
        return entries

    def _on(self, kind: str, where: str, value: Any) -> Iterator[dict[str, Any]]:
        """Yield the conditions on all fields at one place; a value `u` stands for the exact solution.

        Fields after the first, which the case does not name, have their exact values or 0 where the first one is given.
        """
        if kind != "dirichlet" and len(self.fields) > 1:
            raise UnsupportedCase(_OTHER_KIND, f"{kind} for an equation of fourth order")
        known = value == "u" and kind == "dirichlet" and self.exact
        first = self.exact[_FIELD] if known else read_expression(value, self.coordinates, f"the {kind} value")
        values = {_FIELD: first, **{field: self.exact.get(field, 0) for field in self.form.further}}
        for field, text in _written(values).items():
            yield {"where": where, "type": kind, "field": field, "value": text}


def _written(expressions: Mapping[str, Any]) -> dict[str, str]:
    return {name: write_expression(expression) for name, expression in expressions.items()}


def _listed(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]
