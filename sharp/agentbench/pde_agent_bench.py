"""Import of the scalar cases of pde-agent-bench (arXiv 2605.09636, CC BY 4.0) as problem specifications.

The source term of a case with a manufactured solution is derived from it; the solution becomes the exact reference. Each
import has been read as a specification, and its exact solution checked against equations and conditions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import sympy
import yaml

from hpc.files import make_directory, write_atomic
from sharp.agent.export import as_yaml
from sharp.agentbench import pab_equations, pab_shapes
from sharp.agentbench.pab_boundary import conditions
from sharp.agentbench.pab_expressions import read, source, write
from sharp.agentbench.pab_form import BenchCase, Unfit, read_case, read_lines
from sharp.errors import SpecificationError
from sharp.problems import Problem, parse_problem
from sharp.problems.exactness import exactness_concerns
from sharp.problems.grammar import Scope, parse_tree
from sharp.problems.symbolic import to_sympy
from sharp.problems.system import system_of

_TAG = "pde-agent-bench"
_HEADER = """\
# Case {case} of pde-agent-bench (arXiv 2605.09636), by its authors, licence CC BY 4.0;
# changed: written as a problem specification, with the source term derived from the solution.
"""


@dataclass(frozen=True)
class Imported:
    """A case that was imported: its id in the benchmark, the problem, and the text of its specification."""

    case: str
    problem: Problem
    text: str


@dataclass(frozen=True)
class Refused:
    """A case that was not: its id or line, a reason that cases share, and what it is in this one."""

    case: str
    reason: str
    detail: str = ""


def import_cases(path: Path) -> Iterator[Imported | Refused]:
    """Yield what becomes of each line of a case file; raises `DataError` where the file cannot be read."""
    taken: set[str] = set()
    for number, line in read_lines(path):
        found = _imported(line, f"line {number}")
        if isinstance(found, Imported) and found.problem.id in taken:
            found = Refused(found.case, "an id that another case has", found.problem.id)
        elif isinstance(found, Imported):
            taken.add(found.problem.id)
        yield found


def save(found: Imported, folder: Path) -> Path | Refused:
    """Write the specification of a case into a folder and return its path; another file is never overwritten."""
    make_directory(folder)
    path = folder / f"{found.problem.id}.yaml"
    if not path.exists():
        write_atomic(path, found.text.encode())
    elif path.read_bytes() != found.text.encode():
        return Refused(found.case, "a file of this name with something else in it", str(path))
    return path


def specification(case: BenchCase) -> dict[str, Any]:
    """Return a case as the document of a specification; raises `Unfit` where it cannot be said as one."""
    oracle = case.oracle_config
    domain = pab_shapes.domain(oracle.domain)
    problem = _Translation(case, pab_shapes.space(domain), pab_equations.interval(oracle.pde))
    solution = problem.solution()
    form = problem.form
    document = {
        "pde_spec": 1,
        "id": re.sub("[^a-z0-9]+", "-", case.id.lower()).strip("-"),
        "title": oracle.pde.description or f"{oracle.pde.type} on {oracle.domain.type}",
        "coordinates": {"space": list(problem.space), **({"time": "t"} if problem.times else {})},
        "fields": problem.fields,
        "coefficients": dict(form.coefficients),
        "parameters": dict(form.parameters),
        "equations": problem.equations(solution),
        "domain": domain,
        "initial": problem.initial(solution),
        "boundary": conditions(oracle.bc, domain, problem.fields, problem.coordinates, solution),
        "outputs": problem.outputs(),
        "limits": {"wall_s": case.evaluation_config.timeout_sec},
        "tags": [_TAG, case.id, oracle.pde.type],
    }
    if problem.times:
        document["time"] = list(problem.times)
    if solution:
        document["reference"] = {"kind": "exact", "value": {key: write(u) for key, u in solution.items()}}
    elif problem.times:
        # The case gives both as they are, and the benchmark's own solvers take them so.
        document["accept"] = ["corner-jump"]
    return document
