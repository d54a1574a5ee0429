"""Reference generators of this package beside the straightforward way of running the published schemes.

Straightforward means what a generator usually looks like in JAX: one sample's time loop as a `while_loop`
with its time step and its output inside, mapped over the samples with `vmap`; for steady Darcy flow, a sparse
matrix in SciPy and its direct solver. Both ways do the same arithmetic up to the order of roundings; the table
shows how far their results differ. The loop's cost hardly changes with time, so it is timed on the first
output intervals and scaled; ours is timed in full. Run with `python benchmarks/bench_references.py --help`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.interpolate
import scipy.sparse.linalg
from jax import lax
from measuring import PROBLEMS, Table, command_line, cost_of

from sharp.problems import Problem, load_problem
from sharp.reference import family_of, output_times, relative_l2

Plain = Callable[..., Any]
Step = Callable[[Any, Any], Any]
TimeStep = Callable[[Any], Any]
SAVE_EVERY = np.float32(0.01)


def main(problems: Sequence[str] = PROBLEMS, samples: int = 4, intervals: int = 2, seed: int = 1) -> None:
    """Print the table; the straightforward loop runs for so many output intervals."""
    print(f"{samples} samples; seconds of wall time a sample (ours with compilation)")
    ways = ("straightforward:.2f", "ours:.2f", "ratio:.1f", "difference:.1e")
    table = Table("problem", *ways, "data error:.2e", "reference solution:.2f", "its error:.1e")
    for name in problems:
        table.row(name, *compared(load_problem(name), samples, intervals, seed))


def compared(problem: Problem, samples: int, intervals: int, seed: int) -> Iterator[float]:
    """Time both ways and the reference solution on the same initial conditions; yield a row of the table."""
    family, t = family_of(problem), output_times(problem)
    drawn = family.sample_initial(problem, samples, seed)
    ours = cost_of(lambda: family.solve_pdebench(problem, drawn.arrays, t))
    reference = cost_of(lambda: family.solve_reference(problem, drawn.arrays, t, evaluate=drawn.evaluate))
    data, exact = together(ours.result), together(reference.result.arrays)
    plain = cost_of(straightforward(problem, drawn.arrays, intervals))
    plain_s = plain.wall_s * (1 if t is None else (len(t) - 1) / intervals)
    yield from (plain_s / samples, ours.wall_s / samples, plain_s / ours.wall_s)
    yield relative_l2(plain.result, data if t is None else data[..., : intervals + 1, :]).max()
    yield relative_l2(data, exact).mean()
    yield reference.wall_s / samples
    yield reference.result.error.max()


def together(arrays: Mapping[str, Any]) -> Any:
    """Return all fields of n samples as [n, fields, …] in double precision."""
    return np.stack([np.asarray(array, np.float64) for array in arrays.values()], axis=1)


def straightforward(problem: Problem, arrays: Mapping[str, Any], intervals: int) -> Plain:
    """Return a function that solves straightforwardly, ready to be timed: [n, fields, …] as `together`."""
    if problem.id == "darcy":
        (coefficients,) = arrays.values()
        return lambda: np.stack([direct(a.astype(float), problem)[None] for a in coefficients])
    start = np.stack(list(arrays.values()), axis=1)
    (low, high), points, times = problem.bounds["x"], problem.grid.points["x"], problem.grid.times
    assert times is not None
    scheme = SCHEMES[problem.id](problem.parameters, np.float32((high - low) / points))
    loop = time_loop(*scheme, times, intervals)
    compiled = jax.jit(jax.vmap(loop)).lower(start).compile()
    return lambda: np.asarray(compiled(start))[:, : intervals + 1].swapaxes(1, 2).astype(float)


def time_loop(step: Step, time_step: TimeStep, times: int, intervals: int) -> Callable[[Any], Any]:
    """Return the loop over time of one sample `[fields, N] -> [T, fields, N]`, stopped after some intervals."""

    def sample(u0: Any) -> Any:
        def save(state: Any) -> Any:
            u, clock, due, index, frames = state
            return u, clock, due + SAVE_EVERY, index + 1, frames.at[index].set(u)

        def body(state: Any) -> Any:
            u, clock, due, index, frames = lax.cond(state[1] >= state[2], save, lambda kept: kept, state)
            dt = jnp.minimum(time_step(u), due - clock)
            u = lax.cond(dt > 1e-8, lambda: step(u, dt), lambda: u)
            return u, clock + dt, due, index, frames

        frames = jnp.zeros((times, *u0.shape), jnp.float32)
        start = u0, jnp.float32(0), jnp.float32(0), 0, frames
        u, *_, frames = lax.while_loop(lambda s: (s[3] < intervals) | (s[1] < s[2]), body, start)
        return frames.at[intervals].set(u)

    return sample


def advect(parameters: Any, dx: Any) -> tuple[Step, TimeStep]:
    """Return step and time step of advection with a positive speed."""
    beta = parameters["beta"]
    return midpoint(conservative(lambda left, _right, _u: beta * left, dx)), lambda _: 0.4 * dx / beta


def burgers(parameters: Any, dx: Any) -> tuple[Step, TimeStep]:
    """Return step and time step of Burgers' equation."""
    nu = parameters["nu"]

    def flux(left: Any, right: Any, u: Any) -> Any:
        upwind = 0.5 * jnp.maximum(jnp.maximum(left, 0) ** 2, jnp.minimum(right, 0) ** 2)
        return upwind - nu / dx * (jnp.roll(u, -1, axis=-1) - u)

    def time_step(u: Any) -> Any:
        return jnp.minimum(0.25 * dx / jnp.abs(u).max(), 0.125 * dx**2 / nu)

    return midpoint(conservative(flux, dx)), time_step


