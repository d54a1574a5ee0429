"""The families of benchmark problems by name, and what a problem's family says of a prediction for it.

Of other problems the solution is known where it can be solved for from expressions
(`sharp.reference.sample_generation`), and no residual on the output grid is defined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sharp.errors import DataError, SpecificationError
from sharp.problems.problem import Problem
from sharp.reference import advection, burgers, darcy, navier_stokes, reaction_diffusion
from sharp.reference.datasets import Inputs
from sharp.reference.family import Arrays, BenchmarkFamily, StepLimit
from sharp.reference.residual import FEWEST_TIMES, GridResidual

FAMILIES: Mapping[str, BenchmarkFamily] = {
    module.FAMILY.name: module.FAMILY
    for module in (advection, burgers, reaction_diffusion, navier_stokes, darcy)
}
# Of all samples a residual would cost more than the rest of the scoring.
_RESIDUAL_SAMPLES = 16


def family_of(problem: Problem) -> BenchmarkFamily:
    """Return the family of a problem; raises `DataError` where it is none of these."""
    if problem.family not in FAMILIES:
        raise DataError(
            f"{problem.id}: solutions follow from values on a grid for the families {', '.join(FAMILIES)}, found the "
            f"family {problem.family}; make data from the specification (sharp data make), or use a file as it is, "
            "without the truth (evaluation.data)"
        )
    return FAMILIES[problem.family]


def residual(problem: Problem, inputs: Inputs, prediction: Arrays) -> GridResidual:
    """Measure the residual of a prediction, one array a return port: [n, T+1, N], Darcy [n, N, N].

    Where numbers overflow, a residual counts as 1. Raises `SpecificationError` for a problem of no family, and
    `DataError` where an array is missing, not finite or of another shape, or there are fewer than `FEWEST_TIMES`
    output times.
    """
    if problem.family not in FAMILIES:
        raise SpecificationError(
            f"{problem.id}: no residual is defined for the family {problem.family}; it is for {', '.join(FAMILIES)}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        return FAMILIES[problem.family].residual(problem, inputs, prediction)


def sampled_residual(problem: Problem, inputs: Inputs, prediction: Arrays) -> tuple[float | None, str]:
    """Return residual and note of at most 16 samples spread evenly; None, and why, where there is no finite one."""
    if problem.family not in FAMILIES:
        return None, f"no residual is defined for the family {problem.family}"
    if inputs.t is not None and len(inputs.t) < FEWEST_TIMES:
        return None, f"a residual takes at least {FEWEST_TIMES} output times, and there are {len(inputs.t)}"
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
