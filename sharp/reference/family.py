"""What a family of benchmark problems offers: data, reference solutions, residual, smooth inputs and metrics.

Each family is one module with a `FAMILY`; `sharp.reference.families` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sharp.problems.problem import Problem
from sharp.reference.chunking import Progress
from sharp.reference.datasets import Inputs, ReferenceSolution
from sharp.reference.initial import Evaluate, InitialSet
from sharp.reference.metrics import FeedbackMetric
from sharp.reference.residual import GridResidual

Array = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]


class ReferenceSolver(Protocol):
    """Solves until self-converged, from `evaluate` if given, else from the values of `initial` [n, ...].

    Times `t` [T] are None in steady problems. `tolerance` is the relative error to reach.
    """

    def __call__(
        self,
        problem: Problem,
        initial: Arrays,
        t: Any,
        *,
        tolerance: float = ...,
        evaluate: Evaluate | None = None,
        progress: Progress | None = None,
    ) -> ReferenceSolution:
        """Return the solution at the times, at the points of `initial`."""
        ...


class PublishedSolver(Protocol):
    """Solves as PDEBench's generator of the family does, in float32."""

    def __call__(
        self, problem: Problem, initial: Arrays, t: Any, progress: Progress | None = None
    ) -> dict[str, NDArray[np.float32]]:
        """Return the solution by return port."""
        ...


@dataclass(frozen=True)
class StepLimit:
    """The longest stable step of an explicit scheme for one part of an equation is 1 / `rate`, by `formula`."""

    part: str
    formula: str
    rate: float

    @property
    def length(self) -> float:
        """The longest stable step."""
        return 1.0 / self.rate


@dataclass(frozen=True)
class SmoothTestProblem:
    """Analytic inputs on which orders of accuracy are measured: those of data sets may be folded or cut out.

    `fields` are functions of the place s in [0, 1] by field, [m] -> [n, m] (in two dimensions [n, m, m]).
    `duration` gives the time over which the solution moves by many cells and yet keeps its smoothness; steady
    problems have `solve(problem, points)` instead, which gives the solution for these inputs.
    """

    fields: Mapping[str, Callable[[Array], Array]]
    duration: Callable[[Problem], float] | None = None
    solve: Callable[[Problem, int], ReferenceSolution] | None = None


@dataclass(frozen=True)
class BenchmarkFamily:
    """A family of problems for which data can be generated and solutions follow from values on a grid.

    `sample_initial(problem, n, seed)` draws inputs; each depends on the seed and its place alone. The schemes are
    named in the data files. `residual` measures how well a prediction satisfies the equations
    (`sharp.reference.residual`); `step_limits` tells what bounds explicit time steps on the grid of given inputs.
    """

    name: str
    sample_initial: Callable[[Problem, int, int], InitialSet]
    solve_reference: ReferenceSolver
    reference_scheme: str
    solve_pdebench: PublishedSolver
    pdebench_scheme: str
    residual: Callable[[Problem, Inputs, Arrays], GridResidual]
    smooth: SmoothTestProblem
    metrics: tuple[FeedbackMetric, ...]
    step_limits: Callable[[Problem, Inputs], tuple[StepLimit, ...]] | None = None

    @property
    def steady(self) -> bool:
        """Whether the problems have no time; their grids consist of nodes, the others' of cells."""
        return self.smooth.duration is None


def about(mean: float, amplitude: float, shift: float = 0.0) -> Callable[[Array], Array]:
    """Return four smooth functions of period 1 at places [m] -> [4, m], `amplitude` times their size about a mean.

    Their values are about 0 before scaling and their slopes up to 2 pi. The Fourier coefficients of the last decay
    slowest, as 0.325^k: 32 waves resolve it to round-off.
    """

    def waves(s: Array) -> Array:
        first = 2 * np.pi * (s + shift)
        return mean + amplitude * np.stack(
            [
                np.sin(first),
                (np.sin(first + 1) + np.cos(2 * first) / 2) / 2,
                (np.exp(np.cos(first - 2)) - 1.27) / 1.5,
                (1 / (1.7 + np.cos(first + 0.5)) - 0.73) / 0.8,
            ]
        )

    return waves
