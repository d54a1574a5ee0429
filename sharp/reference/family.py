"""What a family of benchmark problems offers: data, reference solutions, residual, smooth inputs and metrics.

Each family is one module with a `FAMILY`; `sharp.reference.families` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.problems import Problem
from sharp.reference.chunking import Progress, map_blocks
from sharp.reference.datasets import Inputs, ReferenceSolution
from sharp.reference.initial import Evaluate, InitialSet
from sharp.reference.metrics import FeedbackMetric
from sharp.reference.residual import GridResidual

Array = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class ReferenceScheme:
    """A way to solve until self-converged.

    `prepare(problem, values, t, tolerance, evaluate)` returns what solves the samples of a slice: solutions, and the
    relative error of each [n]. `evaluate` gives the initial functions where they are known. `tolerance` is the usual
    relative error to reach; so many samples are solved `together`.
    """

    name: str
    prepare: Callable[[Problem, Array, Any, float, Evaluate | None], Callable[[slice], tuple[Array, Array]]]
    tolerance: float
    together: int = 1


@dataclass(frozen=True)
class PublishedScheme:
    """A way to solve as PDEBench's generator of the family does, in float32.

    `prepare(problem, values, t)` returns what solves the samples of a slice; so many are solved `together`.
    """

    name: str
    prepare: Callable[[Problem, Array, Any], Callable[[slice], NDArray[np.float32]]]
    together: int = 1


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


def only_input(problem: Problem, initial: Arrays) -> Array:
    """Return the only input of a solver [n, ...] in double precision."""
    return np.asarray(initial[problem.interface.inputs[0].name], np.float64)


@dataclass(frozen=True)
class BenchmarkFamily:
    """A family of problems for which data can be generated and solutions follow from values on a grid.

    `sample_initial(problem, n, seed)` draws inputs; each depends on the seed and its place alone. `residual` measures
    how well a prediction satisfies the equations (`sharp.reference.residual`); `step_limits` tells what bounds explicit
    time steps on the grid of given inputs. `values` checks inputs and makes one array of them, of several `fields`
    [n, fields, ...].
    """

    name: str
    sample_initial: Callable[[Problem, int, int], InitialSet]
    reference: ReferenceScheme
    published: PublishedScheme
    residual: Callable[[Problem, Inputs, Arrays], GridResidual]
    smooth: SmoothTestProblem
    metrics: tuple[FeedbackMetric, ...]
    step_limits: Callable[[Problem, Inputs], tuple[StepLimit, ...]] | None = None
    values: Callable[[Problem, Arrays], Array] = only_input
    fields: tuple[str, ...] = ()

    @property
    def steady(self) -> bool:
        """Whether the problems have no time."""
        return self.smooth.duration is None

    @property
    def grid(self) -> str:
        """What the grids of the problems consist of."""
        return "nodes" if self.steady else "cells"

    def solve_reference(
        self,
        problem: Problem,
        initial: Arrays,
        t: NDArray[Any] | None = None,
        *,
        tolerance: float | None = None,
        evaluate: Evaluate | None = None,
        progress: Progress | None = None,
    ) -> ReferenceSolution:
        """Solve until self-converged at times t [T] and the points of `initial`, None for steady problems.

        Solves from `evaluate` if given, else from the values of `initial` [n, ...], until the relative error is below
        `tolerance`. Raises `DataError` for inputs that the equations do not allow.
        """
        values = self.values(problem, initial)
        work = self.reference.prepare(problem, values, t, tolerance or self.reference.tolerance, evaluate)
        message = f"reference solution of {problem.id}"
        solved = map_blocks(work, len(values), self.reference.together, message, progress)
        frames, errors = (np.concatenate(parts) for parts in zip(*solved, strict=True))
        return ReferenceSolution(self._returned(problem, frames), errors)

    def solve_pdebench(
        self,
        problem: Problem,
        initial: Arrays,
        t: NDArray[Any] | None = None,
        progress: Progress | None = None,
    ) -> dict[str, NDArray[np.float32]]:
        """Solve as PDEBench's generator of the family does, in float32, by return port.

        Raises `DataError` for inputs that the equations do not allow, and for times that are not equally spaced.
        """
        values = self.values(problem, initial)
        work = self.published.prepare(problem, values, t)
        message = f"data of {problem.id}"
        frames = map_blocks(work, len(values), self.published.together, message, progress)
        return self._returned(problem, np.concatenate(frames))

    def _returned(self, problem: Problem, frames: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {
            port.name: frames[:, self.fields.index(port.field)] if self.fields else frames
            for port in problem.interface.returns
        }


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
