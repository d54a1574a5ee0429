"""One-dimensional flow of a viscous gas in Lagrangian coordinates: the reference solution for Navier-Stokes.

With X the place of a fluid particle at the start, x(X, t) its place now, J = x_X, and rho_0 the initial
density,

    x_t = v,    rho_0 v_t = tau_X,    rho_0 e_t = tau v_X,    tau = -p + mu v_X / J,
    rho = rho_0 / J,    p = (Gamma - 1) rho e

(von Neumann and Richtmyer 1950, with physical instead of artificial viscosity). Nothing conducts heat, so
kinks and steep flanks of the entropy stay where they are in X; on a fixed grid they would be advected, and
smeared or turned into ripples. Velocity and place live on the nodes, energy in the cells between: differences
are second-order accurate, mass and momentum constant, and energy is constant up to the error in time.

Time is integrated by ARK3(2)4L[2]SA of Kennedy and Carpenter, "Additive Runge-Kutta schemes for
convection-diffusion-reaction equations", Appl. Numer. Math. 44 (2003): of order 3, explicit in motion, pressure and
work, L-stable and singly diagonally implicit in the viscous force, with an embedded method of order 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sharp.reference.spectral import coefficients, evaluate

Array = NDArray[np.float64]

# The coefficients of ARK3(2)4L[2]SA.
_DIAGONAL = 1767732205903 / 4055673282236
_WEIGHTS = (
    1471266399579 / 7840856788654,
    -4482444167858 / 7529755066697,
    11266239266428 / 11593286722821,
    _DIAGONAL,
)
_EMBEDDED = (
    2756255671327 / 12835298489170,
    -10771552573575 / 22201958757719,
    9247589265047 / 10645013368117,
    2193209047091 / 5459859503100,
)
_EXPLICIT: tuple[tuple[float, ...], ...] = (
    (),
    (1767732205903 / 2027836641118,),
    (5535828885825 / 10492691773637, 788022342437 / 10882634858940),
    (6485989280629 / 16251701735622, -4246266847089 / 9704473918619, 10755448449292 / 10357097424841),
)
_IMPLICIT: tuple[tuple[float, ...], ...] = (
    (),
    (_DIAGONAL,),
    (2746238789719 / 10658868560708, -640167445237 / 6845629431997),
    _WEIGHTS[:-1],
)
_STAGES = len(_WEIGHTS)
# One row a stage: the weights of f and g of all stages before it, in the order f_0, g_0, f_1, g_1, …
_COUPLING = [
    np.array([(e, i) for e, i in zip(explicit, implicit, strict=True)]).ravel()
    for explicit, implicit in zip(_EXPLICIT, _IMPLICIT, strict=True)
]
_STEP = np.repeat(_WEIGHTS, 2)
_ERROR = np.repeat(np.subtract(_WEIGHTS, _EMBEDDED), 2)

# Of the step that the estimated error would allow; and by how much a step may shrink or grow at once.
_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 3.0
# Steps below this share of the whole time mean that no step is small enough.
_SMALLEST = 1e-12

# Largest product of step and highest acoustic frequency, 2 c / h, that ARK3(2)4L[2]SA bears at any damping.
_STABLE = 2.4


@dataclass(frozen=True)
class Gas:
    """An ideal gas: ratio of specific heats, and longitudinal viscosity `mu = viscosity * rho**exponent`.

    mu is that of the stress `mu v_x`: dynamic if the exponent is 0, kinematic if it is 1.
    """

    gamma: float
    viscosity: float
    exponent: float = 0.0

    def mu(self, density: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the viscosity at a density."""
        return self.viscosity * density**self.exponent


