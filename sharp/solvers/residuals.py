"""How well a solution satisfies its equations and conditions, with derivatives from values of the solution alone.

Derivatives come from differences of order 7 or 8, with steps of several sizes: truncation falls with the step, errors
of rounding and of interpolation grow, and where both are least depends on the solution. The residual of the best step
counts, so that what is left is the solution's own, or the least that differences can tell.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from sharp.problems import (
    Boundary,
    BoxDomain,
    DerivativeSymbol,
    ExpressionProgram,
    PlaneDomain,
    PolygonDomain,
    Problem,
    RoundDomain,
    compile_expressions,
    field_flux,
    has_accepted_jump,
    opens,
)
from sharp.solvers.data_features import equation_features, given_functions
from sharp.solvers.discontinuities import interfaces
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.fd_weights import HALF, central_stencil, least_change, mixed, one_sided_stencil
from sharp.solvers.field_sizes import measured, sizes, usual_sizes
from sharp.solvers.functions import compile_function
from sharp.solvers.grid import Array
from sharp.solvers.sample_points import (
    BoundarySamples,
    boundary,
    evaluate,
    fits,
    interior_points,
    lengths,
    sample_times,
)
from sharp.solvers.strong_form import StrongForm
from sharp.solvers.system import covered, factors_of, system_of

# Steps, as shares of the extent of the domain and of the time interval; the largest stencil reaches four steps away.
SPACE_STEPS = (0.06, 0.02, 0.006, 0.002)
TIME_STEPS = (0.03, 0.008, 0.002, 0.0004)
# Those of one-sided differences, whose stencils reach seven steps away.
ONE_SIDED_STEPS = (0.03, 0.01, 0.003, 0.001, 1e-4, 1e-5)
POINTS = {1: 160, 2: 100, 3: 48}
MOMENTS = (0.13, 0.31, 0.58, 0.87)
START_POINTS = {1: 200, 2: 300, 3: 300}
POINTS_ON_A_PART = 24
CONDITION_MOMENTS = (0.03, 0.21, 0.52, 0.93)
# This share of the points may lie where no difference formula can follow the solution: kinks, fronts, interfaces.
QUANTILE = 0.9
# A field that is constant has slopes by rounding alone: they are measured by this share of it.
_EVEN = 1e-6
# Where the data change by more than this share of their size within a stencil, none can; looked at at so many places.
_LEAP, _LOOKS = 0.3, 4
# Where fewer than this share of all points are left, all of them count.
_ENOUGH = 0.2

# Where more than this share of the terms does not balance, a solution of many periods may vary within the least step:
# all steps are tried again, divided by each of these.
_FOLLOWED, _FINER = 1e-3, (1.0, 16.0, 256.0)

Stencil = tuple[Array, Array]
_HERE: Stencil = central_stencil(0)


@dataclass(frozen=True)
class PointwiseResidual:
    """The residual of all equations relative to the size of their terms.

    `typical` is that of nine points in ten, `integrated` the mean over space and time; both count where the data do not
    jump and are not narrower than differences, `largest` everywhere.
    """

    typical: float
    largest: float
    integrated: float


@dataclass(frozen=True)
class DerivativeProgram:
    """Expressions as a program of coordinates, time (which may occur nowhere) and derivatives of the fields."""

    jets: tuple[DerivativeSymbol, ...]
    program: ExpressionProgram

    @classmethod
    def of(cls, written: StrongForm, expressions: Sequence[Any]) -> DerivativeProgram:
        """Return the program of some expressions, with numbers for parameters."""
        jets: dict[DerivativeSymbol, Any] = {}
        forms = [_substituted(written, expression, jets) for expression in expressions]
        problem = written.problem
        names = [*problem.space, problem.time_name or "time", *(symbol.name for symbol in jets.values())]
        return cls(tuple(jets), compile_expressions(forms, names))

    def __call__(
        self, points: Array, times: Array, jets: Mapping[DerivativeSymbol, Array]
    ) -> tuple[Any, ...]:
        """Return the values of the expressions at points [m, d] and times [k], given those of the derivatives."""
        return self.program(*points.T, times[:, None], *(jets[jet] for jet in self.jets))


def _substituted(written: StrongForm, expression: Any, jets: dict[DerivativeSymbol, Any]) -> Any:
    """Return an expression with a symbol for each jet and numbers for parameters, and note new jets."""
    expression, coordinates = expression.doit(), tuple(written.coordinates.values())
    for kind in (sympy.Derivative, sympy.core.function.AppliedUndef):
        parts = sorted(expression.atoms(kind), key=str)
        found = {part: DerivativeSymbol.of(part, coordinates) for part in parts}
        jets.update((jet, jet.symbol) for jet in found.values())
        expression = expression.xreplace({part: jet.symbol for part, jet in found.items()})
    return expression.xreplace(written.numbers)


def residual(problem: Problem, solution: DiscreteSolution) -> PointwiseResidual:
    """Return the residual of the equations at points that are random for the method.

    Raises `SpecificationError` for equations that cannot be written as a program.
    """
    written = StrongForm.of(problem, solution.eigenvalues)
    equations = [written.equation(index).doit() for index in range(len(problem.equations))]
    terms = [sympy.Add.make_args(equation.xreplace(written.numbers)) for equation in equations]
    owners = np.repeat(range(len(terms)), list(map(len, terms)))
    program = DerivativeProgram.of(written, [term for own in terms for term in own])
    points = interior_points(problem, POINTS[len(problem.space)], start=1009)
    times = sample_times(problem, MOMENTS)
    even = _is_even(problem, points, times)

    def of(jets: Mapping[DerivativeSymbol, Array]) -> Array:
        return np.stack(np.broadcast_arrays(*program(points, times, jets), *jets.values())[: len(owners)])

    best = PointwiseResidual(np.inf, np.inf, np.inf)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        natural = of(_natural(problem, solution, program.jets, points, times))
        for finer in _FINER:
            values = of(_jets(problem, solution, program.jets, points, times, finer))
            found = [_relative(values[owners == i], natural[owners == i], even) for i in range(len(terms))]
            seen = PointwiseResidual(*(max(figures) for figures in zip(*found, strict=True)))
            best = min(best, seen, key=lambda each: each.typical)
            if best.typical < _FOLLOWED:
                break
    return best


def _space_steps(problem: Problem) -> tuple[float, ...]:
    """Return the steps of differences, as shares of the extent, of which the least fit between interfaces."""
    if len(problem.space) > 1:
        return SPACE_STEPS
    ((low, high),) = problem.bounds.values()
    widest = float(np.max(np.diff([low, *interfaces(problem), high]))) / (high - low)
    finer = min(0, math.ceil(math.log2(widest / (4 * HALF * SPACE_STEPS[-1]))))
    return (*SPACE_STEPS, *(SPACE_STEPS[-1] * 2.0**power for power in range(-1, finer - 1, -1)))


def _is_even(problem: Problem, points: Array, times: Array) -> NDArray[np.bool_]:
    """Return [k, m] whether the given functions vary little within the least stencil at points [m, d] and times [k]."""
    extents, (start, end) = lengths(problem), problem.time or (0.0, 1.0)
    reach, brief = HALF * _space_steps(problem)[-1] * extents, HALF * TIME_STEPS[-1] * (end - start)
    even = np.ones((len(times), len(points)), dtype=bool)
    for feature in equation_features(problem):
        away = np.abs(points - feature.place) > reach + 4 * np.array(feature.widths) * extents
        late = np.abs(times - feature.time) > brief + 4 * feature.duration * (end - start)
        even &= away.any(axis=1) | (late[:, None] & feature.short)
    moments = times if problem.time else np.empty((len(times), 0))
    here = np.stack([np.hstack([points, np.full((len(points), moment.size), moment)]) for moment in moments])
    functions = given_functions(problem)
    values = functions(here.reshape(-1, here.shape[-1]))
    apart, most = np.zeros(values.shape), np.abs(values)
    along = np.diag([*reach, *([brief] if problem.time else [])])
    for step, share in product(along, np.linspace(-1, 1, 2 * _LOOKS)):
        there = functions((here + share * step).reshape(-1, here.shape[-1]))
        apart, most = np.fmax(apart, np.abs(there - values)), np.fmax(most, np.abs(there))
    largest = np.max(most, axis=1, keepdims=True)
    return np.asarray(even & (apart <= _LEAP * largest).all(axis=0).reshape(even.shape))


def _relative(terms: Array, natural: Array, even: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return the residual of one equation by the values of its terms [terms, space steps, time steps, k, m]."""
    parts = terms.reshape(len(terms), -1, *terms.shape[-2:])
    total = np.abs(parts.sum(axis=0))
    # A point that no step fits has no residual; the best step of every other counts.
    best = np.argmin(np.where(np.isfinite(total), total, np.inf), axis=0)[None]
    left = np.take_along_axis(total, best, axis=0)
    size = np.take_along_axis(np.abs(parts).sum(axis=0), best, axis=0)
    sound = np.isfinite(left)
    if not np.any(sound):
        return np.inf, np.inf, np.inf
    # Terms count as no smaller than the extents suggest, lest the residual of u_xx = 0 be measured by rounding.
    least = float(np.sqrt(np.nanmean(np.abs(natural).sum(axis=0) ** 2)))
    scale = max(float(np.sqrt(np.mean(size[sound] ** 2))), least) or 1.0
    # The integral of the residual is measured by that of the terms.
    counted = left[sound & even]
    mean = float(counted.sum() / sound.sum()) / max(float(np.mean(size[sound])), least, 1e-300)
    if counted.size < _ENOUGH * left.size:
        counted = left[sound]
    return float(np.quantile(counted, QUANTILE)) / scale, float(np.max(left[sound])) / scale, mean


