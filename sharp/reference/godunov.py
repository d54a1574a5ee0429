"""The scheme behind PDEBench's compressible data, and its arithmetic: float32, products rounded before sums.

Second-order finite volumes: slopes of the primitive variables limited by the monotonised central rule, HLLC
fluxes (Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics, ch. 10), midpoint rule in time at
CFL number 0.3; then, split off, forward Euler steps for the viscous terms at 0.3 of their stability limit.
What the published solutions depend on beyond that:

* The viscosity is kinematic: the stress is (zeta + 4/3 eta) rho v_x.
* Every viscous step turns pressure into energy and back three times, once for each space direction, two of
  them idle. About a million roundings shift the mean pressure by up to one percent, always upwards.
* A fused multiply-add rounds once where a product and a sum round twice, which changes that shift.
  `_rounded` keeps compilers from fusing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
from numpy.typing import NDArray

from sharp.reference.pdebench_schemes import compile_for_cpu

CFL = 0.3
PRESSURE_FLOOR = 1e-4
_DIRECTIONS = 3
# Times and pressures below count as zero; added to a denominator, it is part of the published step size.
_SMALL = 1e-8
_MOST_CELLS_IN_ONE_KERNEL = 2048


@dataclass(frozen=True)
class GodunovScheme:
    """The scheme for one gas and cell width; a state is density, velocity and pressure, [3, N] float32.

    `zero` is an int32 zero that the compiler does not know to be one.
    """

    gamma: float
    viscosity: float
    dx: float
    zero: Any

    def step(self, q: Any, longest: Any) -> tuple[Any, Any]:
        """Return the state after one step of at most `longest`, and the length of that step."""
        density, v, p = q
        speed = jnp.max(jnp.sqrt(self.gamma * p / density) + jnp.abs(v))
        dt = jnp.minimum(self.dx / (speed + _SMALL) * CFL, longest)
        middle = self._convect(q, q, 0.5 * dt)
        return self._diffuse(self._convect(q, middle, dt), dt), dt

    def _convect(self, q: Any, at: Any, dt: Any) -> Any:
        """Advance `q` by dt with the fluxes of the state `at`."""
        flux = self._hllc(at)
        density, v, p = q
        momentum, energy = self._conserved(density, v, p)
        change = self._rounded(dt * np.float32(1 / self.dx) * (flux - _left(flux)))
        density, momentum, energy = density - change[0], momentum - change[1], energy - change[2]
        v, p = self._primitive(density, momentum, energy)
        return jnp.stack([density, v, jnp.where(p > _SMALL, p, PRESSURE_FLOOR)])

    def _diffuse(self, q: Any, dt: Any) -> Any:
        density = q[0]
        longest = CFL * 0.5 * self.dx**2 / (self.viscosity + _SMALL)
        friction = self._rounded(
            self.viscosity * (0.5 * (density + _right(density))) * np.float32(1 / self.dx)
        )

        def substep(carry: Any) -> Any:
            v, p, time = carry
            h = jnp.minimum(jnp.minimum(dt, longest), dt - time)
            momentum, energy = self._conserved(density, v, p)
            stress = self._rounded(friction * (_right(v) - v))
            square = self._rounded(v * v)
            power = self._rounded(0.5 * friction * (_right(square) - square))
            ratio = h * np.float32(1 / self.dx)
            momentum = momentum + self._rounded(ratio * (stress - _left(stress)))
            energy = energy + self._rounded(ratio * (power - _left(power)))
            v, p = self._primitive(density, momentum, energy)
            for _ in range(_DIRECTIONS - 1):
                v, p = self._primitive(density, *self._conserved(density, v, p))
            return v, p, time + h

        v, p, _ = lax.while_loop(lambda carry: dt - carry[2] > _SMALL, substep, (q[1], q[2], jnp.float32(0)))
        return jnp.stack([density, v, p])

    def _hllc(self, q: Any) -> Any:
        """Return the fluxes of mass, momentum and energy through the right face of every cell."""
        half_slope = 0.5 * _limited_slope(q)
        (dl, vl, pl), (dr, vr, pr) = q + half_slope, _right(q - half_slope)
        sound = jnp.maximum(jnp.sqrt(self.gamma * pl / dl), jnp.sqrt(self.gamma * pr / dr))
        slow, fast = jnp.minimum(vl, vr) - sound, jnp.maximum(vl, vr) + sound
        ml, mr = dl * (slow - vl), dr * (fast - vr)
        contact = (pr - pl + ml * vl - mr * vr) / (ml - mr)
        far_left, near_left = self._fluxes(dl, vl, pl, slow, contact)
        far_right, near_right = self._fluxes(dr, vr, pr, fast, contact)
        near = jnp.where(contact >= 0, near_left, near_right)
        return jnp.where(slow > 0, far_left, jnp.where(fast < 0, far_right, near))

    def _fluxes(self, density: Any, v: Any, p: Any, wave: Any, contact: Any) -> tuple[Any, Any]:
        """Return the fluxes of a state outside the acoustic `wave` and between it and the contact."""
        star_density = density * (wave - v) / (wave - contact)
        star_pressure = p + density * (wave - v) * (contact - v)
        return tuple(
            jnp.stack([d * u, d * u * u + w, (self.gamma / (self.gamma - 1) * w + 0.5 * d * u * u) * u])
            for d, u, w in ((density, v, p), (star_density, contact, star_pressure))
        )  # type: ignore[return-value]

    def _conserved(self, density: Any, v: Any, p: Any) -> tuple[Any, Any]:
        momentum = self._rounded(v * density)
        return momentum, self._rounded(p * (1 / (self.gamma - 1))) + self._rounded(0.5 * (momentum * v))

    def _primitive(self, density: Any, momentum: Any, energy: Any) -> tuple[Any, Any]:
        pressure = (self.gamma - 1) * (energy - 0.5 * (momentum * momentum) / density)
        return self._rounded(momentum / density), self._rounded(pressure)

    def _rounded(self, x: Any) -> Any:
        """Return a float32 value as it is, by a way that keeps compilers from fusing what follows."""
        return lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.int32) ^ self.zero, jnp.float32)


@cache
def compile_scheme(gamma: float, viscosity: float, dx: float, points: int) -> Callable[[Any, Any, Any], Any]:
    """Return the compiled function (state [3, N], time, end) -> (state, time), all float32."""

    def interval(q: Any, start: Any, end: Any) -> Any:
        scheme = GodunovScheme(gamma, viscosity, dx, jnp.isnan(start).astype(jnp.int32))

        def advance(carry: Any) -> Any:
            state, now = carry
            state, dt = scheme.step(state, end - now)
            return state, now + dt

        return lax.while_loop(lambda carry: end - carry[1] > _SMALL, advance, (q, start))

    time = np.float32(0)
    return _compiled_as_one(interval, np.zeros((3, points), np.float32), time, time)


def _compiled_as_one(function: Callable[..., Any], state: Any, *times: Any) -> Callable[..., Any]:
    """Compile for the CPU, loops and all, into one kernel where the state is small.

    Otherwise XLA turns every loop body into a list of kernels, and on a thousand cells it takes ten times
    longer to start them than to run them. The attributes that change this are XLA's own and undocumented:
    large arrays, and perhaps other versions, make it fail. Then the list of kernels has to do.
    """

    def as_one(*arguments: Any) -> Any:
        with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):  # type: ignore[no-untyped-call]
            return jax.jit(function)(*arguments)

    if state.shape[-1] <= _MOST_CELLS_IN_ONE_KERNEL:
        with suppress(jax.errors.JaxRuntimeError):
            return compile_for_cpu(as_one, state, *times)
    return compile_for_cpu(function, state, *times)


def published_solver(
    gamma: float, viscosity: float, dx: float, points: int, times: NDArray[np.float32]
) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """Return the scheme `[3, N] -> [3, T, N]` for velocity, density and pressure, compiled for the CPU."""
    interval = compile_scheme(gamma, viscosity, dx, points)

    def solve(start: NDArray[np.float32]) -> NDArray[np.float32]:
        state, now = start[[1, 0, 2]], times[0]
        frames = [state]
        for end in times[1:]:
            state, now = interval(state, now, end)
            frames.append(np.asarray(state))
        return np.stack(frames, axis=1)[[1, 0, 2]]

    return solve


def _limited_slope(q: Any) -> Any:
    """Return the slope per cell: the central one, at most twice the one-sided ones, zero at extrema.

    The limiter of `pdebench_schemes.face_states`, which halves and adds in another order.
    """
    behind, ahead = q - _left(q), _right(q) - q
    central = 0.5 * (_right(q) - _left(q))
    bound = 2 * jnp.minimum(jnp.abs(behind), jnp.abs(ahead))
    return jnp.where(behind * ahead > 0, jnp.sign(central) * jnp.minimum(bound, jnp.abs(central)), 0.0)


def _right(u: Any) -> Any:
    return jnp.concatenate([u[..., 1:], u[..., :1]], axis=-1)


def _left(u: Any) -> Any:
    return jnp.concatenate([u[..., -1:], u[..., :-1]], axis=-1)