@dataclass(frozen=True)
class LagrangianFlow:
    """The split system of a flow on N particles that start at distance `h`; a state is [x, v, e], [3, N].

    The viscous force is the stiff part; it is linear in v. `density` is rho_0 in the cells, cell i lying
    between the nodes i and i+1, `inertia` its mean at the nodes, `length` the period, and `scale` [3] what
    errors of x, v and e are compared with.
    """

    gas: Gas
    length: float
    h: float
    density: Array
    inertia: Array
    scale: Array

    def explicit(self, y: Array) -> Array:
        """Return f(y): motion, pressure force and work."""
        _, v, e = y
        stretch = self._stretch(y)
        pressure = (self.gas.gamma - 1) * self.density * e / stretch
        gradient = _forward(v) / self.h
        stress = self.gas.mu(self.density / stretch) / stretch * gradient - pressure
        return np.stack([v, -_backward(pressure) / (self.h * self.inertia), stress * gradient / self.density])

    def implicit(self, y: Array) -> Array:
        """Return g(y): the viscous force."""
        force = np.zeros_like(y)
        force[1] = _backward(self._friction(y) * _forward(y[1])) / self.inertia
        return force

    def solve(self, y: Array, a: float) -> Array:
        """Return y with the velocity z of `inertia (z - v) = a * viscous force(z)`."""
        z = y.copy()
        z[1] = solve_periodic(self.inertia, a * self._friction(y), self.inertia * y[1])
        return z

    def largest_step(self, y: Array) -> float:
        """Return the bound that sound waves set."""
        sound = np.sqrt(self.gas.gamma * (self.gas.gamma - 1) * y[2]) / self._stretch(y)
        return float(_STABLE * self.h / (2 * np.max(sound)))

    def norm(self, error: Array) -> float:
        """Return the largest root mean square among place, velocity and energy, relative to their scales."""
        return float(np.max(np.sqrt(np.mean(error**2, axis=1)) / self.scale))

    def _stretch(self, y: Array) -> Array:
        spacing = _forward(y[0])
        spacing[-1] += self.length
        return spacing / self.h

    def _friction(self, y: Array) -> Array:
        stretch = self._stretch(y)
        return self.gas.mu(self.density / stretch) / (stretch * self.h**2)

    def profiles(self, y: Array, x: Array) -> Array:
        """Return velocity, density and pressure [3, len(x)] at fixed places, by cubic splines."""
        nodes, v, e = y
        density = self.density / self._stretch(y)
        pressure = (self.gas.gamma - 1) * density * e
        middle = nodes + 0.5 * self.h * self._stretch(y)
        cells = _spline(middle, np.stack([density, pressure], axis=1), self.length, x)
        return np.concatenate([_spline(nodes, v[:, None], self.length, x), cells], axis=1).T


def solve_flow(
    gas: Gas, nodes: Array, cells: Array, bounds: tuple[float, float], t: Array, points: int, tolerance: float
) -> Array:
    """Return velocity, density and pressure [3, T+1, points] at the cell centres of a periodic interval.

    `nodes` and `cells` hold them [3, N] at time t[0], at the left ends and at the centres of the N cells
    between the particles followed. `tolerance` is the error allowed in a step.
    """
    (left, right), n = bounds, cells.shape[1]
    h = (right - left) / n
    v, density, pressure = nodes[0], cells[1], cells[2]
    e = pressure / ((gas.gamma - 1) * density)
    speed, energy = np.sqrt(np.mean(v**2) + np.mean(e)), np.sqrt(np.mean(e**2))
    inertia = 0.5 * (density + np.roll(density, 1))
    flow = LagrangianFlow(gas, right - left, h, density, inertia, np.array([right - left, speed, energy]))
    centres = left + (np.arange(points) + 0.5) * (right - left) / points
    states = integrate(flow, np.stack([left + h * np.arange(n), v, e]), t, tolerance)
    return np.stack([flow.profiles(y, centres) for y in states], axis=1)


