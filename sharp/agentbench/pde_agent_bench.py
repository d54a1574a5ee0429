"""Import of the scalar cases of pde-agent-bench (arXiv 2605.09636, CC BY 4.0) as problem specifications.

The source term of a case with a manufactured solution is derived from it; the solution becomes the exact reference.
Each import has been read as a specification, and its exact solution checked against equations and conditions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from hpc.files import make_directory, write_atomic
from sharp.agentbench.pab_document import document
from sharp.agentbench.pab_form import BenchCase, Unfit, read_case, read_lines
from sharp.errors import SpecificationError
from sharp.problems import Problem, parse_problem
from sharp.problems.exactness import exactness_concerns
from sharp.problems.system import system_of

_HEADER = """\
# Case {case} of pde-agent-bench (arXiv 2605.09636), by its authors, licence CC BY 4.0.
# Changed: written as a problem specification; a source term that the case leaves open is derived from its solution.
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


def save(found: Imported | Refused, folder: Path) -> Path | Refused:
    """Write the specification of an imported case into a folder and return its path; others are returned as they are.

    Another file of the same name is never overwritten: the case counts as refused.
    """
    if isinstance(found, Refused):
        return found
    make_directory(folder)
    path = folder / f"{found.problem.id}.yaml"
    if not path.exists():
        write_atomic(path, found.text.encode())
    elif path.read_bytes() != found.text.encode():
        return Refused(found.case, "another file of this name is there", str(path))
    return path


def _imported(line: str, name: str) -> Imported | Refused:
    try:
        case = read_case(line)
        name = case.id
        text = _text(case)
        problem = parse_problem(text, name)
        _check(problem)
    except Unfit as unfit:
        return Refused(name, unfit.reason, unfit.detail)
    except SpecificationError as error:
        return Refused(name, "not a valid specification", str(error).partition("\n")[0])
    return Imported(name, problem, text)


def _text(case: BenchCase) -> str:
    written = {key: value for key, value in document(case).items() if value not in ({}, [])}
    body = yaml.safe_dump(written, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)
    return _HEADER.format(case=" ".join(case.id.split())) + body


def _check(problem: Problem) -> None:
    """Raise `Unfit` where the exact solution does not satisfy an equation or a condition."""
    with np.errstate(all="ignore"):
        for concern in exactness_concerns(system_of(problem)):
            if concern.verdict == "refuse":
                raise Unfit("a solution that does not satisfy the case's own conditions", concern.message)
