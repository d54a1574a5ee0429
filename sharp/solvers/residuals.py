"""How well a solution satisfies its equations: their residual, with derivatives from values of the solution alone.

Derivatives come from central differences of order 8, with steps of several sizes: truncation falls with the step,
errors of rounding and of interpolation grow, and where both are least depends on the solution. The residual of the
best step counts, so that what is left is the solution's own, or the least that differences can tell.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from sharp.problems.linearisation import DerivativeSymbol
from sharp.problems.problem import Problem
from sharp.problems.programs import ExpressionProgram, compile_expressions
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.fd_weights import central_stencil, mixed
from sharp.solvers.sample_points import evaluate, fits, interior_points, lengths, sample_times
from sharp.solvers.strong_form import StrongForm

Array = NDArray[np.float64]

# Steps, as shares of the extent of the domain and of the time interval; the largest stencil reaches four steps away.
SPACE_STEPS = (0.06, 0.02, 0.006, 0.002)
TIME_STEPS = (0.03, 0.008, 0.002, 0.0004)
MOMENTS = (0.13, 0.31, 0.58, 0.87)
POINTS = {1: 160, 2: 100, 3: 48}
# This share of the points may lie where no difference formula can follow the solution: kinks, fronts, interfaces.
QUANTILE = 0.9


@dataclass(frozen=True)
class PointwiseResidual:
    """The residual of all equations relative to the size of their terms: of nine points in ten, and the largest."""

    typical: float
    largest: float


@dataclass(frozen=True)
class _Terms:
    """The terms of all equations, left minus right side, as a program of coordinates, time and jets."""

    jets: tuple[DerivativeSymbol, ...]
    program: ExpressionProgram
    equation: tuple[int, ...]


def residual(problem: Problem, solution: DiscreteSolution) -> PointwiseResidual:
    """Return the residual at points that are random for the method.

    Raises `SpecificationError` for equations that cannot be written as a program.
    """
    terms = _terms(problem, solution.eigenvalues)
    points = interior_points(problem, POINTS[len(problem.space)], start=1009)
    times = sample_times(problem, MOMENTS)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        jets = _jets(problem, solution, terms.jets, points, times)
        values = _values(terms, points, times, jets)
        natural = _values(terms, points, times, _natural(problem, solution, terms.jets, points, times))
    found = [_relative(values, natural, terms.equation, index) for index in sorted(set(terms.equation))]
    return PointwiseResidual(max(typical for typical, _ in found), max(largest for _, largest in found))


def _relative(values: Array, natural: Array, equation: tuple[int, ...], index: int) -> tuple[float, float]:
    """Return the residual of one equation by values [terms, space steps, time steps, k, m]."""
    own = [place for place, owner in enumerate(equation) if owner == index]
    parts = values[own].reshape(len(own), -1, *values.shape[-2:])
    total = np.abs(parts.sum(axis=0))
    # A point that no step fits has no residual; the best step of every other counts.
    best = np.argmin(np.where(np.isfinite(total), total, np.inf), axis=0)[None]
    left = np.take_along_axis(total, best, axis=0)
    size = np.take_along_axis(np.abs(parts).sum(axis=0), best, axis=0)
    sound = np.isfinite(left)
    if not np.any(sound):
        return np.inf, np.inf
    # Terms count as no smaller than the extents suggest, lest the residual of u_xx = 0 be measured by rounding.
    least = float(np.sqrt(np.nanmean(np.abs(natural[own]).sum(axis=0) ** 2)))
    scale = max(float(np.sqrt(np.mean(size[sound] ** 2))), least) or 1.0
    return float(np.quantile(left[sound], QUANTILE)) / scale, float(np.max(left[sound])) / scale


def _values(terms: _Terms, points: Array, times: Array, jets: Mapping[DerivativeSymbol, Array]) -> Array:
    arguments = [*points.T, times[:, None], *(jets[jet] for jet in terms.jets)]
    return np.stack(np.broadcast_arrays(*terms.program(*arguments), *jets.values())[: len(terms.equation)])


def _terms(problem: Problem, eigenvalues: tuple[float, ...]) -> _Terms:
    written = StrongForm.of(problem, eigenvalues)
    jets: dict[DerivativeSymbol, Any] = {}
    parts = [
        (index, term)
        for index in range(len(problem.equations))
        for term in sympy.Add.make_args(substituted(written, written.equation(index), jets))
    ]
    program = compile_expressions([term for _, term in parts], names_of(problem, jets))
    return _Terms(tuple(jets), program, tuple(index for index, _ in parts))


def names_of(problem: Problem, jets: Mapping[DerivativeSymbol, Any]) -> list[str]:
    """Return the names of what programs take: space, time, which may occur nowhere, and the symbols of jets."""
    return [*problem.space, problem.time_name or "time", *(symbol.name for symbol in jets.values())]


def substituted(written: StrongForm, expression: Any, jets: dict[DerivativeSymbol, Any]) -> Any:
    """Return an expression with a symbol for each jet and numbers for parameters, and note new jets."""
    expression, coordinates = expression.doit(), tuple(written.coordinates.values())
    for kind in (sympy.Derivative, sympy.core.function.AppliedUndef):
        found = {
            part: DerivativeSymbol.of(part, coordinates) for part in sorted(expression.atoms(kind), key=str)
        }
        jets.update((jet, jet.symbol) for jet in found.values())
        expression = expression.xreplace({part: jet.symbol for part, jet in found.items()})
    return expression.xreplace(written.numbers)


def _jets(
    problem: Problem,
    solution: DiscreteSolution,
    jets: tuple[DerivativeSymbol, ...],
    points: Array,
    times: Array,
) -> dict[DerivativeSymbol, Array]:
    """Return each jet [space steps or 1, time steps or 1, k, m]; not a number where a stencil leaves the domain."""
    kinds = {
        orders: _differences(problem, solution, orders, points, times)
        for orders in dict.fromkeys(jet.orders for jet in jets)
    }
    return {jet: kinds[jet.orders][:, :, problem.fields.index(jet.field)] for jet in jets}


def _differences(
    problem: Problem, solution: DiscreteSolution, orders: tuple[int, ...], points: Array, times: Array
) -> Array:
    """Return a derivative of all fields [space steps or 1, time steps or 1, fields, k, m]."""
    extent, (start, end) = lengths(problem), problem.time or (0.0, 1.0)
    by, late = _split(problem, orders)
    in_space = SPACE_STEPS if any(by) else (1.0,)
    in_time = TIME_STEPS if late else (1.0,)
    found = [
        difference(problem, solution, orders, points, times, share * extent, brief * (end - start))
        for share, brief in product(in_space, in_time)
    ]
    return np.stack(found).reshape(len(in_space), len(in_time), *found[0].shape)


def _split(problem: Problem, orders: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """Return how often is differentiated along each space axis, and by time."""
    return orders[: len(problem.space)], sum(orders[len(problem.space) :])


def difference(
    problem: Problem,
    solution: DiscreteSolution,
    orders: tuple[int, ...],
    points: Array,
    times: Array,
    step: Array,
    time_step: float,
) -> Array:
    """Return a derivative of all fields [fields, k, m] at points [m, d] by steps [d], or [m, d] of their own.

    It is not a number where a stencil leaves the domain, or reaches over an interface.
    """
    by, times_over = _split(problem, orders)
    offsets, factors = mixed(by)
    stencil = points + offsets[:, None] * step
    fitting = fits(problem, stencil)
    derivative = np.full((len(problem.fields), len(times), len(points)), np.nan)
    if np.any(fitting):
        late = central_stencil(times_over)
        moments_ = (times[:, None] + time_step * np.array(list(late))).ravel()
        values = evaluate(solution, stencil[:, fitting].reshape(-1, points.shape[1]), moments_)
        values = values.reshape(len(problem.fields), len(times), len(late), len(offsets), -1)
        total = np.einsum("fkqsm,q,s->fkm", values, list(late.values()), factors)
        divisor = np.prod(np.broadcast_to(step, points.shape)[fitting] ** np.array(by), axis=1)
        derivative[:, :, fitting] = total / (divisor * time_step**times_over)
    return derivative


def _natural(
    problem: Problem,
    solution: DiscreteSolution,
    jets: tuple[DerivativeSymbol, ...],
    points: Array,
    times: Array,
) -> dict[DerivativeSymbol, Array]:
    """Return what each jet would be if the solution varied once over the domain and the time interval."""
    values = evaluate(solution, points, times)
    spread = np.ptp(values, axis=(1, 2)) + 1e-3 * np.max(np.abs(values), axis=(1, 2))
    extent, (start, end) = float(np.max(lengths(problem))), problem.time or (0.0, 1.0)
    shape = (1, 1, len(times), len(points))
    size = dict(zip(problem.fields, spread, strict=True))
    found = {}
    for jet in jets:
        by, times_over = _split(problem, jet.orders)
        found[jet] = np.full(shape, size[jet.field] / (extent ** sum(by) * (end - start) ** times_over))
    return found
