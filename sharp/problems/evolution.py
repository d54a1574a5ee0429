"""Whether a time-dependent problem can be solved forward, and how many conditions each end of an axis takes.

Both are read off the symbol of the linearised equations: M(s, k), the matrix that they become for
exp(s*t + i*k*x). Waves of wave vector k grow at the rates Re s with det M = 0. A problem whose rates have no
bound as |k| grows does not depend continuously on its data (I. G. Petrovsky; H.-O. Kreiss and J. Lorenz,
*Initial-Boundary Value Problems and the Navier-Stokes Equations*, 1989, ch. 2). At an end of an axis as many
conditions are needed as solutions exp(s*t + λ*x) with large Re s die away from that end into the domain
(Kreiss and Lorenz, ch. 7).

A single field of first order is given where it enters the domain, and nowhere else. Its velocity is the vector of
the coefficients of u_x, u_y, …, over that of u_t. Where it points into the domain a value is needed; where it points
out, a value would contradict what arrives there (R. J. LeVeque, *Finite Volume Methods for Hyperbolic Problems*,
2002, ch. 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sharp.problems.diagnostics import Diagnostic
from sharp.problems.domains import BoxDomain
from sharp.problems.linearisation import LinearisedSystem, boundary_state, initial_state
from sharp.problems.sampling import (
    Array,
    at_times,
    conditions_at,
    face,
    has_open_fields,
    inner_points,
    largest,
    open_parts,
    part_name,
    shown,
    times,
)

Symbol = NDArray[np.complex128]

# Wave numbers in units of the longest wave's: where the highest derivatives rule, and the rates' growth is read.
_SHORT, _SHORTER = 1e4, 1e5
# Rates below this share of the largest are rounding of what neither grows nor decays.
_NOISE = 1e-6
# A speed across the boundary below this share of the largest is that of a flow along it.
_SLOW = 1e-6


def evolution_concerns(system: LinearisedSystem) -> Iterator[Diagnostic]:
    """Yield a concern where short waves grow without bound."""
    problem = system.problem
    if problem.time_name is None:
        return
    points = at_times(problem, inner_points(problem.domain))
    points, frozen = system.distinct(points, initial_state(problem))
    if not len(points):
        return
    found = list(zip(*(_all_rates(system, frozen, number) for number in (_SHORT, _SHORTER)), strict=True))
    least, most = (max(_NOISE * largest(np.abs(pair[k])) for pair in found) for k in (0, 1))
    tops = np.array([[float(part.real.max(initial=-np.inf)) for part in pair] for pair in found])
    worst = int(np.argmax(tops[:, 1]))
    short, shorter = max(tops[worst, 0], least), tops[worst, 1]
    # The power of the wave number by which rates grow.
    power = np.log(shorter / max(short, 1e-300)) / np.log(_SHORTER / _SHORT) if shorter > most else 0.0
    if power < 0.3:
        return
    balanced = -float(found[worst][1].real.min()) > 0.5 * shorter  # decay is as fast as growth
    second = any(system.order(field, problem.time_name) > 1 for field in problem.fields)
    place = f"at {shown(problem, points[worst])} " if len(points) > 1 else ""
    message = (
        f"the problem cannot be solved forward in time: {place}a disturbance of wave length "
        f"{_longest(system) / _SHORT:.3g} grows at the rate {short:.3g}, one of a tenth of that length {shorter:.3g}; "
    )
    if balanced and (second or power < 1.5):
        kind = "elliptic-in-time"
        message += (
            "an equation that is elliptic in time and space has conditions at the final time as well; "
            f"or the other sign of the derivatives along {', '.join(problem.space)} is meant"
        )
    else:
        kind = "backward-parabolic"
        message += "the other sign of its diffusion is meant, or conditions at the final time and not the initial one"
    yield Diagnostic(kind, "reject", ("equations",), message)


def _longest(system: LinearisedSystem) -> float:
    return max(high - low for low, high in system.problem.bounds.values())


def _all_rates(system: LinearisedSystem, frozen: Array, number: float) -> list[Symbol]:
    """Return for each point of `frozen` [entries, n] the rates of waves of that wave number in all directions."""
    waves = 2 * np.pi * number / _longest(system) * np.array(_directions(len(system.problem.space)))
    return [found.ravel() for found in _rates_of(system, frozen[:, :, None], waves)]


def _rates_of(system: LinearisedSystem, frozen: Array, waves: Array) -> Sequence[Symbol]:
    """Return the rates of waves of wave vectors [w, d]: arrays for each of n points of `frozen` [entries, n, 1]."""
    time = str(system.problem.time_name)
    orders = [system.order(field, time) for field in system.problem.fields]
    exponents = np.pad(1j * waves, ((0, 0), (0, 1)))
    symbols = system.symbol(frozen, waves.shape[1], exponents)
    leading = _leading(symbols, orders)
    if np.isfinite(symbols).all() and not np.any(_is_singular(leading)):
        return list(_eigenvalues(leading, symbols, orders))
    return [np.concatenate([rates(symbol, orders) for symbol in point]) for point in symbols]


def _directions(dimension: int) -> list[Array]:
    """Return unit vectors: one along an axis, every 22.5 degrees in the plane, 13 in space.

    One of two opposite ones is enough: with real coefficients both waves grow alike.
    """
    if dimension == 2:
        return [np.array([np.cos(angle), np.sin(angle)]) for angle in np.pi * np.arange(8) / 8]
    vectors = [v for v in product((-1, 0, 1), repeat=dimension) if v > (0,) * dimension]
    return [np.array(v) / np.linalg.norm(v) for v in vectors]


def rates(symbol: Symbol, orders: list[int]) -> Symbol:
    """Return all s with det Σ s^k symbol[k] = 0, where field j occurs up to the power orders[j].

    Eigenvalues of the first-order system where the equations give the highest derivatives along time; otherwise,
    as in incompressible flow, roots of the determinant.
    """
    if not np.isfinite(symbol).all():
        return np.empty(0, dtype=complex)
    leading = _leading(symbol, orders)
    if _is_singular(leading):
        scale = _typical(symbol)
        powers = scale ** np.arange(len(symbol))
        return scale * roots(determinant(symbol * powers[:, None, None]))
    return _eigenvalues(leading, symbol, orders)


def _leading(symbols: Symbol, orders: list[int]) -> Symbol:
    """Return the factors [..., equations, fields] of the highest powers of every field."""
    return np.stack([symbols[..., order, :, column] for column, order in enumerate(orders)], axis=-1)


def _is_singular(leading: Symbol) -> NDArray[np.bool_]:
    size = np.prod(np.linalg.norm(leading, axis=-1), axis=-1)
    return np.asarray((size == 0) | (np.abs(np.linalg.det(leading)) < 1e-10 * size))


def _eigenvalues(leading: Symbol, symbols: Symbol, orders: list[int]) -> Symbol:
    """Return the eigenvalues [..., s] of the first-order systems of symbols [..., power, equations, fields]."""
    places = [(column, power) for column, order in enumerate(orders) for power in range(order)]
    matrix = np.zeros((*symbols.shape[:-3], len(places), len(places)), dtype=complex)
    for at, (column, power) in enumerate(places):
        highest = -np.linalg.solve(leading, symbols[..., power, :, column, None])[..., 0]
        for row, (other, k) in enumerate(places):
            if k == orders[other] - 1:
                matrix[..., row, at] += highest[..., other]
            elif (other, k + 1) == (column, power):
                matrix[..., row, at] = 1
    return np.asarray(np.linalg.eigvals(matrix), dtype=complex)


def _typical(symbol: Symbol) -> float:
    """Return a size of s at which the powers of s in the symbol weigh the same."""
    sizes = np.abs(symbol).max(axis=(1, 2))
    ratios = [(sizes[0] / size) ** (1 / power) for power, size in enumerate(sizes) if power and size > 0]
    return max(ratios, default=1.0) or 1.0


def determinant(symbol: Symbol) -> Symbol:
    """Return the coefficients of det Σ s^k symbol[k], the highest power first, from its values at roots of unity."""
    count = symbol.shape[1] * (len(symbol) - 1) + 1
    points = np.exp(2j * np.pi * np.arange(count) / count)
    found = np.linalg.det(np.tensordot(np.vander(points, len(symbol), increasing=True), symbol, axes=1))
    return np.asarray(np.fft.fft(found)[::-1] / count)


def roots(polynomial: Symbol) -> Symbol:
    """Return the roots; coefficients that are rounding of zero do not count, and without finite ones there are none."""
    if not np.isfinite(polynomial).all():
        return np.empty(0, dtype=complex)
    kept = np.where(np.abs(polynomial) > 1e-13 * np.abs(polynomial).max(initial=0.0), polynomial, 0)
    return np.asarray(np.roots(kept), dtype=complex)


def count_concerns(system: LinearisedSystem) -> Iterator[Diagnostic]:
    """Yield a concern for each end of a box that has more or fewer conditions than waves enter there.

    Fields of even order alone have their conditions counted when the specification is read.
    """
    problem = system.problem
    if not isinstance(problem.domain, BoxDomain) or problem.time_name is None:
        return
    for part in open_parts(problem):
        orders = [system.order(field, part[:-1]) for field in problem.fields]
        if any(order % 2 for order in orders) and (len(orders) > 1 or orders[0] > 1):
            yield from _count_at(system, part, orders)


def _count_at(system: LinearisedSystem, part: str, orders: list[int]) -> Iterator[Diagnostic]:
    problem = system.problem
    conditions = list(conditions_at(problem, part))
    given = len(conditions)
    least, most = _needed(system, part, sum(orders))
    place, fields = part_name(problem, part), ", ".join(problem.fields)
    expected = f"expected as many conditions on {fields} at {place} as waves enter there"
    if given > most:
        kind = "outflow-condition" if max(orders) == 1 else "wrong-end"
        yield Diagnostic(
            kind, "reject", ("boundary", conditions[-1][0]), f"{expected}, {most}; found {given}"
        )
    elif given < least and not has_open_fields(problem, part):
        question = f"What{' else' * bool(given)} holds for {fields} at {place}?"
        message = f"{expected}, {least}; found {given}"
        yield Diagnostic("missing-boundary-condition", "clarify", ("boundary",), message, question)


def _needed(system: LinearisedSystem, part: str, order: int) -> tuple[int, int]:
    """Return the least and the largest number of conditions that the points of an end may take."""
    problem = system.problem
    dirichlet = {str(c.field): str(c.value) for _, c in conditions_at(problem, part) if c.type == "dirichlet"}
    points = at_times(problem, face(problem.domain, part, 3).points)
    _, frozen = system.distinct(points, boundary_state(problem, dirichlet))
    if not frozen.size:
        return 0, order
    found = [_entering(system, column, part, order) for column in frozen.T]
    # Where the number changes along the end or with time, any of the numbers may be meant.
    return min(least for least, _ in found), max(most for _, most in found)


def _entering(system: LinearisedSystem, frozen: Array, part: str, order: int) -> tuple[int, int]:
    """Return the least and largest number of conditions at a point of an end.

    Solutions that neither grow nor die along the axis, and waves that run along the end, may count or not.
    """
    space = system.problem.space
    axis, wave = space.index(part[:-1]), 2 * np.pi / _longest(system)
    along = np.eye(len(space))[[axis]]
    slow, fast = (
        np.abs(_rates_of(system, frozen[:, None, None], wave * k * along)[0]).max(initial=1.0)
        for k in (1.0, 10.0)
    )
    # Solutions that change along this axis and time alone.
    exponents = np.zeros(len(space) + 1, dtype=complex)
    exponents[-1] = 10 * max(slow, fast)
    symbol = system.symbol(frozen, axis, exponents)
    found = roots(determinant(symbol * wave ** np.arange(len(symbol))[:, None, None]))
    inward = found.real * (1 if part[-1] == "+" else -1)
    clear = np.abs(found.real) > 1e-6 * np.maximum(np.abs(found), 1e-3)
    entering = int(np.sum(clear & (inward > 0)))
    return entering, entering + int(np.sum(~clear)) + order - len(found)


@dataclass(frozen=True)
class _Edge:
    """A part of the boundary: the outward speeds at its points [n] (NaN where not known), its condition.

    `free` says that it is meant to be open.
    """

    part: str
    outward: Array
    condition: int | None
    free: bool

    @property
    def overdetermined(self) -> bool:
        """Whether a value is prescribed though the field leaves everywhere."""
        return self.condition is not None and bool((self.outward > 0).all())

    @property
    def open(self) -> bool:
        """Whether the field enters somewhere and has no value."""
        return self.condition is None and not self.free and bool((self.outward < 0).any())


def transport_concerns(system: LinearisedSystem) -> Iterator[Diagnostic]:
    """Yield a concern for each part of the boundary where a transported field has a value too many or too few."""
    if not is_transport(system):
        return
    problem, edges = system.problem, _edges(system)
    if problem.time_name is None:
        reversed_ = [replace(edge, outward=-edge.outward) for edge in edges]
        if not any(edge.overdetermined or edge.open for edge in reversed_):
            # A steady equation has no direction: its two sides may be meant the other way round.
            return
    field = problem.fields[0]
    for edge in edges:
        place = part_name(problem, edge.part)
        if edge.overdetermined:
            message = (
                f"'{field}' has a value at {place}, where it flows out with the speed {largest(edge.outward):.3g}: "
                "what arrives there would contradict it; a value where it enters may be meant"
            )
            yield Diagnostic("outflow-condition", "reject", ("boundary", edge.condition or 0), message)
        if edge.open:
            speed = -np.nanmin(edge.outward)
            message = f"'{field}' has no value at {place}, where it enters with the speed {speed:.3g}"
            question = f"What is {field} at {place}, where it enters the domain?"
            yield Diagnostic("missing-boundary-condition", "clarify", ("boundary",), message, question)


def is_transport(system: LinearisedSystem) -> bool:
    """Return whether a problem has one field, and derivatives of first order only."""
    problem = system.problem
    if len(problem.fields) > 1 or problem.specification.eigenvalue:
        return False
    orders = [sum(jet.orders[: len(problem.space)]) for jet in system.jets]
    time = system.order(problem.fields[0], problem.time_name) if problem.time_name else 1
    return max(orders) == 1 and time == 1


def _edges(system: LinearisedSystem) -> list[_Edge]:
    found = []
    for part in open_parts(system.problem):
        conditions = list(conditions_at(system.problem, part))
        known = {str(condition.field): str(condition.value) for _, condition in conditions}
        place = conditions[0][0] if conditions else None
        free = has_open_fields(system.problem, part)
        found.append(_Edge(part, _outward(system, part, known), place, free))
    slow = _SLOW * max((largest(edge.outward) for edge in found), default=0.0)
    return [replace(e, outward=np.where(np.abs(e.outward) > slow, e.outward, 0)) for e in found]


def _outward(system: LinearisedSystem, part: str, known: Mapping[str, str]) -> Array:
    """Return the outward speed at points and times of a part: by the values prescribed there and by the initial ones.

    A value is prescribed in vain only if what is in the domain leaves as well.
    """
    problem = system.problem
    side = face(problem.domain, part)
    points, normals = (
        at_times(problem, side.points),
        np.repeat(side.normals, max(len(times(problem)), 1), axis=0),
    )
    states = [known, {}] if known and not system.linear else [known]
    return np.concatenate([_normal_speed(system, points, normals, state) for state in states])


def _normal_speed(system: LinearisedSystem, points: Array, normals: Array, known: Mapping[str, str]) -> Array:
    frozen = system.frozen(points, boundary_state(system.problem, known))
    steady = system.problem.time_name is None
    velocity, storage = np.zeros_like(normals), np.full(len(points), float(steady))
    for (_, jet, _), values in zip(system.coefficients, frozen, strict=True):
        space = jet.orders[: normals.shape[1]]
        if sum(space) == 1:
            velocity[:, space.index(1)] = values
        elif sum(jet.orders) == 1:
            storage = values
    with np.errstate(all="ignore"):
        return np.asarray(np.sum(velocity * normals, axis=1) / storage)