def _jets(
    problem: Problem,
    solution: DiscreteSolution,
    jets: tuple[DerivativeSymbol, ...],
    points: Array,
    times: Array,
    finer: float = 1.0,
) -> dict[DerivativeSymbol, Array]:
    """Return each jet [space steps or 1, time steps or 1, k, m] by steps that are so much finer than usual.

    It is not a number where a stencil leaves the domain.
    """
    extent, (start, end) = lengths(problem), problem.time or (0.0, 1.0)
    kinds = {}
    for orders in dict.fromkeys(jet.orders for jet in jets):
        by, late = _split(problem, orders)
        in_space, in_time = _space_steps(problem) if any(by) else (1.0,), TIME_STEPS if late else (1.0,)
        found = [
            difference(
                problem,
                solution,
                orders,
                points,
                times,
                share / finer * extent,
                brief / finer * (end - start),
            )
            for share, brief in product(in_space, in_time)
        ]
        kinds[orders] = np.stack(found).reshape(len(in_space), len(in_time), *found[0].shape)
    return {jet: kinds[jet.orders][:, :, problem.fields.index(jet.field)] for jet in jets}


def _natural(
    problem: Problem,
    solution: DiscreteSolution,
    jets: tuple[DerivativeSymbol, ...],
    points: Array,
    times: Array,
) -> dict[DerivativeSymbol, Array]:
    """Return what each jet would be if the solution varied once over the domain and the time interval."""
    values = evaluate(solution, points, times)
    own = np.ptp(values, axis=(1, 2)) + 1e-3 * np.max(np.abs(values), axis=(1, 2))
    spread = measured(problem, own)
    extent, (start, end) = float(np.max(lengths(problem))), problem.time or (0.0, 1.0)
    found = {}
    for jet in jets:
        by, late = _split(problem, jet.orders)
        size = spread[problem.fields.index(jet.field)] / (extent ** sum(by) * (end - start) ** late)
        found[jet] = np.full((1, 1, len(times), len(points)), size)
    return found


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
    by, late = _split(problem, orders)
    (offsets, weights), (moments, factors) = mixed(by), central_stencil(late)
    in_space, in_time = (offsets[:, None] * step, weights), (time_step * moments, factors)
    total = _weighted(problem, solution, points, times, in_space, in_time)
    return np.asarray(total / (np.prod(step ** np.array(by), axis=-1) * time_step**late))


