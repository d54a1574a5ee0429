"""What a feedback measure is: what it is given, what it returns, and what judges are told about it.

Every module of measures offers them as `MEASURES`, a tuple; `registry` collects them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from sharp.evaluation.datasets import Inputs
from sharp.problems import Problem

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """One scored run as measures see it; all arrays finite and of the agreed shapes, in any float type.

    `prediction` and `reference` hold one array a return port: [n, T+1, N], Darcy [n, N, N]; `reference` is None
    where a measure may not see it. `coarse` is what the same solver was given with half as many points of the
    same samples (`coarse.coarsened`), and its answer. `internal_dt` and `internal_steps` are what the program
    printed of its own time steps, None where it printed nothing.
    """

    problem: Problem
    inputs: Inputs
    prediction: Mapping[str, Array]
    reference: Mapping[str, Array] | None = None
    coarse: tuple[Inputs, Mapping[str, Array]] | None = None
    internal_dt: float | None = None
    internal_steps: int | None = None


@dataclass(frozen=True)
class Value:
    """What a measure found: >= 0, dimensionless, 0 for a perfect solution; None, and why, where it cannot tell."""

    value: float | None
    note: str = ""


@dataclass(frozen=True)
class Measure:
    """A kind of feedback on a run; smaller is better.

    `families` are those of the problems it is for, none meaning all. `description` is one or two sentences for
    judges; `shape` says what it looks at, `normalisation` what the number is relative to, `source` where it
    comes from. Only a measure that `needs_reference` may derive anything from the data set's solution.
    """

    name: str
    title: str
    families: tuple[str, ...]
    description: str
    source: str
    shape: str
    normalisation: str
    needs_reference: bool
    needs_coarse: bool
    function: Callable[[Case], Value]
