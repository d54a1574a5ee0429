"""Reaction and diffusion u_t = nu u_xx + rho u (1 - u) on a period: Fourier truth, published scheme.

The published scheme works in float32 with millions of steps, each of which changes u by about one unit in the
last place: its growth stalls where the rounding of the reaction returns what it was given. To reproduce such
data, every rounding is part of the scheme.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.evaluation.datasets import Truth
from sharp.numerics import periodic
from sharp.numerics.blocks import Progress, map_blocks
from sharp.numerics.initial import Evaluate, InitialSet
from sharp.numerics.published import SHORTEST_STEP, compile_for_cpu, saving_times, wrap
from sharp.numerics.spectral import Quadratic
from sharp.problems.problem import Problem

SCHEME = "operator splitting, explicit diffusion and exact logistic reaction, midpoint rule, CFL 0.25"
TRUTH_SCHEME = "Fourier series (3/2 rule), ETDRK4, refined in space and time until self-converged"
CFL = 0.25
Weights = tuple[np.float32, ...]
_PAIRS_PER_CHECK = 512


def sample_initial(problem: Problem, n: int, seed: int) -> InitialSet:
    """Draw n sums of sines, each shifted and stretched to [0, 1]."""
    return periodic.sample_sines(problem, n, seed, unit=True)


def solve_truth(
    problem: Problem,
    initial: Mapping[str, NDArray[Any]],
    t: NDArray[Any],
    *,
    tolerance: float = 1e-8,
    evaluate: Evaluate | None = None,
    progress: Progress | None = None,
) -> Truth:
    """Solve until self-converged, from `evaluate` if given, else from the interpolated values."""
    nu, rho = problem.parameters["nu"], problem.parameters["rho"]
    equation = Quadratic(
        lambda k: rho - nu * k**2, lambda k: np.full(k.shape, -rho + 0j), periodic.period(problem)
    )
    return periodic.fourier_truth(problem, equation, initial, t, tolerance, evaluate, progress)


def solve_pdebench(
    problem: Problem, initial: Mapping[str, NDArray[Any]], t: NDArray[Any], progress: Progress | None = None
) -> dict[str, NDArray[np.float32]]:
    """Solve as the published generator does, rounding `1 / (1 + e * ((1 - u) / u))` in float32 as it does."""
    values = periodic.given(problem, initial).astype(np.float32)
    solve = published_solver(problem, values.shape[-1], t)
    samples = map_blocks(
        lambda rows: solve(values[rows][0]), len(values), 1, f"data of {problem.id}", progress
    )
    return periodic.returned(problem, np.stack(samples))


def published_solver(
    problem: Problem, points: int, t: NDArray[Any]
) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """Return the published scheme `[N] -> [T, N]` for one sample, compiled for the CPU."""
    dx = periodic.period(problem) / points
    dt = np.float32(CFL * 0.5 * dx**2 / problem.parameters["nu"])
    plan = [_count_steps(start, end, dt) for start, end in itertools.pairwise(saving_times(t))]
    weights = [_weights(problem, step, dx) for step in (dt, *(cut for _, cut in plan))]
    interval = _compile_interval(points, weights[0])

    def solve(initial: NDArray[np.float32]) -> NDArray[np.float32]:
        frames = [initial]
        for (steps, cut), cut_weights in zip(plan, weights[1:], strict=True):
            frame = interval(frames[-1], np.float32(1), weights[0], steps, cut_weights, cut > SHORTEST_STEP)
            frames.append(np.asarray(frame))
        return np.stack(frames)

    return solve


def _count_steps(start: np.float32, end: np.float32, dt: np.float32) -> tuple[np.int32, np.float32]:
    """Return how often a float32 clock fits dt between two times, and what is left for a shorter step."""
    most = int((end - start) / dt) + 2
    clock = np.add.accumulate(np.r_[start, np.full(most, dt)])
    steps = np.count_nonzero(end - clock >= dt)
    return np.int32(steps), end - clock[steps]


def _weights(problem: Problem, dt: np.float32, dx: float) -> Weights:
    """Return diffusion numbers nu dt/dx^2 and decay factors exp(-rho dt), of a whole and of half a step."""
    steps = float(dt), 0.5 * float(dt)
    diffusion = [problem.parameters["nu"] * step / dx**2 for step in steps]
    decay = [np.exp(-problem.parameters["rho"] * step) for step in steps]
    return tuple(np.float32(weight) for weight in (*diffusion, *decay))


def _compile_interval(points: int, weights: Weights) -> Callable[..., Any]:
    """Compile the steps between two saving times: (u, one, weights, steps, weights of the cut step, cut).

    A state that two steps give back bit for bit is left alone: all further steps would give it back, too.
    """
    import jax.numpy as jnp
    from jax import lax

    def interval(u: Any, one: Any, weights: Any, steps: Any, cut_weights: Any, cut: Any) -> Any:
        def pair(v: Any) -> Any:
            return _step(_step(wrap(v, 4), weights, one), weights, one)

        def chunk(state: Any) -> Any:
            v, pairs, _ = state
            some = jnp.minimum(pairs, _PAIRS_PER_CHECK)
            v = lax.fori_loop(0, some, lambda _, w: pair(w), v)
            return v, pairs - some, (pair(v) == v).all()

        start = u, steps // 2, (pair(u) == u).all()
        v, _, _ = lax.while_loop(lambda state: (state[1] > 0) & ~state[2], chunk, start)
        v = lax.fori_loop(0, steps % 2, lambda _, w: _step(wrap(w, 2), weights, one), v)
        return jnp.where(cut, _step(wrap(v, 2), cut_weights, one), v)

    one, none = np.float32(1), np.int32(0)
    return compile_for_cpu(
        interval, np.zeros(points, np.float32), one, weights, none, weights, np.bool_(False)
    )


def _step(wide: Any, weights: Any, one: Any) -> Any:
    """Advance M cells to M - 4: half a step predicts the state whose fluxes the whole step uses.

    Where the machine can multiply and add with one rounding, compilers do so; but every product here is
    rounded before it is added. `one` is 1, which the compiler does not know: fused or not, adding `one *
    product` rounds the product first.
    """
    diffusion, half_diffusion, decay, half_decay = weights
    odds = (1 - wide) / wide
    half = 1 / (1 + one * (half_decay * odds[1:-1])) + one * (half_diffusion * _second_difference(wide))
    return 1 / (1 + one * (decay * odds[2:-2])) + one * (diffusion * _second_difference(half))


def _second_difference(u: Any) -> Any:
    jumps = u[1:] - u[:-1]
    return jumps[1:] - jumps[:-1]