def _weighted(
    problem: Problem,
    solution: DiscreteSolution,
    points: Array,
    times: Array,
    in_space: Stencil,
    in_time: Stencil = _HERE,
) -> Array:
    """Return the weighted sum [fields, k, m] of values at offsets [s, m or 1, d] from points and [q] from times.

    It is not a number where the offsets lead out of the domain, or over an interface.
    """
    (offsets, weights), (moments, factors) = in_space, in_time
    stencil = points + offsets
    fitting = fits(problem, stencil)
    total = np.full((len(problem.fields), len(times), len(points)), np.nan)
    if np.any(fitting):
        places = stencil[:, fitting].reshape(-1, points.shape[1])
        values = evaluate(solution, places, (times[:, None] + moments).ravel())
        values = values.reshape(len(problem.fields), len(times), len(moments), len(offsets), -1)
        total[:, :, fitting] = np.einsum("fkqsm,q,s->fkm", values, factors, weights)
    return total


@dataclass(frozen=True)
class ConditionResidual:
    """The relative mismatch of a condition, which it is, and whether only differences or samples could measure it."""

    condition: str
    value: float
    coarse: bool


def initial_residuals(problem: Problem, solution: DiscreteSolution) -> Iterator[ConditionResidual]:
    """Yield the relative L2 distance from each initial state, at random points; in L1 where jumps in it are accepted.

    No grid meets a jump at the boundary between its last two nodes.
    """
    if problem.time is None:
        return
    points = interior_points(problem, START_POINTS[len(problem.space)], start=4001)
    start, end = problem.time
    size = _mean_size if has_accepted_jump(problem) else _rms
    usual = sizes(problem, evaluate(solution, points, sample_times(problem, CONDITION_MOMENTS)))
    for name, state in problem.specification.initial.items():
        field, order = _component(problem, name)
        wanted = compile_function(problem, str(state.expression))(points, np.array([start]))[0]
        found = _rate(problem, solution, points, order)[field]
        scale = max(size(wanted), float(usual[field]) / (end - start) ** order) or 1.0
        yield ConditionResidual(f"{name} at the start", size(found - wanted) / scale, order > 0)