def midpoint(update: Callable[[Any, Any, Any], Any]) -> Step:
    """Return the step of the midpoint rule for `update(u, at, dt)`."""
    return lambda u, dt: update(u, update(u, u, 0.5 * dt), dt)


def conservative(flux: Callable[..., Any], dx: Any) -> Callable[..., Any]:
    """Second-order finite volumes on a rolled array; `flux(left, right, u)` at right faces."""

    def update(u: Any, at: Any, dt: Any) -> Any:
        faces = flux(*face_states(at), at)
        return u - dt / dx * (faces - jnp.roll(faces, 1, axis=-1))

    return update


def face_states(u: Any) -> tuple[Any, Any]:
    """Return the limited states left and right of the right faces."""
    before, after = u - jnp.roll(u, 1, axis=-1), jnp.roll(u, -1, axis=-1) - u
    size = jnp.minimum(2 * jnp.minimum(jnp.abs(before), jnp.abs(after)), 0.5 * jnp.abs(before + after))
    half = jnp.where(before * after > 0, 0.5 * jnp.sign(before) * size, 0)
    return u + half, jnp.roll(u - half, -1, axis=-1)


def react_and_diffuse(parameters: Any, dx: Any) -> tuple[Step, TimeStep]:
    """Return step and time step of reaction and diffusion."""
    nu, rho = parameters["nu"], parameters["rho"]

    def update(u: Any, at: Any, dt: Any) -> Any:
        grown = 1 / (1 + jnp.exp(-rho * dt) * ((1 - u) / u))
        faces = -nu * (jnp.roll(at, -1, axis=-1) - at) / dx
        return grown - dt / dx * (faces - jnp.roll(faces, 1, axis=-1))

    return midpoint(update), lambda _: jnp.float32(0.125 * dx**2 / nu)


