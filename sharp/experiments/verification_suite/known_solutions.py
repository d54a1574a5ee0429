"""Known solutions, as functions of points and times, and the error of another one against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sympy.printing.str import StrPrinter

from sharp.problems import Problem
from sharp.solvers import Array, compile_function

Values = Callable[[Array, Array], Array]


class KnownSolution(Protocol):
    """A solution of a problem: values [fields, k, m] at points [m, d] and times [k]."""

    def values(self, problem: Problem, /) -> Values:
        """Return the function."""
        ...


@dataclass(frozen=True)
class ExactExpressions:
    """A solution by expressions in the grammar of problems, by field."""

    texts: Mapping[str, str]

    def values(self, problem: Problem) -> Values:
        """Return the function."""
        functions = [compile_function(problem, self.texts[name]) for name in problem.fields]
        return lambda points, times: np.stack([function(points, times) for function in functions])


@dataclass(frozen=True)
class JacobiSolution:
    """The solution of -u'' = rate (u - u**3) on [0, 1] with zero ends and `humps` humps, of one sign or the other.

    u = a sn(b x, m) with a**2 = 2m/(1 + m) and b**2 = rate/(1 + m), where b = 2 humps K(m) (W. Magnus,
    F. Oberhettinger and R. Soni, Formulas and Theorems for the Special Functions, 1966, ch. 10).
    """

    rate: float
    humps: int
    sign: int

    def values(self, _problem: Problem, /) -> Values:
        """Return the function."""
        from scipy.optimize import brentq
        from scipy.special import ellipj, ellipk

        def gap(m: float) -> float:
            return float(np.sqrt(self.rate / (1 + m)) - 2 * self.humps * ellipk(m))

        m = float(brentq(gap, 1e-12, 1 - 1e-14, xtol=1e-15))
        height, wave = self.sign * np.sqrt(2 * m / (1 + m)), np.sqrt(self.rate / (1 + m))

        def values(points: Array, times: Array) -> Array:
            along = height * ellipj(wave * points[:, 0], m)[0]
            return np.broadcast_to(along, (1, len(times), len(points)))

        return values


def bratu_solutions(rate: float) -> tuple[ExactExpressions, ...]:
    """Return the two solutions of -u'' = rate exp(u) on [0, 1] with zero ends, for rates below 3.51.

    u = -2 log(cosh((x - 1/2) s/2)/cosh(s/4)) with s = sqrt(2 rate) cosh(s/4) (U. Ascher, R. Mattheij and R. Russell,
    Numerical Solution of Boundary Value Problems, 1995, sec. 3.4).
    """
    from scipy.optimize import brentq

    def gap(s: float) -> float:
        return float(s - np.sqrt(2 * rate) * np.cosh(s / 4))

    # Between both solutions lies the s at which the gap is largest: sqrt(2 rate) sinh(s/4) = 4.
    middle = 4 * float(np.arcsinh(4 / np.sqrt(2 * rate)))
    roots = (brentq(gap, 0, middle, xtol=1e-15), brentq(gap, middle, 10 * middle, xtol=1e-15))
    return tuple(
        ExactExpressions({"u": f"-2*log(cosh((x - 0.5)*{s / 2:.17g})/cosh({s / 4:.17g}))"}) for s in roots
    )


class _Printer(StrPrinter):  # type: ignore[misc]  # sympy has no types
    """Prints expressions in the grammar of problems."""

    def _print_Piecewise(self, expression: Any) -> str:  # noqa: N802 - sympy's name
        *cases, (last, _) = expression.args
        parts = [f"{self._print(value)}, {self._print(condition)}" for value, condition in cases]
        return f"piecewise({', '.join([*parts, self._print(last)])})"

    def _print_Or(self, expression: Any) -> str:  # noqa: N802 - sympy's name
        return " or ".join(f"({self._print(part)})" for part in expression.args)

    def _print_And(self, expression: Any) -> str:  # noqa: N802 - sympy's name
        return " and ".join(f"({self._print(part)})" for part in expression.args)

    def _print_Float(self, expression: Any) -> str:  # noqa: N802 - sympy's name
        return f"{float(expression):.15g}"


def text_of(expression: Any) -> str:
    """Return a sympy expression as text in the grammar of problems."""
    text: str = _Printer().doprint(expression)
    return text


@dataclass(frozen=True)
class Place:
    """Where a solution varies fast along one coordinate: a place and a width, in the units of that."""

    axis: str
    at: float
    width: float


def relative_error(
    problem: Problem, known: Values, found: Values, places: Sequence[Place], axis_points: int
) -> float:
    """Return the relative L2 error over space and time of the worst field, by sums that see all places."""
    time = {problem.time_name: problem.time} if problem.time_name and problem.time else {}
    counts = {**dict.fromkeys(problem.bounds, axis_points), **dict.fromkeys(time, _moments(axis_points))}
    rules = {
        name: _graded(*bounds, [each for each in places if each.axis == name], counts[name])
        for name, bounds in {**problem.bounds, **time}.items()
    }
    times, moments = rules.pop(str(problem.time_name)) if time else (np.zeros(1), np.ones(1))
    nodes = np.stack(
        [g.ravel() for g in np.meshgrid(*(rule[0] for rule in rules.values()), indexing="ij")], 1
    )
    shares = np.prod(np.meshgrid(*(rule[1] for rule in rules.values()), indexing="ij"), axis=0).ravel()
    inside = problem.domain.inside(nodes)
    nodes, shares = nodes[inside], shares[inside]
    error, size = 0.0, 0.0
    for first in range(0, len(nodes), 4096):
        part, weight = nodes[first : first + 4096], shares[first : first + 4096]
        exact = known(part, times)
        apart = found(part, times) - exact
        error = error + np.einsum("fkm,k,m->f", apart**2, moments, weight)
        size = size + np.einsum("fkm,k,m->f", exact**2, moments, weight)
    sizes = np.maximum(size, 1e-12 * np.max(size))
    worst = float(np.sqrt(np.max(error / np.where(sizes > 0, sizes, 1.0))))
    return worst if np.isfinite(worst) else np.inf


def _moments(axis_points: int) -> int:
    """Return how many moments stand for a time interval, beside those about places in time: values there are dear."""
    return max(24, axis_points // 16)


def _graded(low: float, high: float, places: Sequence[Place], count: int) -> tuple[Array, Array]:
    """Return points and weights of the trapezoidal rule: even ones, and more about each place by its width."""
    ends = [np.linspace(low, high, count)]
    for each in places:
        near = each.width * np.concatenate(
            [np.linspace(0, 4, max(count // 5, 8)), np.geomspace(4, 64, max(count // 10, 6))]
        )
        ends += [each.at + near, each.at - near]
    points = np.unique(np.clip(np.concatenate(ends), low, high))
    gaps = np.diff(points)
    weights = np.zeros(len(points))
    weights[:-1] += gaps / 2
    weights[1:] += gaps / 2
    return points, weights