def _component(problem: Problem, name: str) -> tuple[int, int]:
    """Return the field and the order of the time derivative that the name of an initial state stands for."""
    if name in problem.fields:
        return problem.fields.index(name), 0
    field, _, marks = name.rpartition("_")
    return problem.fields.index(field), len(marks) // len(str(problem.time_name))


def _rate(problem: Problem, solution: DiscreteSolution, points: Array, order: int) -> Array:
    """Return a time derivative of all fields at the start [fields, m]."""
    assert problem.time is not None
    start, end = problem.time
    offsets, weights = one_sided_stencil(order)
    found = []
    for share in ONE_SIDED_STEPS if order else (1.0,):
        step = -share * (end - start)
        values = evaluate(solution, points, start + step * offsets)
        found.append(np.einsum("fkm,k->fm", values, weights) / step**order)
    return least_change(np.stack(found))


def boundary_residuals(problem: Problem, solution: DiscreteSolution) -> Iterator[ConditionResidual]:
    """Yield the mismatch of every boundary condition on every part that it covers, and of periodic ends."""
    times = sample_times(problem, CONDITION_MOMENTS)
    inner = evaluate(solution, interior_points(problem, 200, start=77), times)
    for condition in problem.specification.boundary:
        if condition.type == "periodic":
            yield _periodic(problem, solution, str(condition.axis), times, inner)
            continue
        for part in covered(problem, str(condition.where)):
            if not opens(problem, condition, part):
                yield _on_part(problem, solution, condition, part, times, inner)


