"""How well a solution balances over parts of space and time: its equations multiplied by test functions and integrated.

Where coefficients or solutions jump, an equation between derivatives at points says nothing: a*u_x has to be
continuous although the product rule, used on both sides of the jump, never asks for it. The weak form does: in

    ∫∫ φ (div(a*grad(u)) - f) = -∫∫ (a*grad(u)·grad(φ) + φ f)

the outermost derivative of each term is moved onto a smooth function φ of small support (L. Evans, Partial
Differential Equations, 2010, sec. 3.4 and 6.1), so that wrong fluxes and wrong speeds of fronts are seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from sharp.problems import PlaneDomain, Problem
from sharp.solvers.data_features import break_times, graded_places
from sharp.solvers.discontinuities import interfaces, jump_lines
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.fd_weights import HALF
from sharp.solvers.feature_checks import over_a_jump
from sharp.solvers.grid import Array
from sharp.solvers.residuals import DerivativeProgram, difference
from sharp.solvers.sample_points import interior_points, lengths
from sharp.solvers.strong_form import JUMPS, StrongForm
from sharp.solvers.system import system_of

SUPPORTS = 12
# Half the extent of a support, as a share of the domain: the first of these that fits often enough. And of the time.
HALVES = (0.17, 0.08, 0.04, 0.02)
HALF_TIME = 0.17
# Points along each axis of a support, by dimension: sums are accurate to about their distance where something jumps.
POINTS = {1: 240, 2: 40, 3: 14}
MOMENTS = 24
# Inner derivatives are differenced with this share of the extent; where a stencil reaches over a jump in the plane, it
# is shortened so many times, by this factor.
STEP = 5e-4
_SHORTER, _BY = 3, 16
_GAUSS = 6


# The equation of an integrand, and the axes along which its test function is differentiated.
_Term = tuple[int, tuple[int, ...]]


def weak_residual(problem: Problem, solution: DiscreteSolution) -> float | None:
    """Return the largest imbalance of any equation over all supports, relative to the size of its integrals.

    None where the domain is too narrow for supports. The imbalance of an equation is the root mean square over the
    supports. Raises `SpecificationError` for equations that cannot be written as a program.
    """
    terms, program = _weak_form(problem, solution)
    found = [_integrals(problem, solution, terms, program, *support) for support in _supports(problem)]
    if not found:
        return None
    integrals = np.stack(found, axis=-1)
    owners = np.array([equation for equation, _ in terms])
    return max(_relative(integrals[:, owners == index]) for index in range(len(problem.equations)))


def _relative(integrals: Array) -> float:
    """Return the imbalance by integrals of the terms and of their absolute values [2, terms, supports]."""
    total, size = np.sqrt(np.mean(integrals.sum(axis=1) ** 2, axis=1))
    return float(total / size) if size else float(total)


def _weak_form(problem: Problem, solution: DiscreteSolution) -> tuple[list[_Term], DerivativeProgram]:
    written = StrongForm.of(problem, solution.eigenvalues)
    axes = {name: index for index, name in enumerate((*problem.space, problem.time_name))}
    terms: list[_Term] = []
    integrands = []
    for index in range(len(problem.equations)):
        for factor, part in _moved(_summands(written.without_factor(index), written)):
            along: list[int] = []
            inner = part
            while inner.is_Derivative and (not along or _is_kinked(inner)):
                along.append(axes[str(inner.variables[-1])])
                inner = _without_last(inner)
            terms.append((index, tuple(along)))
            # A derivative that is moved onto the test function changes its sign.
            integrands.append((-1) ** len(along) * factor * inner)
    return terms, DerivativeProgram.of(written, integrands)


def _moved(summands: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """Take given factors behind first derivatives, `a*u_x = (a*u)_x - a_x*u`: where u jumps, u_x has no values."""
    for front, part in summands:
        factors = sympy.Mul.make_args(part)
        given = [factor for factor in factors if not factor.has(sympy.core.function.AppliedUndef)]
        rest = [factor for factor in factors if factor not in given]
        if not given or len(rest) != 1 or not rest[0].is_Derivative or rest[0].expr.has(sympy.Derivative):
            yield front, part
            continue
        (derivative,), factor, name = rest, sympy.Mul(*given), rest[0].variables[-1]
        if len(derivative.variables) > 1 or factor.has(*JUMPS, sympy.Abs):
            yield front, part
            continue
        yield front, sympy.Derivative(factor * derivative.expr, name, evaluate=False)
        if factor.diff(name) != 0:
            yield -front, factor.diff(name) * derivative.expr


def _summands(expression: Any, written: StrongForm) -> Iterator[tuple[Any, Any]]:
    """Yield the constant factor and the rest of every summand, with constants taken out of sums."""
    if isinstance(expression, sympy.Add):
        for part in expression.args:
            yield from _summands(part, written)
        return
    constant = [part for part in sympy.Mul.make_args(expression) if written.constant(part)]
    rest = [part for part in sympy.Mul.make_args(expression) if part not in constant]
    if constant and len(rest) == 1:
        yield from ((sympy.Mul(*constant, factor), part) for factor, part in _summands(rest[0], written))
    else:
        yield sympy.Integer(1), expression


def _is_kinked(derivative: Any) -> bool:
    """Whether it is a first derivative of what has kinks, which has no values where that jumps or rests."""
    held = derivative.expr.has(*JUMPS, sympy.Abs, sympy.Max, sympy.Min)
    return bool(held and len(derivative.variables) == 1 and not derivative.expr.has(sympy.Derivative))


def _without_last(derivative: Any) -> Any:
    *inner, _ = derivative.variables
    return sympy.Derivative(derivative.expr, *inner, evaluate=False) if inner else derivative.expr


def _supports(problem: Problem) -> list[tuple[Array, Array]]:
    """Return boxes in the domain, of the largest size of which enough fit: centers and half extents [d + 1]."""
    points = interior_points(problem, 3000, start=31)
    best: list[tuple[Array, Array]] = []
    for share in HALVES:
        half = share * lengths(problem)
        inside = points[_fitting(problem, points, 1.05 * half)][:SUPPORTS]
        best = [_support(problem, point, half, number) for number, point in enumerate(inside)] or best
        if len(inside) == SUPPORTS:
            break
    return best


def _fitting(problem: Problem, points: Array, half: Array) -> NDArray[np.bool_]:
    """Return which points may be centres of boxes: those with all corners, sides and edges in the domain."""
    corners = np.array(list(product((-1.0, 0.0, 1.0), repeat=len(half))))
    around = (points[:, None] + half * corners).reshape(-1, len(half))
    found = np.asarray(problem.domain.inside(around).reshape(len(points), -1).all(axis=1))
    if isinstance(problem.domain, PlaneDomain):
        # A hole may be smaller than a box around it.
        near = np.max(np.abs(points[:, None] - problem.domain.outline) / half, axis=2) <= 1
        found &= ~np.max(near, axis=1)
    return found


def _support(problem: Problem, point: Array, half: Array, number: int) -> tuple[Array, Array]:
    if problem.time is None:
        return np.array([*point, 0.0]), np.array([*half, 1.0])
    start, end = problem.time
    share = HALF_TIME * 1.05 + (1 - 2.1 * HALF_TIME) * ((0.37 + 0.618 * number) % 1.0)
    center = np.array([*point, start + share * (end - start)])
    return center, np.array([*half, HALF_TIME * (end - start)])


def _integrals(
    problem: Problem,
    solution: DiscreteSolution,
    terms: Sequence[_Term],
    program: DerivativeProgram,
    center: Array,
    half: Array,
) -> Array:
    """Return the mean of every term, and of its absolute value, over one support [2, terms]."""
    dimension, (start, end) = len(problem.space), problem.time or (0.0, 1.0)
    along = [
        _rule(POINTS[dimension], middle, reach, graded_places(problem))
        for middle, reach in zip(center[:-1], half[:-1], strict=True)
    ]
    nodes, shares = ([each[index] for each in along] for index in (0, 1))
    grid = np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1).reshape(-1, dimension)
    volumes = np.prod(np.meshgrid(*shares, indexing="ij"), axis=0).ravel()
    late, moments = np.zeros(1), np.ones(1)
    if problem.time is not None:
        late, moments = _rule(MOMENTS, center[-1], half[-1], break_times(system_of(problem)))
    points = center[:-1] + half[:-1] * grid
    times = center[-1] + half[-1] * late
    step, time_step = _steps(problem, points, times[0]), STEP * (end - start)
    jets = {
        jet: difference(problem, solution, jet.orders, points, times, step, time_step)[
            problem.fields.index(jet.field)
        ]
        for jet in program.jets
    }
    tests = {along: _test(grid, late, along, half) for _, along in terms}
    values = zip(terms, program(points, times, jets), strict=True)
    parts = [value * tests[along] for (_, along), value in values]
    weights = moments[:, None] * volumes
    return np.array([[np.sum(weights * part) for part in found] for found in (parts, np.abs(parts))])


def _steps(problem: Problem, points: Array, time: float) -> Array:
    """Return steps [m, d] of differences, shorter next to what jumps."""
    steps = np.broadcast_to(STEP * lengths(problem), points.shape)
    away = [np.abs(points - place) for place in interfaces(problem)]
    away += [np.abs(points @ line.normal - line.offset)[:, None] for line in jump_lines(problem)]
    for distance in away:
        steps = np.minimum(steps, distance / (HALF + 1))
    for _ in range(_SHORTER):
        over = over_a_jump(problem, points, time, (HALF + 1) * steps)
        steps = np.where(over[:, None], steps / _BY, steps)
    return np.asarray(steps)


def _rule(count: int, center: float, half: float, breaks: Sequence[float]) -> tuple[Array, Array]:
    """Return nodes in (-1, 1) and weights of sum 1: the midpoint rule, which suits smooth bumps.

    Where data are narrow, between breaks, it is Gauss' on each piece.
    """
    inner = [share for share in (np.array(breaks) - center) / half if -1 < share < 1]
    if not inner:
        return (2 * np.arange(count) + 1) / count - 1, np.full(count, 1 / count)
    nodes, weights = np.polynomial.legendre.leggauss(_GAUSS)
    ends = np.array([-1.0, *inner, 1.0])
    # Long pieces are divided, so that no node of the rule without breaks has a wider one.
    ends = np.concatenate(
        [np.linspace(a, b, int(np.ceil((b - a) / 2 * count / _GAUSS)) + 1)[:-1] for a, b in pairwise(ends)]
        + [[1.0]]
    )
    middles, halves = (ends[1:] + ends[:-1]) / 2, np.diff(ends) / 2
    return (middles[:, None] + halves[:, None] * nodes).ravel(), (halves[:, None] * weights / 2).ravel()


def _test(grid: Array, late: Array, along: tuple[int, ...], half: Array) -> Array:
    """Return the test function, or its derivative along axes, at all times and points [k, m]."""
    test = np.ones((len(late), len(grid)))
    for index, share in enumerate([*grid.T[:, None, :], late[:, None]]):
        bump, order = np.polynomial.Polynomial([1, 0, -1]) ** 4, along.count(index)
        test = test * bump.deriv(order)(share) / half[index] ** order
    return test