def gas(parameters: Any, dx: Any) -> tuple[Step, TimeStep]:
    """Return step and time step of the Navier-Stokes equations; a state is velocity, density, pressure."""
    gamma, viscosity = parameters["Gamma"], parameters["zeta"] + 4 / 3 * parameters["eta"]
    stable = 0.15 * dx**2 / viscosity

    def conserved(q: Any) -> Any:
        v, density, p = q
        return jnp.stack([density * v, density, p / (gamma - 1) + 0.5 * density * v**2])

    def primitive(u: Any) -> Any:
        momentum, density, energy = u
        return jnp.stack([momentum / density, density, (gamma - 1) * (energy - 0.5 * momentum**2 / density)])

    def convect(q: Any, at: Any, dt: Any) -> Any:
        faces = hllc(*face_states(at), gamma)
        v, density, p = primitive(conserved(q) - dt / dx * (faces - jnp.roll(faces, 1, axis=-1)))
        return jnp.stack([v, density, jnp.where(p > 1e-8, p, 1e-4)])

    def rub(q: Any, dt: Any) -> Any:
        v, density, _ = q
        mu = 0.5 * viscosity * (density + jnp.roll(density, -1))
        stress, power = (mu / dx * (jnp.roll(w, -1) - w) for w in (v, 0.5 * v**2))
        faces = jnp.stack([stress, jnp.zeros_like(v), power])
        u = conserved(q) + dt / dx * (faces - jnp.roll(faces, 1, axis=-1))
        for _ in range(2):  # the directions in which nothing moves
            u = conserved(primitive(u))
        return primitive(u)

    def substep(state: Any, dt: Any) -> Any:
        q, time = state
        h = jnp.minimum(stable, dt - time)
        return rub(q, h), time + h

    def step(q: Any, dt: Any) -> Any:
        q = convect(q, convect(q, q, 0.5 * dt), dt)
        q, _ = lax.while_loop(lambda s: dt - s[1] > 1e-8, lambda s: substep(s, dt), (q, jnp.float32(0)))
        return q

    def time_step(q: Any) -> Any:
        v, density, p = q
        return 0.3 * dx / (jnp.sqrt(gamma * p / density) + jnp.abs(v)).max()

    return step, time_step


def hllc(left: Any, right: Any, gamma: float) -> Any:
    """Return the fluxes of momentum, mass and energy between two states (Toro, ch. 10)."""
    (vl, dl, pl), (vr, dr, pr) = left, right
    sound = jnp.maximum(jnp.sqrt(gamma * pl / dl), jnp.sqrt(gamma * pr / dr))
    slow, fast = jnp.minimum(vl, vr) - sound, jnp.maximum(vl, vr) + sound
    ml, mr = dl * (slow - vl), dr * (fast - vr)
    contact = (pr - pl + ml * vl - mr * vr) / (ml - mr)

    def flux(v: Any, density: Any, p: Any) -> Any:
        energy_and_pressure = gamma / (gamma - 1) * p + 0.5 * density * v**2
        return jnp.stack([density * v**2 + p, density * v, energy_and_pressure * v])

    star_left = flux(contact, ml / (slow - contact), pl + ml * (contact - vl))
    star_right = flux(contact, mr / (fast - contact), pr + mr * (contact - vr))
    star = jnp.where(contact >= 0, star_left, star_right)
    return jnp.where(slow > 0, flux(*left), jnp.where(fast < 0, flux(*right), star))


SCHEMES: dict[str, Callable[[Any, Any], tuple[Step, TimeStep]]] = {
    "advection": advect,
    "burgers": burgers,
    "reaction-diffusion": react_and_diffuse,
    "navier-stokes": gas,
}


def direct(a: Any, problem: Problem) -> Any:
    """Return u [N, N] of the published Darcy procedure: splines, a five-point matrix, a direct solver."""
    n = len(a)
    centres, nodes = (np.arange(n) + 0.5) / n, np.linspace(0, 1, n)
    a = resample(a, centres, nodes)
    one = scipy.sparse.identity(n - 2)
    along = scipy.sparse.diags([1.0, -1.0], [0, -1], (n - 1, n - 2))
    across_x, across_y = scipy.sparse.kron(along, one), scipy.sparse.kron(one, along)
    edges_x = scipy.sparse.diags(0.5 * (a[1:, 1:-1] + a[:-1, 1:-1]).ravel())
    edges_y = scipy.sparse.diags(0.5 * (a[1:-1, 1:] + a[1:-1, :-1]).ravel())
    matrix = across_x.T @ edges_x @ across_x + across_y.T @ edges_y @ across_y
    load = np.full((n - 2) ** 2, problem.parameters["beta"] / (n - 1) ** 2)
    u = scipy.sparse.linalg.spsolve(matrix.tocsc(), load).reshape(n - 2, n - 2)
    return resample(np.pad(u, 1), nodes, centres)


def resample(values: Any, at: Any, to: Any) -> Any:
    """Interpolate by cubic splines along both axes."""
    across = scipy.interpolate.CubicSpline(at, values, axis=0, bc_type="not-a-knot")(to)
    return scipy.interpolate.CubicSpline(at, across, axis=1, bc_type="not-a-knot")(to)


if __name__ == "__main__":
    command_line(main)
