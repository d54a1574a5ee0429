"""Saying how a solver's time step compares with the limits of explicit schemes."""

from __future__ import annotations

from sharp.problems import Problem
from sharp.reference.datasets import Inputs
from sharp.reference.families import tightest_limit
from sharp.reference.metrics import internal_step


def courant_note(problem: Problem, inputs: Inputs, dt: float | None, steps: int | None = None) -> str:
    """Return a sentence that compares a time step with the tightest explicit limit on the grid of the inputs.

    `dt` is what the solver printed, or else follows from the number of steps. Empty where neither is known or
    the problem has no such limit.
    """
    dt = internal_step(dt or None, steps, inputs.t)
    tightest = tightest_limit(problem, inputs)
    if not dt or tightest is None:
        return ""
    return (
        f"Its time step {dt:.3g} is {dt / tightest.length:.2g} times the explicit {tightest.part} limit "
        f"{tightest.formula} = {tightest.length:.3g} on the output grid."
    )
