"""The case files of pde-agent-bench (arXiv 2605.09636): JSON lines, and what of a line a problem is made of.

Models are lenient where specifications are strict: keys that say how the benchmark's own solvers go about a case (mesh,
elements, linear solver) are none of the problem, and are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from sharp.error_messages import clip
from sharp.errors import DataError


@dataclass
class UnsupportedCase(Exception):
    """Why a case cannot be imported: a reason that cases share, and what it is in this one."""

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else self.reason


class CaseModel(BaseModel):
    """A mapping of a case, whose unknown keys are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


Measures = TypeVar("Measures", bound=CaseModel)


class Coefficient(CaseModel):
    """A coefficient: `constant` with a `value`, or `expr` with an expression of the space coordinates."""

    type: str = "constant"
    value: float | None = None
    expr: str | None = None


class Times(CaseModel):
    """The time interval of a transient case."""

    t0: float = 0.0
    t_end: float


class CaseEquation(CaseModel):
    """The equation: its family (`type`), parameters and coefficients, and either a solution or the data."""

    type: str
    description: str = ""
    pde_params: dict[str, Any] = {}
    coefficients: dict[str, Coefficient] = {}
    manufactured_solution: dict[str, Any] = {}
    source_term: Any = None
    initial_condition: Any = None
    initial_velocity: Any = None
    time: Times | None = None
    t_final: float = 0.1


class Shape(CaseModel):
    """The domain: the name of a shape and its measures; L-shapes have been given by two boxes as well."""

    type: str
    geometry_params: dict[str, Any] = {}
    outer_bbox: tuple[float, float, float, float] | None = None
    cutout_bbox: tuple[float, float, float, float] | None = None


class CaseGrid(CaseModel):
    """The grid on which solutions are compared: numbers of points along the axes."""

    nx: int
    ny: int
    nz: int | None = None


class CaseOutput(CaseModel):
    """Where the solution is wanted."""

    grid: CaseGrid


class Oracle(CaseModel):
    """The problem, as the benchmark's own solvers get it."""

    pde: CaseEquation
    domain: Shape
    bc: dict[str, Any] = {}
    output: CaseOutput


class CaseLimits(CaseModel):
    """How long a solver may take, in seconds."""

    timeout_sec: float = 300.0


class BenchCase(CaseModel):
    """One case of the benchmark."""

    id: str
    oracle_config: Oracle
    evaluation_config: CaseLimits = CaseLimits()


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line that is not empty; raises `DataError` where the file cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text, at byte {error.start}") from None
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def read_case(line: str) -> BenchCase:
    """Read the case of a line; raises `UnsupportedCase`."""
    try:
        return BenchCase.model_validate(json.loads(line))
    except ValidationError as error:
        raise UnsupportedCase("not of the form of a case", _first(error)) from None
    except (ValueError, RecursionError):
        raise UnsupportedCase("not of the form of a case", "the line is no JSON") from None


def measures(model: type[Measures], shape: Shape) -> Measures:
    """Return the measures of a domain in the form of its shape; raises `UnsupportedCase`."""
    try:
        return model.model_validate(shape.geometry_params)
    except ValidationError as error:
        raise UnsupportedCase(
            "not of the form of a case", f"domain.geometry_params.{_first(error)}"
        ) from None


def _first(error: ValidationError) -> str:
    fault = error.errors()[0]
    place = ".".join(map(str, fault["loc"])) or "the line"
    return f"{place}: {fault['msg']}, found {clip(repr(fault['input']), 60)}"