def _periodic(
    problem: Problem, solution: DiscreteSolution, axis: str, times: Array, inner: Array
) -> ConditionResidual:
    low, high = (boundary(problem.domain, axis + side, POINTS_ON_A_PART) for side in "-+")
    apart = evaluate(solution, high.points, times) - evaluate(solution, low.points, times)
    worst = max(_rms(own) / float(size) for own, size in zip(apart, sizes(problem, inner), strict=True))
    return ConditionResidual(f"periodic along {axis}", worst, False)


def _on_part(
    problem: Problem, solution: DiscreteSolution, condition: Boundary, part: str, times: Array, inner: Array
) -> ConditionResidual:
    if condition.type == "flux":
        return _flux_on_part(problem, solution, condition, part, times, inner)
    edge = boundary(problem.domain, part, POINTS_ON_A_PART)
    index = problem.fields.index(str(condition.field))
    here = evaluate(solution, edge.points, times)
    wanted = compile_function(problem, str(condition.value))(edge.points, times, here)
    texts = factors_of(condition)
    factors = {
        order: compile_function(problem, text)(edge.points, times, here) for order, text in texts.items()
    }
    # Beside what stands there, what the extents suggest: an insulated end is not measured by its own rounding.
    extent = float(np.mean(np.abs(edge.normals) @ lengths(problem)))
    terms = {
        order: factor * _normal(problem, solution, edge, times, order, extent)[index]
        for order, factor in factors.items()
    }
    level = float(sizes(problem, inner)[index])
    spread = float(np.ptp(inner[index])) + _EVEN * level
    natural = sum(_rms(factors[order]) * (spread / extent**order if order else level) for order in factors)
    coarse = max(factors) > 0
    # Where conditions of two kinds meet, slopes may jump at one point of a solution that is as good as any elsewhere.
    size = _mean_size if coarse else _rms
    scale = max(size(wanted), natural, *map(size, terms.values())) or 1.0
    name = f"{condition.type} condition of {condition.field} on {part}"
    return ConditionResidual(name, size(sum(terms.values()) - wanted) / scale, coarse)


def _flux_on_part(
    problem: Problem, solution: DiscreteSolution, condition: Boundary, part: str, times: Array, inner: Array
) -> ConditionResidual:
    """Return the mismatch of a given flux, with derivatives by one-sided differences into the domain."""
    edge = boundary(problem.domain, part, POINTS_ON_A_PART)
    form = field_flux(problem, str(condition.field))
    assert form is not None, "a flux is given where there is one"
    terms = [sympy.Add.make_args(component) for component in form.flux]
    axes = np.repeat(range(len(terms)), list(map(len, terms)))
    program = DerivativeProgram.of(StrongForm.of(problem), [term for own in terms for term in own])
    slopes = _gradient(problem, solution, edge, times)
    values = evaluate(solution, edge.points, times)
    levels = sizes(problem, inner)
    spreads = np.ptp(inner, axis=(1, 2)) + _EVEN * levels
    extent, shape = float(np.max(lengths(problem))), (len(times), len(edge.points))
    jets, natural = {}, {}
    for jet in program.jets:
        by, index = _split(problem, jet.orders)[0], problem.fields.index(jet.field)
        jets[jet] = slopes[by.index(1), index] if any(by) else values[index]
        natural[jet] = np.full(shape, spreads[index] / extent if any(by) else levels[index])
    found, usual = (
        np.stack([np.broadcast_to(term, shape) for term in program(edge.points, times, known)])
        for known in (jets, natural)
    )
    wanted = compile_function(problem, str(condition.value))(edge.points, times, values)
    through = (edge.normals.T[axes][:, None] * found).sum(axis=0)
    # What values inside suggest, and terms along the boundary, say how large a flux is that vanishes through it.
    scale = max(map(_mean_size, [wanted, *found, *usual])) or 1.0
    name = f"flux of {condition.field} on {part}"
    return ConditionResidual(name, _mean_size(through - wanted) / scale, True)


