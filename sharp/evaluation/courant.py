"""Saying how a solver's time step compares with the limits of explicit schemes."""

from __future__ import annotations

from sharp.evaluation.datasets import Inputs
from sharp.feedback.stability import internal_step, tightest_limit
from sharp.problems import Problem

_FORMULAS = {
    ("transport", "advection"): "dx/beta",
    ("transport", "burgers"): "dx/max|u|",
    ("transport", "navier-stokes-1d"): "dx/max(|v| + c)",
    ("diffusion", "burgers"): "dx^2/(2 nu/pi)",
    ("diffusion", "reaction-diffusion"): "dx^2/(2 nu)",
    ("diffusion", "navier-stokes-1d"): "dx^2/(2 mu/rho)",
    ("reaction", "reaction-diffusion"): "2/rho",
}


def courant_note(problem: Problem, inputs: Inputs, dt: float | None, steps: int | None = None) -> str:
    """Return a sentence that compares a time step with the tightest explicit limit on the grid of the inputs.

    `dt` is what the solver printed, or else follows from the number of steps. Empty where neither is known or
    the problem has no such limit.
    """
    dt = internal_step(dt or None, steps, inputs.t)
    tightest = tightest_limit(problem, inputs)
    if not dt or tightest is None:
        return ""
    name, limit = tightest
    formula = _FORMULAS.get((name, problem.family), "")
    return (
        f"Its time step {dt:.3g} is {dt / limit:.2g} times the explicit {name} limit "
        f"{f'{formula} = ' if formula else ''}{limit:.3g} on the output grid."
    )
