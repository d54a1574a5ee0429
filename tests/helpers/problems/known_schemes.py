"""Schemes whose order of accuracy is known, written for the tests: `solver` functions of the shipped problems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import spsolve

Array = np.ndarray
Step = Callable[[Array, float], Array]


def shifted(u: Array, cells: int) -> Array:
    """Return u[i - cells]."""
    return np.roll(u, cells, axis=-1)


def central2(u: Array, dx: float) -> Array:
    return (shifted(u, -1) - shifted(u, 1)) / (2 * dx)


def central4(u: Array, dx: float) -> Array:
    return (shifted(u, 2) - 8 * shifted(u, 1) + 8 * shifted(u, -1) - shifted(u, -2)) / (12 * dx)


def second2(u: Array, dx: float) -> Array:
    return (shifted(u, 1) - 2 * u + shifted(u, -1)) / dx**2


def spectral(u: Array, dx: float, power: int = 1) -> Array:
    waves = 2j * np.pi * np.fft.rfftfreq(u.shape[-1], dx)
    return np.fft.irfft(waves**power * np.fft.rfft(u), u.shape[-1])


def euler(slope: Callable[[Array], Array]) -> Step:
    return lambda u, dt: u + dt * slope(u)


def rk4(slope: Callable[[Array], Array]) -> Step:
    def step(u: Array, dt: float) -> Array:
        a = slope(u)
        b = slope(u + dt / 2 * a)
        c = slope(u + dt / 2 * b)
        return u + dt / 6 * (a + 2 * b + 2 * c + slope(u + dt * c))

    return step


def march(u: Array, t: Array, dt: float, step: Step) -> Array:
    """Take equal steps of at most dt from each output time to the next; return all of these [n, T, ...]."""
    frames = [u]
    for span in np.diff(t):
        steps = int(np.ceil(span / dt - 1e-9))
        for _ in range(steps):
            u = step(u, span / steps)
        frames.append(u)
    return np.stack(frames, axis=1)


def advection(kind: str, cfl: float = 0.5):
    """Return a solver of the advection equation."""

    def solver(u0: Array, t: Array, beta: float) -> Array:
        dx = 1 / u0.shape[1]
        steps = {
            "upwind": euler(lambda u: -beta * (u - shifted(u, 1)) / dx),
            "lax-wendroff": lambda u, dt: (
                u - dt * beta * central2(u, dx) + (dt * beta) ** 2 / 2 * second2(u, dx)
            ),
            "central-4": rk4(lambda u: -beta * central4(u, dx)),
            "faster": rk4(lambda u: -1.1 * beta * central4(u, dx)),
            # Of order 2 but for a term of order 1 that is small on coarse grids.
            "damped": rk4(lambda u: -beta * (central2(u, dx) - 0.01 * dx * second2(u, dx))),
        }
        return march(u0, t, cfl * dx / abs(beta), steps[kind])

    return solver


def exact_shift(u0: Array, t: Array, beta: float) -> Array:
    """Advect the Fourier series exactly."""
    n = u0.shape[1]
    turns = np.exp(-2j * np.pi * np.fft.rfftfreq(n, 1 / n) * beta * (t - t[0])[:, None])
    return np.fft.irfft(np.fft.rfft(u0)[:, None] * turns, n)


def burgers(kind: str):
    """Return a solver of Burgers' equation for u > 0."""

    def solver(u0: Array, t: Array, nu: float) -> Array:
        dx, viscosity = 1 / u0.shape[1], nu
        largest = min(dx, dx**2 / (2 * viscosity))
        slopes = {
            "central-2": lambda u: -central2(u**2 / 2, dx) + viscosity * second2(u, dx),
            "spectral": lambda u: -spectral(u**2 / 2, dx) + viscosity * spectral(u, dx, 2),
        }
        # The spectral one takes the same steps everywhere, small enough for the finest grid.
        dt = 6e-5 if kind == "spectral" else 0.4 * largest
        return march(u0, t, dt, rk4(slopes[kind]))

    return solver


def reaction_diffusion(kind: str):
    """Return a solver of u_t = nu u_xx + rho u (1 - u) that steps by a fraction of the spacing."""

    def solver(u0: Array, t: Array, nu: float, rho: float) -> Array:
        n = u0.shape[1]
        waves = 2 * np.pi * np.fft.rfftfreq(n, 1 / n)
        five_point = -4 * nu * n**2 * np.sin(waves / (2 * n)) ** 2

        def react(u: Array, dt: float) -> Array:
            return u / (u + (1 - u) * np.exp(-rho * dt))

        def heat(u: Array, factor: Array) -> Array:
            return np.fft.irfft(factor * np.fft.rfft(u), n)

        def crank_nicolson(u: Array, dt: float) -> Array:
            return heat(u, (1 + dt / 2 * five_point) / (1 - dt / 2 * five_point))

        steps = {
            "strang": lambda u, dt: react(crank_nicolson(react(u, dt / 2), dt), dt / 2),
            # Exact in space, first order in time.
            "lie": lambda u, dt: react(heat(u, np.exp(-nu * waves**2 * dt)), dt),
        }
        return march(u0, t, 0.2 / n, steps[kind])

    return solver


def navier_stokes(velocity: Array, density: Array, pressure: Array, t: Array, eta: float, zeta: float):
    """Solve the conservative equations by central differences of second order and RK4."""
    gamma, dx, mu = 5 / 3, 2 / velocity.shape[1], zeta + 4 / 3 * eta

    def primitive(state: Array) -> tuple[Array, Array, Array]:
        rho, momentum, energy = np.moveaxis(state, -2, 0)
        v = momentum / rho
        return v, rho, (gamma - 1) * (energy - momentum * v / 2)

    def slope(state: Array) -> Array:
        v, rho, p = primitive(state)
        stress = mu * rho * central2(v, dx)
        fluxes = (rho * v, rho * v**2 + p - stress, (state[..., 2, :] + p - stress) * v)
        return -central2(np.stack(fluxes, axis=-2), dx)

    energy = pressure / (gamma - 1) + density * velocity**2 / 2
    start = np.stack([density, density * velocity, energy], axis=-2)
    return primitive(march(start, t, min(dx / 4, 2 * dx**2 / mu), rk4(slope)))


def darcy(mean: Callable[[Array, Array], Array]):
    """Return a five-point solver of -div(a grad u) = 1 with `mean` of the nodes on both sides as coefficient."""

    def solver(a: Array) -> Array:
        return np.stack([_five_point(one, mean) for one in a])

    return solver


def _five_point(a: Array, mean: Callable[[Array, Array], Array]) -> Array:
    n = len(a)
    number = np.arange(n * n).reshape(n, n)
    pairs = [(number[:-1, 1:-1], number[1:, 1:-1]), (number[1:-1, :-1], number[1:-1, 1:])]
    one, other = (np.concatenate([pair[side].ravel() for pair in pairs]) for side in (0, 1))
    weight = mean(a.ravel()[one], a.ravel()[other])
    rows, columns = np.r_[one, other, one, other], np.r_[one, other, other, one]
    matrix = coo_array(
        (np.r_[weight, weight, -weight, -weight], (rows, columns)), shape=(n * n, n * n)
    ).tocsr()
    inner = number[1:-1, 1:-1].ravel()
    u = np.zeros(n * n)
    u[inner] = spsolve(matrix[inner][:, inner].tocsc(), np.full(len(inner), 1 / (n - 1) ** 2))
    return u.reshape(n, n)
