"""The families of benchmark problems by name: residuals, limits of time steps, and smooth problems on nested grids.

Of other problems the solution is known where it can be solved for from expressions
(`sharp.reference.sample_generation`), and the residual is that of `sharp.reference.equation_residual`. Orders of
accuracy are measured on smooth inputs: fixed functions of each family, analytic and periodic where the problem is,
evaluated exactly at the points of every grid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sharp.errors import DataError
from sharp.problems import Problem
from sharp.reference import advection, burgers, darcy, navier_stokes, reaction_diffusion
from sharp.reference.datasets import Inputs, ReferenceSolution, uniform_points
from sharp.reference.family import Array, Arrays, BenchmarkFamily, StepLimit
from sharp.reference.initial import Evaluate
from sharp.reference.residual import FEWEST_TIMES, GridResidual

FAMILIES: Mapping[str, BenchmarkFamily] = {
    module.FAMILY.name: module.FAMILY
    for module in (advection, burgers, reaction_diffusion, navier_stokes, darcy)
}
# Of all samples a residual would cost more than the rest of the scoring.
_RESIDUAL_SAMPLES = 16
# The points along a side of nested grids: cells, and nodes.
CELLS = (64, 128, 256, 512, 1024)
NODES = (17, 33, 65, 129, 257)


def family_of(problem: Problem) -> BenchmarkFamily:
    """Return the family of a problem; raises `DataError` where it is none of these."""
    if problem.family not in FAMILIES:
        raise DataError(
            f"{problem.id}: solutions follow from values on a grid for the families {', '.join(FAMILIES)}, found the "
            f"family {problem.family}; make data from the specification (sharp data make), or use a file as it is, "
            "without the reference solution (evaluation.data)"
        )
    return FAMILIES[problem.family]


def residual(problem: Problem, inputs: Inputs, prediction: Arrays) -> GridResidual:
    """Measure the residual of a prediction, one array a return port: [n, T+1, N], Darcy [n, N, N].

    Where numbers overflow, the residual of a family counts as 1. Raises `DataError` where an array is missing, not
    finite or of another shape, and where there are too few output times or points, or for a problem of no family
    another reason of `equation_residual.why_none`.
    """
    with np.errstate(all="ignore"):
        if family := FAMILIES.get(problem.family):
            return family.residual(problem, inputs, prediction)
        from sharp.reference.equation_residual import equation_residual

        return equation_residual(problem, inputs, prediction)


def residual_obstacle(problem: Problem, inputs: Inputs) -> str:
    """Return why no residual of predictions for these inputs can be measured; empty where it can."""
    if inputs.t is not None and len(inputs.t) < FEWEST_TIMES:
        return f"a residual takes at least {FEWEST_TIMES} output times, and there are {len(inputs.t)}"
    if problem.family in FAMILIES:
        return ""
    from sharp.reference.equation_residual import why_none

    return why_none(problem, inputs)


def sampled_residual(problem: Problem, inputs: Inputs, prediction: Arrays) -> tuple[float | None, str]:
    """Return residual and note of at most 16 samples spread evenly; None, and why, where there is no finite one."""
    if reason := residual_obstacle(problem, inputs):
        return None, reason
    step = -(-len(next(iter(prediction.values()))) // _RESIDUAL_SAMPLES)
    some = replace(inputs, arrays={name: values[::step] for name, values in inputs.arrays.items()})
    with np.errstate(all="ignore"):
        found = residual(problem, some, {name: values[::step] for name, values in prediction.items()})
    return (found.value, found.note) if math.isfinite(found.value) else (None, "the residual overflows")


def explicit_limits(problem: Problem, inputs: Inputs) -> tuple[StepLimit, ...]:
    """Return the longest stable step of each explicit part, on the grid and at the start of `inputs`.

    Transport over a cell (Courant, Friedrichs and Lewy 1928) allows dx / max speed, diffusion by forward
    Euler and central differences dx^2 / (2 max diffusivity), logistic growth 2 / rho (LeVeque, "Finite
    Difference Methods", 2007, sections 7.2, 9.3 and 10.7). Parts without an effect have no limit, steady
    problems and those of no family have none at all.
    """
    family = FAMILIES.get(problem.family)
    if family is None or family.step_limits is None:
        return ()
    return tuple(limit for limit in family.step_limits(problem, inputs) if limit.rate > 0)


def tightest_limit(problem: Problem, inputs: Inputs) -> StepLimit | None:
    """Return the shortest of all explicit limits; None where there is none."""
    return max(explicit_limits(problem, inputs), key=lambda limit: limit.rate, default=None)


def resolutions(problem: Problem) -> tuple[int, ...]:
    """Return the points per direction of nested grids, coarse to fine; the spacing halves from one to the next."""
    return NODES if problem.grid.kind == "nodes" else CELLS


def has_smooth_inputs(problem: Problem) -> bool:
    """Whether smooth inputs are known for the problem's family and grid."""
    family = FAMILIES.get(problem.family)
    return family is not None and problem.grid.kind == family.grid


def smooth_inputs(problem: Problem, points: int) -> Inputs:
    """Return the smooth inputs on one grid at the start, the middle and the end, in float64.

    Raises `DataError` for a problem without any.
    """
    duration, t = _smooth_family(problem).smooth.duration, None
    if problem.time is not None and duration is not None:
        t = np.linspace(problem.time[0], problem.time[0] + duration(problem), 3)
    x = uniform_points(problem, problem.space[0], points)
    return Inputs(smooth_functions(problem)(x), t, x)


def smooth_functions(problem: Problem) -> Evaluate:
    """Return the function that gives `{port: [n, m]}` at points [m], in two dimensions `{port: [n, m, m]}`.

    Raises `DataError` for a problem without any.
    """
    low, high = problem.bounds[problem.space[0]]
    fields = _smooth_family(problem).smooth.fields

    def evaluate(points: Array) -> dict[str, Array]:
        place = (points - low) / (high - low)
        return {port.name: fields[port.field](place) for port in problem.interface.inputs}

    return evaluate


def smooth_reference(problem: Problem, points: int) -> ReferenceSolution:
    """Return the solution for the smooth inputs at the points of one grid, and its error (about 1e-5 at most).

    Raises `DataError` for a problem without any.
    """
    family = _smooth_family(problem)
    if family.smooth.solve is not None:
        return family.smooth.solve(problem, points)
    given = smooth_inputs(problem, points)
    return family.solve_reference(problem, given.arrays, given.t, evaluate=smooth_functions(problem))


def _smooth_family(problem: Problem) -> BenchmarkFamily:
    if problem.family not in FAMILIES:
        raise DataError(
            f"{problem.id}: no smooth solutions are known for the family {problem.family}; "
            f"those with an order of accuracy to measure are {', '.join(FAMILIES)}"
        )
    family = FAMILIES[problem.family]
    if problem.grid.kind != family.grid:
        raise DataError(
            f"{problem.id}: orders of accuracy of the family {problem.family} are measured on grids of "
            f"{family.grid}, found {problem.grid.kind}"
        )
    return family