def _gradient(problem: Problem, solution: DiscreteSolution, edge: BoundarySamples, times: Array) -> Array:
    """Return the gradients [d, fields, k, m] on the boundary, by differences along the normal and beside it."""
    count = len(problem.space)
    extent = float(np.mean(np.abs(edge.normals) @ lengths(problem)))
    tangents = np.stack([np.linalg.svd(normal[None])[2][1:] for normal in edge.normals])
    directions = [edge.normals, *(edge.normals + tangents[:, k] for k in range(count - 1))]
    offsets, weights = one_sided_stencil(1)
    slopes = []
    for direction in directions:
        along = offsets[:, None, None] * direction
        found = [
            _weighted(problem, solution, edge.points, times, (step * along, weights)) / step
            for step in (share * extent for share in ONE_SIDED_STEPS)
        ]
        slopes.append(least_change(np.stack(found)))
    matrices = np.stack(directions, axis=1)
    stacked = np.moveaxis(np.stack(slopes), 0, -1)[..., None]
    return np.moveaxis((np.linalg.inv(matrices) @ stacked)[..., 0], -1, 0)


def _normal(
    problem: Problem,
    solution: DiscreteSolution,
    edge: BoundarySamples,
    times: Array,
    order: int,
    extent: float,
) -> Array:
    """Return a normal derivative of all fields [fields, k, m] by the one-sided differences that agree best."""
    if order == 0:
        return evaluate(solution, edge.points, times)
    offsets, weights = one_sided_stencil(order)
    along = offsets[:, None, None] * edge.normals
    found = [
        _weighted(problem, solution, edge.points, times, (step * along, weights)) / step**order
        for step in (share * extent for share in ONE_SIDED_STEPS)
    ]
    return least_change(np.stack(found))


def _rms(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(finite**2))) if finite.size else float("inf")


def _mean_size(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.mean(np.abs(finite))) if finite.size else float("inf")


def mean_residuals(problem: Problem, solution: DiscreteSolution) -> Iterator[ConditionResidual]:
    """Yield how far the mean of a field over the domain is from the one that is given, relative to the field's size.

    A pressure that is as good as none is measured by what else its equation holds.
    """
    if not problem.specification.mean:
        return
    times = sample_times(problem, CONDITION_MOMENTS)
    points, weights = _quadrature(problem)
    values, sampled = evaluate(solution, points, times), isinstance(problem.domain, PolygonDomain)
    scales = np.maximum(sizes(problem, values), usual_sizes(system_of(problem), values))
    for name, text in problem.specification.mean.items():
        index = problem.fields.index(name)
        wanted = compile_function(problem, text)(np.zeros((1, len(problem.space))), times)[:, 0]
        found = values[index] @ weights / np.sum(weights)
        scale = float(scales[index])
        yield ConditionResidual(f"mean of {name}", _rms(found - wanted) / scale, sampled)


def _quadrature(problem: Problem) -> tuple[Array, Array]:
    """Return points [m, d] and weights [m]: products of Gauss rules, or random points of equal weight in a polygon."""
    nodes, weights = np.polynomial.legendre.leggauss(40 if len(problem.space) < 3 else 16)
    match problem.domain:
        case BoxDomain(bounds):
            axes = [low + (high - low) * (nodes + 1) / 2 for low, high in bounds.values()]
            grids = np.meshgrid(*axes, indexing="ij")
            products = np.prod(np.meshgrid(*[weights] * len(axes), indexing="ij"), axis=0)
            return np.stack([grid.ravel() for grid in grids], axis=1), products.ravel()
        case RoundDomain(_, center, inner, outer):
            least = inner or 0.0
            radii = least + (outer - least) * (nodes + 1) / 2
            angles = 2 * np.pi * np.arange(64) / 64
            r, angle = (grid.ravel() for grid in np.meshgrid(radii, angles, indexing="ij"))
            points = center + r[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            return points, np.repeat(weights * radii, 64)
        case PlaneDomain():
            return problem.domain.quadrature(24)
        case _:
            points = interior_points(problem, 6000)
            return points, np.ones(len(points))
