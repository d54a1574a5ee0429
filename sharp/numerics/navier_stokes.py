"""Compressible Navier-Stokes equations of an ideal gas on a periodic interval: reference data.

    rho_t + (rho v)_x = 0,    (rho v)_t + (rho v^2 + p - sigma)_x = 0,    E_t + ((E + p) v - v sigma)_x = 0,
    E = p / (Gamma - 1) + rho v^2 / 2,    sigma = mu v_x

with mu as the equations of the problem state it: zeta + 4/3 eta (dynamic viscosity), or that times a power
of the density. The published data solve the equations with mu = (zeta + 4/3 eta) rho (kinematic viscosity),
although they are described by those with dynamic viscosity; the solutions of the two are 8 % apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.errors import DataError
from sharp.evaluation.datasets import Truth, uniform_points
from sharp.numerics.blocks import Progress, map_blocks
from sharp.numerics.gas import FIELDS, gas_of
from sharp.numerics.godunov import published_solver
from sharp.numerics.initial import Evaluate, InitialSet, SineSums
from sharp.numerics.lagrangian import interpolate, solve_flow
from sharp.numerics.published import saving_times
from sharp.numerics.spectral import relative_l2
from sharp.problems.problem import Problem

Array = NDArray[np.float64]
Starts = Callable[[int, float], Array]

SCHEME = (
    "finite volumes, limited slopes (MC), HLLC flux, midpoint rule, CFL 0.3; kinematic viscosity, split off"
)
TRUTH_SCHEME = "Lagrangian differences, ARK3(2)4L[2]SA, refined until self-converged, extrapolated"
LARGEST_WAVE = 3
FOLDED_SHARE, WINDOWED_SHARE = 0.1, 0.5
SMALLEST = {"density": 1.0, "pressure": 10.0}
_REFINEMENT = 1.5
_MOST_PARTICLES = 8192


def sample_initial(problem: Problem, n: int, seed: int) -> InitialSet:
    """Draw n initial conditions on the output grid of the problem.

    A family of our own in the spirit of the published one, with its ranges. Each field is a sum of two
    sines with amplitudes up to 1 and wave numbers 1 to 3, one in ten folded to one sign, every second one
    cut out by a window. The velocity is that sum; density and pressure are `s (a + b g)` with g the sum
    scaled to [0, 1], a and b between 1 and 10, and s = 1 and 10. The first samples stay the same when more
    are drawn from the same seed.
    """
    left, right = problem.bounds["x"]
    x = uniform_points(problem, "x", problem.grid.points["x"])
    drawn = {field: _draw(n, np.random.default_rng([seed, index])) for index, field in enumerate(FIELDS)}
    functions = {
        field: sums.scaled_to_unit((x - left) / (right - left)) if field in SMALLEST else sums
        for field, (sums, _) in drawn.items()
    }

    def evaluate(points: Array) -> dict[str, Array]:
        phase = (points - left) / (right - left)
        return {
            port.name: _ranged(port.field, functions[port.field](phase), drawn[port.field][1])
            for port in problem.interface.inputs
        }

    return InitialSet({port: values.astype(np.float32) for port, values in evaluate(x).items()}, evaluate)


def solve_truth(
    problem: Problem,
    initial: Mapping[str, NDArray[Any]],
    t: NDArray[Any],
    *,
    tolerance: float = 3e-5,
    evaluate: Evaluate | None = None,
    progress: Progress | None = None,
) -> Truth:
    """Solve in Lagrangian coordinates on finer and finer grids until self-converged, and extrapolate.

    Velocity, density and pressure [n, N] at t[0] are those of `evaluate` where given, else trigonometric
    interpolants of `initial`. The error, at last below `tolerance` or with more than 5400 particles, is the
    distance of the finest solution from the extrapolated one, which is returned; so it is pessimistic. That
    of interpolation, if larger, takes its place. Raises `DataError` where density or pressure is not
    positive.
    """
    gas, bounds = gas_of(problem), problem.bounds["x"]
    values = stacked(problem, initial)
    times = np.asarray(t, np.float64)
    starts = _interpolated(values) if evaluate is None else _evaluated(problem, evaluate)

    def solve(sample: int, particles: int) -> Array:
        nodes, cells = (starts(particles, shift)[sample] for shift in (-0.5, 0.0))
        frames = solve_flow(gas, nodes, cells, bounds, times, values.shape[-1], 0.01 * tolerance)
        frames[:, 0] = values[sample]
        return frames

    def work(rows: slice) -> tuple[Array, float]:
        return _extrapolated(lambda particles: solve(rows.start, particles), values.shape[-1], tolerance)

    frames, errors = zip(*map_blocks(work, len(values), 1, f"truth of {problem.id}", progress), strict=True)
    error = np.array(errors)
    if evaluate is None:
        error = np.maximum(error, interpolation_error(values))
    return Truth(_returned(problem, np.stack(frames)), error)


def solve_pdebench(
    problem: Problem, initial: Mapping[str, NDArray[Any]], t: NDArray[Any], progress: Progress | None = None
) -> dict[str, NDArray[np.float32]]:
    """Solve as the published data were made, in float32: viscosity is kinematic whatever the problem states.

    Raises `DataError` where density or pressure is not positive, or output times are not equally spaced.
    """
    values = stacked(problem, initial).astype(np.float32)
    left, right = problem.bounds["x"]
    dx = (right - left) / values.shape[-1]
    gamma, eta, zeta = (problem.parameters[name] for name in ("Gamma", "eta", "zeta"))
    solve = published_solver(gamma, eta + (zeta + eta / 3), dx, values.shape[-1], saving_times(t))
    frames = map_blocks(
        lambda rows: solve(values[rows.start]), len(values), 1, f"published scheme, {problem.id}", progress
    )
    return _returned(problem, np.stack(frames))


def stacked(problem: Problem, initial: Mapping[str, NDArray[Any]]) -> Array:
    """Return velocity, density and pressure [n, 3, N] in double precision.

    Raises `DataError` where shapes differ, or density or pressure is not positive.
    """
    names = {port.field: port.name for port in problem.interface.inputs}
    arrays = {field: np.asarray(initial[names[field]], np.float64) for field in FIELDS}
    shapes = {names[field]: list(array.shape) for field, array in arrays.items()}
    if len({tuple(shape) for shape in shapes.values()}) > 1 or arrays["Vx"].ndim != 2:
        raise DataError(f"{problem.id}: expected initial conditions of one shape [n, N], found {shapes}")
    for field in SMALLEST:
        if not np.all(arrays[field] > 0):
            lowest = arrays[field].min()
            raise DataError(
                f"{problem.id}: expected {names[field]} to be positive, found the minimum {lowest:g}"
            )
    return np.stack(list(arrays.values()), axis=1)


def interpolation_error(values: Array) -> Array:
    """Estimate how far the truth of samples [n, 3, N] may be off as nothing is known between their values.

    Interpolation from every second value, compared with the others, shows the error at twice the spacing;
    that of a kink is proportional to the spacing to the power 3/2. Returns one relative error a sample.
    """
    between = interpolate(values[..., ::2], values.shape[-1] // 2, 0.5)
    return relative_l2(between, values[..., 1::2]) / 2**1.5


def _extrapolated(solve: Callable[[int], Array], particles: int, tolerance: float) -> tuple[Array, float]:
    """Refine by factors of 3/2 and extrapolate the last two solutions (Richardson, second order)."""
    coarse = solve(particles)
    while True:
        finer = round(_REFINEMENT * particles)
        fine = solve(finer)
        limit = fine + (fine - coarse) / ((finer / particles) ** 2 - 1)
        error = float(np.linalg.norm(fine - limit) / np.linalg.norm(limit))
        if error <= tolerance or _REFINEMENT * finer > _MOST_PARTICLES:
            return limit, error
        particles, coarse = finer, fine


def _interpolated(values: Array) -> Starts:
    return cache(lambda particles, shift: interpolate(values, particles, shift))


def _evaluated(problem: Problem, evaluate: Evaluate) -> Starts:
    left, right = problem.bounds["x"]

    def start(particles: int, shift: float) -> Array:
        cells = np.arange(particles) + 0.5 + shift
        return stacked(problem, evaluate(left + cells * (right - left) / particles))

    return cache(start)


def _returned(problem: Problem, frames: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Name velocity, density and pressure, [n, 3, T+1, N], after the return ports."""
    return {port.name: frames[:, FIELDS.index(port.field)] for port in problem.interface.returns}


def _draw(n: int, generator: np.random.Generator) -> tuple[SineSums, Array]:
    """Draw n sums of sines, and the uniform numbers [n, 2] for their ranges."""
    draws = generator.random((n, 13))
    sines = draws[:, :6].reshape(n, 3, 2, 1)
    folding, sign, windowing, left, right = draws[:, 6:11].T[..., None]
    windowed = windowing < WINDOWED_SHARE
    sums = SineSums(
        amplitude=sines[:, 0],
        wave=1 + np.floor(LARGEST_WAVE * sines[:, 1]),
        phase=2 * np.pi * sines[:, 2],
        sign=np.where(folding < FOLDED_SHARE, np.where(sign < 0.5, -1.0, 1.0), 0.0),
        left=np.where(windowed, 0.1 + 0.35 * left, -np.inf),
        right=np.where(windowed, 0.55 + 0.35 * right, np.inf),
    )
    return sums, draws[:, 11:]


def _ranged(field: str, shapes: Array, uniform: Array) -> Array:
    if field not in SMALLEST:
        return shapes
    low, spread = (1 + 9 * uniform.T)[..., None]
    return np.asarray(SMALLEST[field] * (low + spread * shapes))
