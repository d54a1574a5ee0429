"""Import of the scalar cases of pde-agent-bench (arXiv 2605.09636, CC BY 4.0) as problem specifications.

The source term of a case with a manufactured solution is derived from it; the solution becomes the exact reference.
Each import has been read as a specification, and its exact solution checked against equations and conditions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sympy
import yaml

from hpc.files import make_directory, write_atomic
from sharp.error_messages import clip
from sharp.errors import SpecificationError
from sharp.experiments.agent_benchmark.pde_agent_bench.cases import (
    BenchCase,
    CaseEquation,
    CaseGrid,
    UnsupportedCase,
    read_case,
    read_lines,
)
from sharp.experiments.agent_benchmark.pde_agent_bench.domains import coordinates_of, domain_of
from sharp.experiments.agent_benchmark.pde_agent_bench.equations import (
    EquationTemplate,
    derived,
    equation_template,
    read_expression,
    time_interval,
    write_expression,
)
from sharp.problems import Problem, parse_problem
from sharp.problems.exact_solution import check_exact_solution
from sharp.problems.grammar import Scope, parse_tree
from sharp.problems.linearisation import linearised_system

_TAG = "pde-agent-bench"
_TIME = "t"
_FIELD = "u"
_VALUES = ("dirichlet", "neumann")
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
    written = {key: value for key, value in _document(case).items() if value not in ({}, [])}
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


@dataclass(frozen=True)
class _Setting:
    """What an equation is about: its space coordinates, the time interval of a transient one, and its form."""

    space: tuple[str, ...]
    times: tuple[float, float] | None
    form: EquationTemplate

    @property
    def coordinates(self) -> tuple[str, ...]:
        return (*self.space, _TIME) if self.times else self.space

    @property
    def fields(self) -> tuple[str, ...]:
        return (_FIELD, *self.form.further)

    def applied(self, operator: str, solution: Any) -> Any:
        """Return what an operator on u, such as `-kappa*lap(u)`, makes of a solution."""
        names = [*self.form.parameters, *self.form.coefficients]
        tree = parse_tree(operator, Scope.of(names, [_FIELD], self.coordinates))
        known = {
            name: sympy.Function(name)(*map(sympy.Symbol, self.space)) for name in self.form.coefficients
        }
        return derived(tree, {_FIELD: solution, **known}, self.space)


def _document(case: BenchCase) -> dict[str, Any]:
    """Return a case as the document of a specification; raises `UnsupportedCase` where it cannot be said as one."""
    oracle = case.oracle_config
    domain = domain_of(oracle.domain)
    space = coordinates_of(domain)
    pde = oracle.pde
    setting = _Setting(space, time_interval(pde), equation_template(pde, space))
    exact = _exact(pde, setting)
    return {
        "pde_spec": 1,
        "id": re.sub("[^a-z0-9]+", "-", case.id.lower()).strip("-"),
        "title": pde.description or f"{pde.type} on {oracle.domain.type}",
        "coordinates": {"space": list(space), **({"time": _TIME} if setting.times else {})},
        "fields": list(setting.fields),
        "coefficients": dict(setting.form.coefficients),
        "parameters": dict(setting.form.parameters),
        "equations": _equations(pde, setting, exact),
        "domain": domain,
        **({"time": list(setting.times)} if setting.times else {}),
        "initial": _initial(pde, setting, exact),
        "boundary": _conditions(oracle.bc, domain, setting.fields, setting.coordinates, exact),
        "outputs": _outputs(oracle.output.grid, setting),
        **_reference(setting, exact),
        "limits": {"wall_s": case.evaluation_config.timeout_sec},
        "tags": [_TAG, case.id, pde.type],
    }


def _exact(pde: CaseEquation, setting: _Setting) -> dict[str, Any]:
    """Return the exact solution of each field, nothing where the case has none."""
    if not pde.manufactured_solution:
        return {}
    solution = read_expression(
        pde.manufactured_solution.get("u"), setting.coordinates, "the manufactured solution"
    )
    further = {name: setting.applied(text, solution) for name, text in setting.form.further.items()}
    return {_FIELD: solution, **further}


def _equations(pde: CaseEquation, setting: _Setting, exact: Mapping[str, Any]) -> list[str]:
    form = setting.form
    if exact:
        source = setting.applied(form.operator or form.left, exact[_FIELD])
    else:
        source = read_expression(pde.source_term or 0, setting.coordinates, "the source term")
    further = [f"{text} = {name}" for name, text in form.further.items()]
    return [*further, f"{form.left} = {write_expression(source)}"]


def _initial(pde: CaseEquation, setting: _Setting, exact: Mapping[str, Any]) -> dict[str, str]:
    """Return the initial state: that of the exact solution, or as given, which is 0 where nothing is."""
    if not setting.times:
        return {}
    rates: Sequence[str] = (_FIELD, f"{_FIELD}_{_TIME}") if pde.type == "wave" else (_FIELD,)
    if exact:
        t = sympy.Symbol(_TIME)
        found = [exact[_FIELD].diff(t, order).subs(t, setting.times[0]) for order in range(len(rates))]
    else:
        given = (pde.initial_condition, pde.initial_velocity)
        found = [
            read_expression(value or 0, setting.space, f"the initial {name}")
            for name, value in zip(rates, given, strict=False)
        ]
    return {name: write_expression(value) for name, value in zip(rates, found, strict=True)}


def _outputs(grid: CaseGrid, setting: _Setting) -> dict[str, Any]:
    """Return the grid of a case; of a transient one the last time is compared, and the first is always there."""
    counts = dict(zip(setting.space, (grid.nx, grid.ny, grid.nz), strict=False))
    if None in counts.values():
        raise UnsupportedCase("not of the form of a case", "output.grid.nz: expected a number, found nothing")
    return {"grid": "nodes", "points": counts, **({"times": 2} if setting.times else {})}


def _reference(setting: _Setting, exact: Mapping[str, Any]) -> dict[str, Any]:
    if exact:
        return {
            "reference": {
                "kind": "exact",
                "value": {name: write_expression(value) for name, value in exact.items()},
            }
        }
    # Initial and boundary values are meant as they are given, whether they agree where they meet or not.
    return {"allow": ["corner-jump"]} if setting.times else {}


def _conditions(
    given: Mapping[str, Any],
    domain: Mapping[str, Any],
    fields: Sequence[str],
    coordinates: Sequence[str],
    exact: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Return the conditions of a case; raises `UnsupportedCase` for kinds and places that cannot be said.

    `exact` has the exact solution of each field, for which `u` stands as a value, and is empty where there is none.
    Fields after the first, which the case does not name, have their exact values or 0 where the first one is given.
    """
    unknown = sorted(given.keys() - {*_VALUES, "periodic"})
    if unknown:
        raise UnsupportedCase("a boundary condition of another kind", ", ".join(map(clip, unknown)))
    found: list[dict[str, Any]] = [{"type": "periodic", "axis": axis} for axis in _axes(given, domain)]
    for kind in _VALUES:
        for entry in _entries(given, kind):
            for where in _places(entry, domain):
                found += _on(kind, where, entry.get("value"), fields, coordinates, exact)
    return found


