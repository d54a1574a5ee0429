"""Numbers that are asked for of a solution, each with an error of its own.

The error is the largest of three: how far the number is from that of the coarser solution before; what is left of its
own quadrature or search; and the error that the checks give the field, times the size of the expression over the domain
and the time interval. A second method that is further away than it is from itself speaks against the number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import inf, isfinite

import numpy as np

from sharp.problems import (
    NORMAL,
    Derivative,
    Name,
    Node,
    Problem,
    QuantityOfInterest,
    compile_expressions,
    replaced,
    to_sympy,
)
from sharp.solvers.data_features import boundary_features, equation_features
from sharp.solvers.derivatives import first_derivative
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.grid import Array
from sharp.solvers.refine import RefinementStudy
from sharp.solvers.regions import COUNTS, Chart, charts, composite, rule
from sharp.solvers.sample_points import evaluate, interior_points, recurrence, sample_times

Integrand = Callable[[Array, Array, Array], Array]
"""Takes points [m, d], ascending times [k] and normals [m, d]; gives values [k, m]."""

# Where the size of an expression is measured.
SIZE_POINTS = 120
SIZE_MOMENTS = (0.03, 0.2, 0.5, 0.8, 1.0)
# What quadrature may leave, as a share of the accuracy.
_QUADRATURE = 0.01
# Values at points and times that are computed at most for one integral.
_MOST = 3_000_000
# The search of extrema: points on a chart and times, starts of local searches, and halvings of their reach.
_SOUGHT = {0: 1, 1: 400, 2: 900, 3: 900}
_MOMENTS, _STARTS, _HALVINGS = 33, 3, 30
# A second method contradicts where it is further away than so many accuracies, and than so many errors of its own.
_ACCURACIES, _OWN = 10.0, 3.0


@dataclass(frozen=True)
class QuantityEstimate:
    """A number that was asked for, with its estimated absolute error, both in `unit` (None where it is not known).

    `relative` is the error relative to the size of the quantity: the larger of its magnitude and of the root mean
    square of its expression over the domain. `verified` says that it is below the accuracy asked for, of a solution
    that is verified; `note` says what it is.
    """

    name: str
    value: float
    error: float
    unit: str | None
    relative: float
    verified: bool
    note: str

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit and self.unit != "1" else ""
        if not isfinite(self.value):
            return f"{self.name}: not computed ({self.note})"
        error = f"± {self.error:.1e}" if isfinite(self.error) else "of unknown error"
        doubt = "" if self.verified else "; not verified"
        return f"{self.name} = {self.digits}{unit} ({error}{doubt}): {self.note}"

    @property
    def digits(self) -> str:
        """The value with the digits that its error leaves, and one more."""
        return _digits(self.value, self.error)


def _digits(value: float, error: float) -> str:
    if not isfinite(error) or error <= 0 or value == 0:
        return f"{value:.10g}"
    kept = int(np.floor(np.log10(abs(value)))) - int(np.floor(np.log10(error))) + 2
    return f"{value:.{min(max(kept, 2), 14)}g}"


def estimate_all(
    problem: Problem,
    own: Mapping[str, ComputedQuantity],
    accuracy: float,
    other: Mapping[str, ComputedQuantity] | None = None,
    *,
    sound: bool = True,
) -> Mapping[str, QuantityEstimate]:
    """Return the quantities of a solution with their errors; `other` are those of a second method.

    `sound` says that the solution is verified.
    """
    others = other or {}
    return {
        asked.name: _estimate(problem, asked, own[asked.name], others.get(asked.name), accuracy, sound=sound)
        for asked in problem.quantities
        if asked.name in own
    }


def _estimate(
    problem: Problem,
    asked: QuantityOfInterest,
    own: ComputedQuantity,
    other: ComputedQuantity | None,
    accuracy: float,
    *,
    sound: bool,
) -> QuantityEstimate:
    error, size, converted = own.error, own.size, asked.converted
    if other is not None and isfinite(other.error):
        apart = abs(other.value - own.value)
        if not apart <= max(_ACCURACIES * accuracy * size, _OWN * (other.error + error)):
            error = max(error, apart)
    relative = error / size if size > 0 else (0.0 if error == 0 else inf)
    return QuantityEstimate(
        asked.name,
        converted(own.value),
        abs(converted.factor) * error,
        asked.unit,
        relative,
        bool(sound and relative <= accuracy),
        quantity_text(problem, asked),
    )


def quantity_text(problem: Problem, asked: QuantityOfInterest) -> str:
    """Return in words what a quantity is."""
    if asked.mode is not None:
        return f"{asked.text} of eigenvalue {asked.mode}"
    place = ""
    if asked.point is not None:
        at = zip(problem.space, asked.point, strict=True)
        place = " at " + ", ".join(f"{name} = {value:g}" for name, value in at)
    elif asked.parts is not None:
        place = f" over {problem.specification.quantities[asked.name].over}"
    elif asked.take != "value":
        place = " over the domain"
    if asked.time is not None:
        place += (
            f", {problem.time_name} = {asked.time:g}"
            if place
            else f" at {problem.time_name} = {asked.time:g}"
        )
    elif problem.time is not None:
        place += f", {problem.time_name} from {problem.time[0]:g} to {problem.time[1]:g}"
    return f"{'' if asked.take == 'value' else f'{asked.take} of '}{asked.text}{place}"


@dataclass(frozen=True)
class ComputedQuantity:
    """A quantity in the units of the specification, its absolute error by one method alone, and its size."""

    value: float
    error: float
    size: float

    @classmethod
    def of(
        cls, problem: Problem, asked: QuantityOfInterest, study: RefinementStudy, accuracy: float
    ) -> ComputedQuantity:
        """Return a quantity of the solution of a refinement, which has one."""
        assert study.solution is not None, "there is a solution to ask"
        if asked.mode is not None:
            return cls._eigenvalue(problem, asked, study, study.error)
        usual, now, measure = _sizes(problem, asked, study.solution)
        aim = _QUADRATURE * accuracy * max(now, usual) * measure
        value, left, at = compute(problem, asked, study.solution, aim)
        size = max(abs(value), now * measure) if isfinite(value) else 0.0
        if study.coarser is None:
            return cls(value, inf, size)
        before, _, _ = compute(problem, asked, study.coarser, aim, at)
        parts = (abs(value - before), left, study.error * usual * measure)
        return cls(value, max(parts) if all(map(isfinite, parts)) else inf, size)

    @classmethod
    def _eigenvalue(
        cls, problem: Problem, asked: QuantityOfInterest, study: RefinementStudy, known: float
    ) -> ComputedQuantity:
        assert study.solution is not None, "there is a solution to ask"
        assert asked.mode is not None, "an eigenvalue is asked for"
        unknown = problem.specification.eigenvalue
        assert unknown is not None, "the problem has eigenvalues"

        def value(found: float) -> float:
            (result,) = _program(problem, asked.tree, (unknown.name,))(found, *problem.parameters.values())
            return float(result)

        numbers = study.solution.eigenvalues
        if len(numbers) < asked.mode:
            return cls(np.nan, inf, 0.0)
        here = numbers[asked.mode - 1]
        shifted = [value(here * (1 + sign * known)) for sign in (-1, 1)]
        error = max(abs(each - value(here)) for each in shifted)
        return cls(value(here), error if isfinite(known) else inf, abs(value(here)))


def compute_all(problem: Problem, study: RefinementStudy, accuracy: float) -> Mapping[str, ComputedQuantity]:
    """Return all quantities of a specification by name; none of a refinement without a solution."""
    if study.solution is None:
        return {}
    return {asked.name: ComputedQuantity.of(problem, asked, study, accuracy) for asked in problem.quantities}


Place = tuple[Chart | None, Array, float]
"""Where an extremum lies: a chart, parameters on it, and a time."""


def compute(
    problem: Problem,
    asked: QuantityOfInterest,
    solution: DiscreteSolution,
    tolerance: float = 0.0,
    near: Place | None = None,
) -> tuple[float, float, Place | None]:
    """Return a quantity in the units of the specification, what its quadrature or search has left, and where it lies.

    A quadrature is refined until it changes by no more than `tolerance`. An extremum is sought everywhere, or about
    where it is `near`. Not a number where the solution has no derivative, as in a sharp corner.
    """
    integrand = integrand_of(problem, asked, solution)
    if asked.take in ("maximum", "minimum"):
        return _extremum(problem, asked, integrand, near)
    if asked.point is not None and asked.take == "value":
        place = np.array([asked.point])
        found = integrand(place, _fixed_times(asked), np.zeros_like(place))
        return float(found[0, 0]), 0.0, None
    return *_integral(problem, asked, integrand, tolerance), None


def integrand_of(
    problem: Problem, asked: QuantityOfInterest, solution: DiscreteSolution, *, natural: bool = False
) -> Integrand:
    """Return the expression of a quantity as a function of points, times and normals.

    With `natural`, derivatives are what they would be if the solution varied once over the domain, or the interval.
    """
    derivatives = asked.derivatives
    names = tuple(_jet_name(node) for node in derivatives)
    late = (str(problem.time_name),) if problem.time is not None else ()
    normals = tuple(NORMAL + name for name in problem.space)
    arguments = (*problem.space, *late, *problem.fields, *names, *normals)
    program = _program(problem, asked.tree, arguments)

    def values(points: Array, times: Array, outward: Array) -> Array:
        fields = evaluate(solution, points, times)
        kinds = dict.fromkeys(node.by[0] for node in derivatives)
        if natural:
            spread = np.ptp(fields, axis=2, keepdims=True)
            found = {by: np.broadcast_to(spread / _extent(problem, by), fields.shape) for by in kinds}
        else:
            found = {by: first_derivative(problem, solution, by, points, times) for by in kinds}
        jets = [found[node.by[0]][problem.fields.index(node.of.name)] for node in derivatives]  # type: ignore[union-attr]
        moments = [times[:, None]] if late else []
        (value,) = program(*points.T, *moments, *fields, *jets, *outward.T, *problem.parameters.values())
        return np.array(np.broadcast_to(np.asarray(value, dtype=float), (len(times), len(points))))

    return values


def _extent(problem: Problem, by: str) -> float:
    low, high = problem.bounds.get(by) or problem.time or (0.0, 1.0)
    return high - low


@lru_cache(maxsize=256)
def _program(problem: Problem, tree: Node, arguments: tuple[str, ...]) -> Callable[..., tuple[Array, ...]]:
    """Return an expression as a program of these arguments and then the parameters; coefficients are put in."""
    given = problem.specification.coefficients
    names: dict[Node, Node] = {
        Name(name): problem.tree(str(function.expression)) for name, function in given.items()
    }
    whole = replaced(replaced(tree, _jet), names.get)
    return compile_expressions([to_sympy(whole)], [*arguments, *problem.parameters])


def _jet(node: Node) -> Node | None:
    return Name(_jet_name(node)) if isinstance(node, Derivative) else None


def _jet_name(node: Derivative) -> str:
    assert isinstance(node.of, Name), "quantities have derivatives of fields alone"
    return f"{node.of.name}_{node.by[0]}"


def _fixed_times(asked: QuantityOfInterest) -> Array:
    return np.array([asked.time or 0.0])


def _sizes(
    problem: Problem, asked: QuantityOfInterest, solution: DiscreteSolution
) -> tuple[float, float, float]:
    """Return the root mean square of the expression over domain and time interval, that at the fixed time if there is
    one, and the measure that an integral multiplies it by.
    """
    points = interior_points(problem, SIZE_POINTS, start=911)
    outward = np.full_like(points, 1 / np.sqrt(points.shape[1]))

    def size(times: Array) -> float:
        # A flux that is zero everywhere is not measured by its own rounding, but by what the spread suggests.
        kinds = (integrand_of(problem, asked, solution, natural=natural) for natural in (False, True))
        return max(_rms(integrand(points, times, outward)) for integrand in kinds)

    usual = size(sample_times(problem, SIZE_MOMENTS))
    now = usual if asked.time is None else size(_fixed_times(asked))
    measure = 1.0
    if asked.take == "integral":
        measure = 1.0 if asked.point else float(np.sum(rule(problem, asked.parts, 0).weights))
        if asked.time is None and problem.time is not None:
            measure *= problem.time[1] - problem.time[0]
    return usual, now, measure


def _rms(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(known**2))) if known.size else 0.0


def _integral(
    problem: Problem, asked: QuantityOfInterest, integrand: Integrand, tolerance: float
) -> tuple[float, float]:
    """Return an integral or a mean by rules of rising accuracy, with the last change."""
    before, change = np.nan, inf
    for level in range(len(COUNTS[1])):
        if asked.point is not None:
            points, weights, outward = np.array([asked.point]), np.ones(1), np.zeros((1, len(asked.point)))
        else:
            chosen = rule(problem, asked.parts, level)
            points, weights, outward = chosen.points, chosen.weights, chosen.normals
        times, factors = _time_rule(problem, asked, level)
        if level > 1 and len(points) * len(times) > _MOST:
            break
        total = float(factors @ integrand(points, times, outward) @ weights)
        if asked.take == "mean":
            total /= float(np.sum(weights) * np.sum(factors))
        change, before = abs(total - before), total
        if change <= tolerance or not isfinite(total):
            break
    return before, change


def _time_rule(problem: Problem, asked: QuantityOfInterest, level: int) -> tuple[Array, Array]:
    if asked.time is not None or problem.time is None:
        return _fixed_times(asked), np.ones(1)
    start, end = problem.time
    # What begins with a jump changes like a root of time: pieces shrink towards the beginning.
    cuts = [start + (end - start) * 10.0**-power for power in range(1, 9)]
    for feature in (*equation_features(problem), *boundary_features(problem)):
        if feature.short:
            reach = feature.duration * (end - start)
            cuts += [feature.time + times * reach for times in (-16, -4, -1, 0, 1, 4, 16)]
    return composite(problem.time, cuts, level)


def _extremum(
    problem: Problem, asked: QuantityOfInterest, integrand: Integrand, near: Place | None
) -> tuple[float, float, Place]:
    """Return the largest or smallest value, sought on every chart, what the last step changed, and where it lies."""
    sign = 1.0 if asked.take == "maximum" else -1.0
    if near is not None:
        found = [_climb(problem, asked, integrand, near[0], sign, near[1][None], near[2])]
    elif asked.point is not None:
        found = [_climb(problem, asked, integrand, None, sign, np.array([asked.point]))]
    else:
        found = [
            _climb(problem, asked, integrand, chart, sign, _starts(problem, chart))
            for chart in charts(problem, asked.parts)
        ]
    best, left, place = max(found, key=lambda each: each[0])
    return sign * best, left, place


def _starts(problem: Problem, chart: Chart) -> Array:
    """Return parameters [m, p] at which the search on a chart begins: evenly spread, corners and narrow data."""
    dimension = len(chart.low)
    if dimension == 0:
        return np.zeros((1, 0))
    spread = chart.low + (chart.high - chart.low) * recurrence(_SOUGHT[dimension], dimension)
    corners = np.array(list(product(*zip(chart.low, chart.high, strict=True))))
    found = [spread, corners]
    if chart.part is None:
        found += [np.array([feature.place]) for feature in equation_features(problem)]
    return np.concatenate(found)


def _climb(
    problem: Problem,
    asked: QuantityOfInterest,
    integrand: Integrand,
    chart: Chart | None,
    sign: float,
    starts: Array,
    time: float | None = None,
) -> tuple[float, float, Place]:
    """Search from the best of all starts, with a reach that is halved, among neighbours in space and time.

    The times of starts are spread over the interval, or all are `time`.
    """
    low, high = (chart.low, chart.high) if chart else (starts[0], starts[0])
    free = asked.time is None and problem.time is not None
    span = problem.time if free and problem.time is not None else (asked.time or 0.0,) * 2

    def seen(parameters: Array, times: Array) -> Array:
        """Return the values [k, m], minus infinity where there are none."""
        if chart is None:
            points, outward, inside = (
                parameters,
                np.zeros_like(parameters),
                np.ones(len(parameters), dtype=bool),
            )
        else:
            points, outward, inside = chart.points(parameters)
        found = np.full((len(times), len(parameters)), -inf)
        if np.any(inside):
            values = sign * integrand(points[inside], times, outward[inside])
            found[:, inside] = np.where(np.isfinite(values), values, -inf)
        return found

    moments = np.linspace(*span, _MOMENTS) if free else np.array([span[0]])
    if time is not None:
        moments = np.array([time])
    values = seen(starts, moments)
    best, left, place_of_best = -inf, inf, (chart, starts[0], float(moments[0]))
    for place in np.argsort(values, axis=None)[::-1][:_STARTS]:
        k, m = np.unravel_index(place, values.shape)
        here, now, value, change = starts[m], float(moments[k]), float(values[k, m]), inf
        if not isfinite(value):
            continue
        spacing = max(len(starts), 100) ** (-1 / max(len(low), 1))
        reach, brief = 2 * spacing * (high - low), (span[1] - span[0]) / (_MOMENTS - 1)
        for _ in range(_HALVINGS):
            around, times = _neighbours(here, now, reach, brief, low, high, span)
            tried = seen(around, times)
            k, m = np.unravel_index(np.argmax(tried), tried.shape)
            if tried[k, m] > value:
                change, value = float(tried[k, m]) - value, float(tried[k, m])
                here, now = around[m], float(times[k])
            else:
                reach, brief, change = reach / 2, brief / 2, change / 2 if isfinite(change) else 0.0
        if value > best:
            best, left, place_of_best = value, change, (chart, here, now)
    return best, left if isfinite(best) else inf, place_of_best


def _neighbours(
    here: Array, now: float, reach: Array, brief: float, low: Array, high: Array, span: tuple[float, float]
) -> tuple[Array, Array]:
    offsets = np.array(list(product((-1.0, -0.3, 0.0, 0.3, 1.0), repeat=len(here))))
    around = np.clip(here + offsets * reach, low, high) if len(here) else np.zeros((1, 0))
    times = np.unique(np.clip(now + brief * np.array([-1.0, -0.3, 0.0, 0.3, 1.0]), *span))
    return around, times
