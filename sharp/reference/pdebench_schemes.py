"""What the published generators in one dimension share: float32 clocks and second-order finite volumes.

The clock and the scheme are PDEBench's (Takamoto et al. 2022), written anew; that they are the same is tested
against its files. Arrays are [..., cells] and periodic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sharp.errors import DataError

SHORTEST_STEP = 1e-8
"""Steps that are not longer are passed over: the clock advances, the solution does not."""

Array = NDArray[Any]
Flux = Callable[[Any], Any]
TimeStep = Callable[[Any], Any]


def saving_times(t: Array) -> NDArray[np.float32]:
    """Return the times at which the generator saves: a float32 sum of float32 intervals.

    Raises `DataError` unless the times are equally spaced.
    """
    intervals = np.diff(np.asarray(t, np.float64))
    if len(intervals) == 0 or not np.allclose(intervals, intervals.mean(), rtol=1e-3):
        raise DataError("the published schemes save at two or more equally spaced times; found others")
    return np.add.accumulate(np.r_[t[0], np.full(len(intervals), intervals.mean())].astype(np.float32))


def wrap(u: Any, width: int) -> Any:
    """Add `width` periodic ghost cells on both sides."""
    return jnp.concatenate([u[..., -width:], u, u[..., :width]], axis=-1)


def face_states(u: Any) -> tuple[Any, Any]:
    """Return the states left and right of the inner faces: M cells give M - 3 faces.

    Slopes are limited to the smallest of the central and twice the one-sided differences (van Leer 1977, MC
    limiter).
    """
    jumps = u[..., 1:] - u[..., :-1]
    before, after = jumps[..., :-1], jumps[..., 1:]
    size = jnp.minimum(2 * jnp.minimum(jnp.abs(before), jnp.abs(after)), 0.5 * jnp.abs(before + after))
    half_slope = jnp.where(before * after > 0, 0.5 * jnp.sign(before) * size, 0)
    centre = u[..., 1:-1]
    return (centre + half_slope)[..., :-1], (centre - half_slope)[..., 1:]


def midpoint_step(flux: Flux, u: Any, dt: Any, dx: float) -> Any:
    """Advance u_t + f_x = 0 by the midpoint rule (second order); `flux` maps M cells to M - 3 faces."""
    wide = wrap(u, 4)
    half = wide[..., 2:-2] - 0.5 * dt / dx * _jumps(flux(wide))
    return u - dt / dx * _jumps(flux(half))


def _jumps(faces: Any) -> Any:
    return faces[..., 1:] - faces[..., :-1]


def finite_volumes(
    flux: Flux, time_step: TimeStep, dx: float, values: Array, t: Array
) -> Callable[[slice], NDArray[np.float32]]:
    """Return what solves the samples of a slice of `values` [n, N] at times t [T], by its own clock: [n, T, N].

    `time_step(u)` gives the largest stable step of each sample [n, 1] or of all; a saving time cuts it.
    """

    def advance(state: Any) -> Any:
        u, clock, end = state
        dt = jnp.minimum(time_step(u), end - clock)
        return jnp.where(dt > SHORTEST_STEP, midpoint_step(flux, u, dt, dx), u), clock + dt, end

    def interval(u: Any, clock: Any, end: Any) -> Any:
        return jax.lax.while_loop(lambda state: (state[1] < end).any(), advance, (u, clock, end))[:2]

    times = saving_times(t)

    def solve(rows: slice) -> NDArray[np.float32]:
        u = values[rows].astype(np.float32)
        clock = np.full((len(u), 1), times[0])
        compiled = compile_for_cpu(interval, u, clock, times[0])
        frames = [u]
        for end in times[1:]:
            u, clock = compiled(u, clock, end)
            frames.append(np.asarray(u))
        return np.stack(frames, axis=1)

    return solve


def compile_for_cpu(function: Callable[..., Any], *example: Any) -> Callable[..., Any]:
    """Compile a function for arguments like the example, with the widest vectors the processor has."""
    options: dict[str, str | bool] = {"xla_cpu_prefer_vector_width": "512"}
    return jax.jit(function).lower(*jax.device_put(example, jax.devices("cpu")[0])).compile(options)
