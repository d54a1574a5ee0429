"""Whether a time-dependent problem can be solved forward, and how many conditions each end of an axis takes.

Both are read off the symbol of the linearised equations: M(s, k), the matrix that they become for
exp(s*t + i*k*x). Waves of wave vector k grow at the rates Re s with det M = 0. A problem whose rates have no
bound as |k| grows does not depend continuously on its data (I. G. Petrovsky; H.-O. Kreiss and J. Lorenz,
*Initial-Boundary Value Problems and the Navier-Stokes Equations*, 1989, ch. 2). At an end of an axis as many
conditions are needed as solutions exp(s*t + λ*x) with large Re s die away from that end into the domain
(Kreiss and Lorenz, ch. 7).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
    inner_points,
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


@dataclass(frozen=True)
class _Growth:
    """The fastest growth of short and of shorter waves, and whether decay is as fast as growth.

    `point` is where, None where the coefficients are the same everywhere.
    """

    short: float
    shorter: float
    point: Array | None
    balanced: bool

    @property
    def power(self) -> float:
        """The power of the wave number by which rates grow; 0 where short waves do not grow."""
        if self.shorter <= 0:
            return 0.0
        return float(np.log(self.shorter / max(self.short, 1e-300)) / np.log(_SHORTER / _SHORT))


def evolution_concerns(system: LinearisedSystem) -> Iterator[Diagnostic]:
    """Yield a concern where short waves grow without bound."""
    problem = system.problem
    if problem.time_name is None:
        return
    points = at_times(inner_points(problem.domain), times(problem))
    growth = _growth(system, points)
    if growth is None or growth.power < 0.3:
        return
    second = any(system.order(field, problem.time_name) > 1 for field in problem.fields)
    elliptic = growth.balanced and (second or growth.power < 1.5)
    length = _longest(system) / _SHORT
    place = "" if growth.point is None else f"at {shown(problem, growth.point)} "
    message = (
        f"the problem cannot be solved forward in time: {place}a disturbance of wave length "
        f"{length:.3g} grows at the rate {growth.short:.3g}, one of a tenth of that length {growth.shorter:.3g}; "
    )
    meant = (
        "an equation that is elliptic in time and space has conditions at the final time as well; "
        f"or the other sign of the derivatives along {', '.join(problem.space)} is meant"
        if elliptic
        else "the other sign of its diffusion is meant, or conditions at the final time and not the initial one"
    )
    yield Diagnostic(
        "elliptic-in-time" if elliptic else "backward-parabolic", "reject", ("equations",), message + meant
    )


def _longest(system: LinearisedSystem) -> float:
    return max(high - low for low, high in system.problem.bounds.values())


def _growth(system: LinearisedSystem, points: Array) -> _Growth | None:
    """Return the fastest growth over the points where the coefficients are known, None where they nowhere are."""
    points, frozen = system.distinct(points, initial_state(system.problem))
    if not len(points):
        return None
    found = [[_all_rates(system, column, number) for number in (_SHORT, _SHORTER)] for column in frozen.T]
    largest = [max(float(np.abs(pair[k]).max(initial=0.0)) for pair in found) for k in (0, 1)]
    tops = np.array([[float(part.real.max(initial=-np.inf)) for part in pair] for pair in found])
    worst = int(np.argmax(tops[:, 1]))
    if tops[worst, 1] <= _NOISE * largest[1]:
        return _Growth(0.0, 0.0, None, False)
    short = max(tops[worst, 0], _NOISE * largest[0])
    decay = -float(found[worst][1].real.min())
    place = points[worst] if len(points) > 1 else None
    return _Growth(short, tops[worst, 1], place, decay > 0.5 * tops[worst, 1])


def _all_rates(system: LinearisedSystem, coefficients: Array, number: float) -> Symbol:
    """Return the rates of waves of that wave number in all directions."""
    wave = 2 * np.pi * number / _longest(system)
    found = [
        rates(_in_time(system, coefficients, 1j * wave * direction.astype(complex)), _time_orders(system))
        for direction in _directions(len(system.problem.space))
    ]
    return np.concatenate(found)


def _directions(dimension: int) -> list[Array]:
    """Return unit vectors: one along an axis, every 22.5 degrees in the plane, 13 in space.

    One of two opposite ones is enough: with real coefficients both waves grow alike.
    """
    if dimension == 2:
        return [np.array([np.cos(angle), np.sin(angle)]) for angle in np.pi * np.arange(8) / 8]
    vectors = [v for v in product((-1, 0, 1), repeat=dimension) if v > (0,) * dimension]
    return [np.array(v) / np.linalg.norm(v) for v in vectors]


def _time_orders(system: LinearisedSystem) -> list[int]:
    problem = system.problem
    return [system.order(field, str(problem.time_name)) for field in problem.fields]


def _in_time(system: LinearisedSystem, coefficients: Array, exponents: Symbol) -> Symbol:
    """Return the symbol as matrices [m + 1, equations, fields] by powers of s, for exp(exponents·x)."""
    problem = system.problem
    matrices = np.zeros(
        (max(_time_orders(system)) + 1, len(problem.equations), len(problem.fields)), dtype=complex
    )
    for (row, jet, _), value in zip(system.coefficients, coefficients, strict=True):
        column = problem.fields.index(jet.field)
        space = jet.orders[: len(problem.space)]
        matrices[jet.orders[len(problem.space)], row, column] += value * np.prod(exponents**space)
    return matrices


def rates(symbol: Symbol, orders: list[int]) -> Symbol:
    """Return all s with det Σ s^k symbol[k] = 0, where field j occurs up to the power orders[j].

    Eigenvalues of the first-order system where the equations give the highest derivatives along time; otherwise,
    as in incompressible flow, roots of the determinant.
    """
    if not np.isfinite(symbol).all():
        return np.empty(0, dtype=complex)
    leading = np.column_stack([symbol[order][:, column] for column, order in enumerate(orders)])
    size = np.prod(np.linalg.norm(leading, axis=1))
    if size == 0 or abs(np.linalg.det(leading)) < 1e-10 * size:
        scale = _typical(symbol)
        powers = scale ** np.arange(len(symbol))
        return scale * roots(determinant(symbol * powers[:, None, None]))
    places = [(column, power) for column, order in enumerate(orders) for power in range(order)]
    matrix = np.zeros((len(places), len(places)), dtype=complex)
    for at, (column, power) in enumerate(places):
        highest = -np.linalg.solve(leading, symbol[power][:, column])
        for row, (other, k) in enumerate(places):
            if k == orders[other] - 1:
                matrix[row, at] += highest[other]
            elif (other, k + 1) == (column, power):
                matrix[row, at] = 1
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
    least, most = _needed(system, part, orders)
    place = part_name(problem, part)
    fields = ", ".join(problem.fields)
    if given > most:
        kind = "outflow-condition" if max(orders) == 1 else "wrong-end"
        path = ("boundary", conditions[-1][0])
        message = (
            f"expected as many conditions on {fields} at {place} as waves enter there, {most}; found {given}"
        )
        yield Diagnostic(kind, "reject", path, message)
    elif given < least:
        message = (
            f"expected as many conditions on {fields} at {place} as waves enter there, {least}; found {given}"
        )
        question = f"What{' else' * bool(given)} holds for {fields} at {place}?"
        yield Diagnostic("missing-boundary-condition", "clarify", ("boundary",), message, question)


def _needed(system: LinearisedSystem, part: str, orders: list[int]) -> tuple[int, int]:
    """Return the least and the largest number of conditions that the points of an end may take."""
    problem = system.problem
    dirichlet = {str(c.field): str(c.value) for _, c in conditions_at(problem, part) if c.type == "dirichlet"}
    points = at_times(face(problem.domain, part, 3).points, times(problem))
    _, frozen = system.distinct(points, boundary_state(problem, dirichlet))
    if not frozen.size:
        return 0, sum(orders)
    found = [_entering(system, column, part, sum(orders)) for column in frozen.T]
    # Where the number changes along the end or with time, any of the numbers may be meant.
    return min(least for least, _ in found), max(most for _, most in found)


def _entering(system: LinearisedSystem, coefficients: Array, part: str, order: int) -> tuple[int, int]:
    """Return the least and largest number of conditions at a point of an end.

    Solutions that neither grow nor die along the axis, and waves that run along the end, may count or not.
    """
    problem = system.problem
    axis = problem.space.index(part[:-1])
    wave = 2 * np.pi / _longest(system)
    slow, fast = (
        np.abs(
            rates(
                _in_time(system, coefficients, 1j * wave * k * np.eye(len(problem.space))[axis]),
                _time_orders(system),
            )
        )
        for k in (1.0, 10.0)
    )
    s = 10 * max(slow.max(initial=1.0), fast.max(initial=1.0))
    symbol = _along_axis(system, coefficients, axis, s)
    exponents = roots(determinant(symbol * wave ** np.arange(len(symbol))[:, None, None]))
    inward = exponents.real * (1 if part[-1] == "+" else -1)
    clear = np.abs(exponents.real) > 1e-6 * np.maximum(np.abs(exponents), 1e-3)
    entering = int(np.sum(clear & (inward > 0)))
    return entering, entering + int(np.sum(~clear)) + order - len(exponents)


def _along_axis(system: LinearisedSystem, coefficients: Array, axis: int, s: float) -> Symbol:
    """Return the symbol as matrices by powers of λ, for exp(s*t + λ*x) along one axis."""
    problem = system.problem
    highest = max(system.order(field, problem.space[axis]) for field in problem.fields)
    matrices = np.zeros((highest + 1, len(problem.equations), len(problem.fields)), dtype=complex)
    for (row, jet, _), value in zip(system.coefficients, coefficients, strict=True):
        along, space = jet.orders[axis], jet.orders[: len(problem.space)]
        if sum(space) == along:
            power = s ** jet.orders[len(problem.space)]
            matrices[along, row, problem.fields.index(jet.field)] += value * power
    return matrices