def _axes(given: Mapping[str, Any], domain: Mapping[str, Any]) -> list[str]:
    axes = [axis for entry in _entries(given, "periodic") for axis in _listed(entry.get("on"))]
    if not all(axis in domain.get("bounds", ()) for axis in axes):
        raise UnsupportedCase("a boundary condition of another kind", f"periodic on {clip(', '.join(axes))}")
    return axes


def _entries(given: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    entries = given.get(kind) or []
    entries = [entries] if isinstance(entries, Mapping) else entries
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise UnsupportedCase("not of the form of a case", f"bc.{kind}: expected mappings of on and value")
    return entries


def _places(entry: Mapping[str, Any], domain: Mapping[str, Any]) -> Iterator[str]:
    """Yield the places of an entry as in `where`: `all`, or `x = 0` for x0, the low end of an axis."""
    ends = {
        f"{axis}{index}": f"{axis} = {end:g}"
        for axis, pair in domain.get("bounds", {}).items()
        for index, end in enumerate(pair)
    }
    for place in _listed(entry.get("on", "all")):
        if place != "all" and place not in ends:
            raise UnsupportedCase("a condition on an unknown part of the boundary", clip(place))
        yield ends.get(place, place)


def _listed(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


def _on(
    kind: str,
    where: str,
    value: Any,
    fields: Sequence[str],
    coordinates: Sequence[str],
    exact: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """Yield the conditions on all fields at one place."""
    if kind != "dirichlet" and len(fields) > 1:
        raise UnsupportedCase(
            "a boundary condition of another kind", f"{kind} for an equation of fourth order"
        )
    known = value == "u" and kind == "dirichlet" and exact
    first = exact[fields[0]] if known else read_expression(value, coordinates, f"the {kind} value")
    values = {fields[0]: first, **{field: exact.get(field, 0) for field in fields[1:]}}
    for field, expression in values.items():
        yield {"where": where, "type": kind, "field": field, "value": write_expression(expression)}
