"""The time steps at which explicit schemes of a problem become unstable."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from sharp.evaluation.datasets import Inputs
from sharp.problems import Problem


def explicit_limits(problem: Problem, inputs: Inputs) -> dict[str, float]:
    """Return by name the longest stable step of each explicit part, on the grid and at the start of `inputs`.

    Transport over a cell (Courant, Friedrichs and Lewy 1928) allows dx / max speed, diffusion by forward
    Euler and central differences dx^2 / (2 max diffusivity), logistic growth 2 / rho (LeVeque, "Finite
    Difference Methods", 2007, sections 7.2, 9.3 and 10.7). Parts without an effect have no limit, steady
    problems and those of other families have none at all.
    """
    rates = _RATES.get(problem.family, _none)(problem, inputs)
    return {name: 1.0 / rate for name, rate in rates.items() if rate > 0}


def tightest_limit(problem: Problem, inputs: Inputs) -> tuple[str, float] | None:
    """Return name and length of the shortest of all explicit limits; None where there is none."""
    return min(explicit_limits(problem, inputs).items(), key=lambda limit: limit[1], default=None)


def internal_step(dt: float | None, steps: int | None, t: NDArray[np.floating] | None) -> float | None:
    """Return the time step that a solver printed, or that follows from its number of steps over the times t [T]."""
    if dt is None and steps and t is not None:
        return float(t[-1] - t[0]) / steps
    return dt


def _none(problem: Problem, inputs: Inputs) -> dict[str, float]:  # noqa: ARG001
    return {}


def _advection(problem: Problem, inputs: Inputs) -> dict[str, float]:
    return {"transport": abs(problem.parameters["beta"]) / spacing(problem, inputs)}


def _burgers(problem: Problem, inputs: Inputs) -> dict[str, float]:
    fastest = float(np.abs(next(iter(inputs.arrays.values()))).max())
    dx = spacing(problem, inputs)
    return {"transport": fastest / dx, "diffusion": 2 * problem.parameters["nu"] / np.pi / dx**2}


def _reaction_diffusion(problem: Problem, inputs: Inputs) -> dict[str, float]:
    dx = spacing(problem, inputs)
    return {"diffusion": 2 * problem.parameters["nu"] / dx**2, "reaction": problem.parameters["rho"] / 2}


def _navier_stokes(problem: Problem, inputs: Inputs) -> dict[str, float]:
    from sharp.numerics.gas import gas_of

    gas = gas_of(problem)
    start = {port.field: inputs.arrays[port.name].astype(np.float64) for port in problem.interface.inputs}
    density, dx = start["density"], spacing(problem, inputs)
    sound = np.sqrt(gas.gamma * start["pressure"] / density)
    return {
        "transport": float((np.abs(start["Vx"]) + sound).max()) / dx,
        "diffusion": 2 * float((gas.mu(density) / density).max()) / dx**2,
    }


_RATES: Mapping[str, Callable[[Problem, Inputs], dict[str, float]]] = {
    "advection": _advection,
    "burgers": _burgers,
    "reaction-diffusion": _reaction_diffusion,
    "navier-stokes-1d": _navier_stokes,
}


def spacing(problem: Problem, inputs: Inputs) -> float:
    """Return the distance between neighbouring points of the first axis."""
    low, high = problem.bounds[problem.space[0]]
    points = next(iter(inputs.arrays.values())).shape[-1]
    return float((high - low) / (points - (problem.grid.kind == "nodes")))
