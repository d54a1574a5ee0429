"""Import of the cases of pde-agent-bench (arXiv 2605.09636, CC BY 4.0) as problem specifications.

The source term of a case with a manufactured solution is derived from it; the solution becomes the exact reference.
Each import has been read as a specification, and its exact solution checked against equations and conditions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    FIELD,
    derived,
    equation_template,
    read_expression,
    time_interval,
    write_expression,
)
from sharp.problems import (
    Domain,
    Problem,
    Scope,
    check_exact_solution,
    compile_expressions,
    integration,
    linearised_system,
    parse_problem,
    parse_tree,
)
from sharp.reference import ProgressCallback

ACCURACY = 1e-5
"""The relative error that imports aim at: a tenth of the one that counts as solved."""

_TIME = "t"
_VALUES = ("dirichlet", "neumann")
# Source terms of more symbols than these leave no room for the left side in what the grammar reads.
_SYMBOL, _LONGEST = re.compile(r"[\w.]+|\*\*|\S"), 240
# What is appended to the name of a field for a given function that stands for it in source terms.
_GIVEN = "given"
# Gauss points along each direction of a domain's pieces, and what of a mean they leave at most.
_MEAN_POINTS, _SAME = 32, 1e-9
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


def import_cases(
    path: Path, progress: ProgressCallback = lambda *_: None
) -> Iterator[ImportedCase | RejectedCase]:
    """Yield what becomes of each line of a case file; raises `DataError` where the file cannot be read.

    `progress` is told how many lines are done.
    """
    taken: set[str] = set()
    lines = tuple(read_lines(path))
    for done, (number, line) in enumerate(lines):
        progress(done, len(lines), f"importing the cases of {path}")
        found = import_case(line, f"line {number}")
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


def import_case(line: str, name: str) -> ImportedCase | RejectedCase:
    """Return what becomes of a line; `name` stands for the case where it has no id that can be read."""
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
        self.fields = (*self.form.given, *self.form.further, *self.form.constraints)

    def document(self) -> dict[str, Any]:
        pde, times, exact = self.pde, self.times, self.exact
        boundary = list(self._conditions())
        return {
            "pde_spec": 1,
            "id": re.sub("[^a-z0-9]+", "-", self.case.id.lower()).strip("-"),
            "title": pde.description or f"{pde.type} on {self.oracle.domain.type}",
            "coordinates": {"space": list(self.space), **({"time": _TIME} if times else {})},
            "fields": list(self.fields),
            "coefficients": self._functions,
            "parameters": dict(self.form.parameters),
            "equations": [
                *(f"{text} = {name}" for name, text in self.form.further.items()),
                *(f"{left} = {self._sources[name]}" for name, left in self.form.lefts.items()),
                *(f"{text} = 0" for text in self.form.constraints.values()),
            ],
            "domain": self.domain,
            **({"time": list(times)} if times else {}),
            "initial": self._initial(times[0]) if times else {},
            "boundary": boundary,
            "mean": self._levels(boundary),
            "outputs": self._outputs(),
            "accuracy": ACCURACY,
            "reference": {"kind": "exact", "value": _written(exact)} if exact else {},
            # Values are meant as they are given, whether they agree where they meet or not.
            "allow": [] if exact else ["corner-jump"],
            "limits": {"wall_s": self.case.evaluation_config.timeout_sec},
            "tags": ["pde-agent-bench", self.case.id, pde.type],
        }

    @cached_property
    def exact(self) -> dict[str, Any]:
        """The exact solution of each field, nothing where the case has none."""
        solution = self.pde.manufactured_solution
        if not solution:
            return {}
        what = "the manufactured solution"
        found = self._read(solution.get("u"), self.coordinates, what)
        further = {name: self._applied(text, found) for name, text in self.form.further.items()}
        others = {
            name: read_expression(solution.get(name, 0), self.coordinates, what)
            for name in self.form.constraints
        }
        return {**found, **further, **others}

    def _read(self, value: Any, names: Sequence[str], what: str) -> dict[str, Any]:
        """Return the expressions of the fields that a case names: of one, or of a list for the components of a vector.

        What is missing is 0.
        """
        fields = self.form.given
        values = value if isinstance(value, list) else [value] * (1 if value else len(fields))
        if len(values) != len(fields) or (isinstance(value, list) and len(fields) == 1):
            raise UnsupportedCase(NO_CASE, f"{what}: expected {_expected(len(fields))}")
        return {
            field: read_expression(0 if one is None else one, names, what)
            for field, one in zip(fields, values, strict=True)
        }

    def _applied(self, operator: str, solution: Mapping[str, Any]) -> Any:
        """Return what an operator, such as `-kappa*lap(u)`, makes of a solution."""
        names = [*self.form.parameters, *self.form.coefficients]
        tree = parse_tree(operator, Scope.of(names, solution, self.coordinates))
        space = [sympy.Symbol(name) for name in self.space]
        known = {name: sympy.Function(name)(*space) for name in self.form.coefficients}
        return derived(tree, {**solution, **known}, self.space)

    @cached_property
    def _sources(self) -> dict[str, str]:
        """The source terms: derived from the exact solution, or as given, which is 0 where nothing is."""
        if not self.exact:
            return _written(self._read(self.pde.source_term, self.coordinates, "the source term"))
        sources = _written(
            {
                name: self._applied(self.form.operator or left, self.exact)
                for name, left in self.form.lefts.items()
            }
        )
        long = any(len(_SYMBOL.findall(text)) > _LONGEST for text in sources.values())
        return self._as_functions() if long and not self.times else sources

    def _as_functions(self) -> dict[str, str]:
        """Return source terms that are written out as the operator on given functions, which stand for the solution."""
        names = "|".join(map(re.escape, self.fields))
        fields = re.compile(rf"\b({names})(?=_|\b)")
        return {
            name: fields.sub(lambda match: match.group() + _GIVEN, self.form.operator or left)
            for name, left in self.form.lefts.items()
        }

    @property
    def _functions(self) -> dict[str, str]:
        """The given functions of the equations: coefficients, and those of source terms."""
        exact = {name + _GIVEN: text for name, text in _written(self.exact).items()}
        wanted = " ".join(self._sources.values())
        return {
            **self.form.coefficients,
            **{name: text for name, text in exact.items() if re.search(rf"\b{name}(_|\b)", wanted)},
        }

    def _initial(self, start: float) -> dict[str, str]:
        """Return the initial state: that of the exact solution, or as given, which is 0 where nothing is."""
        found: dict[str, Any] = {}
        given = [
            self.pde.initial_condition,
            *([self.pde.initial_velocity] if self.pde.type == "wave" else []),
        ]
        for order, value in enumerate(given):
            if self.exact:
                t = sympy.Symbol(_TIME)
                state = {name: self.exact[name].diff(t, order).subs(t, start) for name in self.form.given}
            else:
                state = self._read(value, self.space, f"the initial {'velocity' if order else 'state'}")
            found |= {f"{name}_{_TIME}" if order else name: each for name, each in state.items()}
        return _written(found)

    def _levels(self, boundary: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the mean of a pressure where no open end fixes its level: that of the exact solution, else 0."""
        if not self.form.constraints or any(condition["type"] == "flux" for condition in boundary):
            return {}
        return {name: self._mean(self.exact.get(name, sympy.Integer(0))) for name in self.form.constraints}

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
        axes = [
            axis
            for entry in self._entries("periodic")
            for axis in _listed(entry.get("on", entry.get("direction")))
        ]
        if not all(axis in bounds for axis in axes):
            raise UnsupportedCase(_OTHER_KIND, f"periodic on {clip(', '.join(axes))}")
        yield from ({"type": "periodic", "axis": axis} for axis in axes)
        # `x0` is the low end of an axis.
        ends = {
            f"{axis}{i}": f"{axis} = {end:g}" for axis, pair in bounds.items() for i, end in enumerate(pair)
        }
        held: set[str] = set()
        for kind in _VALUES:
            for entry in self._entries(kind):
                for place in _listed(entry.get("on", "all")):
                    if place != "all" and place not in ends:
                        raise UnsupportedCase("a condition on an unknown part of the boundary", clip(place))
                    held |= {place}
                    for taken in self._taken(place, ends):
                        yield from self._on(kind, ends.get(taken, taken), entry.get("value"))
        if len(self.form.given) > 1 and "all" not in held:
            yield from self._open(
                where for end, where in ends.items() if end not in held and end[:-1] not in axes
            )

    def _taken(self, place: str, ends: Mapping[str, str]) -> list[str]:
        """Return where a condition at a place is one: of an equation of first order, at ends where something enters."""
        if not self.form.carried:
            return [place]
        if not ends:
            raise UnsupportedCase("pure advection", "where it flows in is known on boxes alone")
        entering = [f"{axis}{int(speed < 0)}" for axis, speed in self.form.carried.items()]
        return [end for end in entering if place in ("all", end)]

    def _open(self, places: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Yield that no force acts on the ends of a vector problem for which nothing is said."""
        for where in places:
            yield from (
                {"where": where, "type": "flux", "field": field, "value": "0"} for field in self.form.given
            )

    def _entries(self, kind: str) -> list[Mapping[str, Any]]:
        entries = self.oracle.bc.get(kind) or []
        entries = [entries] if isinstance(entries, Mapping) else entries
        if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
            raise UnsupportedCase(NO_CASE, f"bc.{kind}: expected mappings of on and value")
        return entries

    def _on(self, kind: str, where: str, value: Any) -> Iterator[dict[str, Any]]:
        """Yield the conditions on all fields at one place; a value `u` stands for the exact solution.

        Further fields, which the case does not name, have their exact values or 0 where the first one is given; nothing
        holds a pressure at a boundary.
        """
        if kind != "dirichlet" and len(self.fields) > 1:
            raise UnsupportedCase(_OTHER_KIND, f"{kind} for several fields")
        known = value == "u" and kind == "dirichlet" and self.exact
        given = self.exact if known else self._read(value, self.coordinates, f"the {kind} value")
        values = {
            **{field: given[field] for field in self.form.given},
            **{field: self.exact.get(field, 0) for field in self.form.further},
        }
        for field, text in _written(values).items():
            yield {"where": where, "type": kind, "field": field, "value": text}

    def _mean(self, expression: Any) -> float:
        """Return the mean of a given expression over the domain; raises `UnsupportedCase` where it moves in time."""
        points, weights = integration(self._plain_domain(), _MEAN_POINTS)
        moments = self.times or (0.0,)
        function = compile_expressions([expression], self.coordinates)
        means = []
        for moment in moments:
            values = function(*points.T, *([moment] if self.times else []))[0]
            means.append(float(np.mean(np.broadcast_to(values, len(points)) * weights) / np.mean(weights)))
        if abs(means[0] - means[-1]) > _SAME:
            raise UnsupportedCase(
                "a pressure whose mean changes with time", f"from {means[0]:g} to {means[-1]:g}"
            )
        return 0.0 if abs(means[0]) < _SAME else means[0]

    def _plain_domain(self) -> Domain:
        """Return the domain as problems have it: by way of the Laplace equation there."""
        plain = {
            "pde_spec": 1,
            "id": "domain",
            "title": "domain",
            "coordinates": {"space": list(self.space)},
            "fields": [FIELD],
            "equations": ["lap(u) = 0"],
            "domain": self.domain,
            "boundary": [{"where": "all", "type": "dirichlet", "field": FIELD, "value": 0}],
        }
        return parse_problem(yaml.safe_dump(plain), "the domain").domain


def _written(expressions: Mapping[str, Any]) -> dict[str, str]:
    return {name: write_expression(expression) for name, expression in expressions.items()}


def _expected(count: int) -> str:
    return "an expression or a number" if count == 1 else f"a list of {count} of them"


def _listed(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]
