"""Reaction and diffusion u_t = nu u_xx + rho u (1 - u) on a period: Fourier series, published scheme, metrics.

The published scheme works in float32 with millions of steps, each of which changes u by about one unit in the
last place: its growth stalls where the rounding of the reaction returns what it was given. To reproduce such
data, every rounding is part of the scheme.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.problems import Problem
from sharp.reference import periodic_problems
from sharp.reference.datasets import Inputs, spacing
from sharp.reference.family import BenchmarkFamily, PublishedScheme, SmoothTestProblem, StepLimit, about
from sharp.reference.metrics import (
    Array,
    FieldSample,
    MetricInput,
    MetricValue,
    ratio,
    run_metric,
    sample_metric,
    step_excess,
)
from sharp.reference.residual import BalanceLaw, BalanceLaws, Fields, FluxTerm, evolution_residual
from sharp.reference.spectral import QuadraticPde

CFL = 0.25
Weights = tuple[np.float32, ...]
# How many pairs of steps are taken before it is checked again whether the state still changes.
_PAIRS_PER_CHECK = 512
# Growth counts as at least this share of rho dt u.
_NEGLIGIBLE = 1e-3


def _equation(problem: Problem) -> QuadraticPde:
    nu, rho = problem.parameters["nu"], problem.parameters["rho"]
    return QuadraticPde(
        lambda k: rho - nu * k**2, lambda k: np.full(k.shape, -rho + 0j), periodic_problems.period(problem)
    )


def _split(problem: Problem, values: Array, t: NDArray[Any]) -> Callable[[slice], NDArray[np.float32]]:
    """Prepare the published scheme for one sample at a time; it rounds `1 / (1 + e * ((1 - u) / u))` in float32."""
    from sharp.reference.pdebench_schemes import SHORTEST_STEP, saving_times  # loads JAX

    points = values.shape[-1]
    dx = periodic_problems.period(problem) / points
    dt = np.float32(CFL * 0.5 * dx**2 / problem.parameters["nu"])
    plan = [_count_steps(start, end, dt) for start, end in itertools.pairwise(saving_times(t))]
    weights = [_weights(problem, step, dx) for step in (dt, *(cut for _, cut in plan))]
    interval = _compile_interval(points, weights[0])

    def solve(rows: slice) -> NDArray[np.float32]:
        frames = [values[rows.start].astype(np.float32)]
        for (steps, cut), cut_weights in zip(plan, weights[1:], strict=True):
            frame = interval(frames[-1], np.float32(1), weights[0], steps, cut_weights, cut > SHORTEST_STEP)
            frames.append(np.asarray(frame))
        return np.stack(frames)[None]

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

    from sharp.reference.pdebench_schemes import compile_for_cpu, wrap

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


def balance_laws(problem: Problem) -> BalanceLaws:
    """u_t - (nu u)_xx - rho u (1 - u) = 0."""
    nu, rho = problem.parameters["nu"], problem.parameters["rho"]

    def equations(fields: Fields, _: object) -> dict[str, BalanceLaw]:
        u = fields["u"]
        return {"u": BalanceLaw(u, (FluxTerm(2, -nu * u), FluxTerm(0, -rho * u * (1 - u))), nu)}

    return BalanceLaws(equations)


def step_limits(problem: Problem, inputs: Inputs) -> tuple[StepLimit, ...]:
    """Return the bounds of forward Euler for central diffusion and for logistic growth."""
    dx = spacing(problem, inputs)
    return (
        StepLimit("diffusion", "dx^2/(2 nu)", 2 * problem.parameters["nu"] / dx**2),
        StepLimit("reaction", "2/rho", problem.parameters["rho"] / 2),
    )


def _smooth_duration(problem: Problem) -> float:
    """Return the time in which the longest wave decays to 1/50, or in which u reacts if that is shorter."""
    length = periodic_problems.period(problem)
    return min(length**2 / (10 * problem.parameters["nu"]), 1 / problem.parameters["rho"])


@sample_metric()
def bounds_violation(sample: FieldSample) -> float:
    """Return how far u leaves the interval from min(0, min u0) to max(1, max u0), over its length.

    The exact solution stays inside: both ends are sub- and supersolutions (comparison principle). The lower end
    holds where u0 >= 0, as all initial conditions of the problem are.
    """
    u, start = sample.fields["u"], sample.given["u"]
    low, high = min(0.0, start.min()), max(1.0, start.max())
    return float(np.max([low - u.min(), u.max() - high, 0.0]) / (high - low))


@sample_metric()
def reaction_consistency(sample: FieldSample) -> float:
    """Return how far the growth of the mean of u is from the exact reaction, relative to that growth.

    Diffusion leaves the mean over the period alone; only reaction changes it. Every output frame is advanced to the
    next by one step of Strang splitting in which both parts are exact, a factor exp(-nu k^2 dt) a Fourier mode and
    u e / (1 + u (e - 1)) with e = exp(rho dt), and the mean is compared with that of the predicted next frame. So a
    reaction rate off by 10 % gives 0.1. Left for the exact solution is the splitting error, of order dt^2: 3e-4 for
    the times of the problem, nearly all of it at the steep start. Growth counts as at least 1/1000 of
    rho dt u, so that the rounding of a steady solution does not matter.
    """
    nu, rho = (sample.problem.parameters[name] for name in ("nu", "rho"))
    before, after = sample.fields["u"][:-1], sample.fields["u"][1:].mean(axis=1)
    dt = np.diff(sample.t)[:, None]
    mean, expected = before.mean(axis=1), _reacted(before, sample.dx, nu, rho, dt)
    growth = np.abs(expected - mean) + _NEGLIGIBLE * rho * dt[:, 0] * np.abs(mean)
    return ratio(np.abs(after - expected).sum(), growth.sum())


@run_metric()
def reaction_step(case: MetricInput) -> MetricValue:
    """Return the excess for the printed step."""
    return step_excess(case, case.problem.parameters["rho"], "rho dt")


@run_metric()
def diffusive_cfl(case: MetricInput) -> MetricValue:
    """Return the excess for the printed step."""
    rate = 2 * case.problem.parameters["nu"] / spacing(case.problem, case.inputs) ** 2
    return step_excess(case, rate, "2 nu dt/dx^2")


def _reacted(u: Array, dx: float, nu: float, rho: float, dt: Array) -> Array:
    """Return the means [K] of u [K, N] after half a step of diffusion and one of reaction, of lengths dt [K, 1].

    The other half step of diffusion would not change them.
    """
    waves = 2 * np.pi * np.fft.rfftfreq(u.shape[1], dx)
    u = np.fft.irfft(np.exp(-0.5 * nu * waves**2 * dt) * np.fft.rfft(u), u.shape[1])
    growth = np.exp(rho * dt)
    return np.asarray((u * growth / (1 + u * (growth - 1))).mean(axis=1))


FAMILY = BenchmarkFamily(
    name="reaction-diffusion",
    sample_initial=partial(periodic_problems.sample_sines, unit=True),
    reference=periodic_problems.fourier_scheme(_equation),
    published=PublishedScheme(
        "operator splitting, explicit diffusion and exact logistic reaction, midpoint rule, CFL 0.25", _split
    ),
    residual=partial(evolution_residual, balance_laws),
    smooth=SmoothTestProblem({"u": about(0.5, 0.3)}, _smooth_duration),
    metrics=(bounds_violation, reaction_consistency, reaction_step, diffusive_cfl),
    step_limits=step_limits,
)