def integrate(flow: LagrangianFlow, y: Array, times: Array, tolerance: float) -> Iterator[Array]:
    """Yield the state at each of the increasing `times`, the first of which is that of `y`.

    Additive Runge-Kutta integration of y' = f(y) + g(y), g stiff, by ARK3(2)4L[2]SA with adaptive steps.
    `tolerance` bounds the estimated error of a single step in the norm of the flow. Raises
    `ArithmeticError` where the step size that this takes vanishes.
    """
    yield y
    dt = 1e-2 * flow.largest_step(y)
    for now, end in pairwise(times):
        while now < end:
            dt = min(dt, flow.largest_step(y))
            # Two equal steps to an output time rather than a full one and a rest.
            rest = end - now
            used = rest if rest <= dt else min(dt, rest / 2)
            new, error = step(flow, y, used)
            size = flow.norm(error) / tolerance
            if size <= 1:
                y, now = new, end if used == rest else now + used
            if not size <= 1 or used == dt:
                dt = used * _factor(size)
            if dt < _SMALLEST * (times[-1] - times[0]):
                raise ArithmeticError(f"the step size vanishes at t = {now}")
        yield y


def step(flow: LagrangianFlow, y: Array, dt: float) -> tuple[Array, Array]:
    """Return the state one step later and the estimate of its error, both shaped as `y`."""
    rates = np.empty((2 * _STAGES, y.size))
    for stage, coupling in enumerate(_COUPLING):
        before = y + dt * (coupling @ rates[: 2 * stage]).reshape(y.shape) if stage else y
        now = flow.solve(before, dt * _DIAGONAL) if stage else y
        rates[2 * stage] = flow.explicit(now).ravel()
        rates[2 * stage + 1] = ((now - before) / (dt * _DIAGONAL) if stage else flow.implicit(y)).ravel()
    return y + dt * (_STEP @ rates).reshape(y.shape), dt * (_ERROR @ rates).reshape(y.shape)


def _factor(size: float) -> float:
    """Return by how much the step changes when the error is `size` times what is allowed."""
    if not np.isfinite(size):
        return _SHRINK
    return float(np.clip(_SAFETY * max(size, 1e-10) ** (-1 / 3), _SHRINK, _GROW))


def interpolate(values: Array, n: int, shift: float = 0.0) -> Array:
    """Return the trigonometric interpolant of values [..., N] at cell centres on a grid of n cells.

    It is evaluated at the n centres, or as many cells to their right as `shift` says.
    """
    spectrum = coefficients(values, n // 2 + 1)
    # The first value is half a coarse cell from the left end, the first point 1/2 + shift fine ones.
    offset = 2 * np.pi * ((0.5 + shift) / n - 0.5 / values.shape[-1])
    return evaluate(spectrum * np.exp(1j * offset * np.arange(spectrum.shape[-1])), n)


def solve_periodic(diagonal: Array, coupling: Array, right: Array) -> Array:
    """Solve `d_i z_i - c_i (z_{i+1} - z_i) + c_{i-1} (z_i - z_{i-1}) = r_i` with cyclic indices for z [N].

    The matrix is symmetric and positive definite for positive d and c. Its corners are a correction of rank
    one to a tridiagonal matrix (Sherman and Morrison).
    """
    from scipy.linalg.lapack import dptsv

    corner = coupling[-1]
    main = diagonal + coupling
    main[1:] += coupling[:-1]
    main[0] += corner
    sides = np.zeros((right.size, 2), order="F")
    sides[:, 0] = right
    sides[0, 1] = sides[-1, 1] = 1.0
    main[0] += corner
    main[-1] += corner
    _, _, solution, _ = dptsv(main, -coupling[:-1], sides, 1, 0, 1)
    plain, correction = solution.T
    factor = corner * (plain[0] + plain[-1]) / (1 - corner * (correction[0] + correction[-1]))
    return np.asarray(plain + factor * correction)


def _forward(u: Array) -> Array:
    difference = np.empty_like(u)
    np.subtract(u[1:], u[:-1], out=difference[:-1])
    difference[-1] = u[0] - u[-1]
    return difference


def _backward(u: Array) -> Array:
    difference = np.empty_like(u)
    np.subtract(u[1:], u[:-1], out=difference[1:])
    difference[0] = u[0] - u[-1]
    return difference


def _spline(places: Array, values: Array, length: float, x: Array) -> Array:
    from scipy.interpolate import CubicSpline

    closed = np.append(places, places[0] + length), np.concatenate([values, values[:1]])
    return np.asarray(CubicSpline(*closed, bc_type="periodic")(places[0] + (x - places[0]) % length))
