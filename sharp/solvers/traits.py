"""What the choice of a method turns on, read off a problem without solving it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isfinite
from typing import Literal

import numpy as np

from sharp.problems import (
    Apply,
    BoxDomain,
    Node,
    Problem,
    compile_expressions,
    has_accepted_jump,
    names_in,
    walk,
)
from sharp.solvers.breaking import breaking_time, frozen_diffusion
from sharp.solvers.data_features import equation_features, initial_features
from sharp.solvers.grid import Array
from sharp.solvers.layers import layer_places
from sharp.solvers.sample_points import interior_points
from sharp.solvers.system import FirstOrderSystem, SpatialDerivative, UnsupportedProblem, real, system_of

Situation = Literal[
    "smooth", "nonsmooth", "discontinuous-coefficient", "advected-discontinuity", "steep-front", "narrow-data"
]

# The relative error in L1 that is aimed at where jumps travel and no accuracy is stated: 1e-6 cannot be had there.
JUMPS_ACCURACY = 1e-2
# Functions with a jump or a kink somewhere.
_ROUGH = {"piecewise", "Heaviside", "sign", "abs", "min", "max"}
# Below this share of the domain a front asks for more nodes than dense matrices are good for.
_THIN = 0.002
# What is at least so wide, as a share of the domain, is resolved by the many nodes that cheap systems allow.
_FINE = 0.01


@dataclass(frozen=True)
class SolutionRegularity:
    """A system, and what is to be expected of its solution."""

    system: FirstOrderSystem

    @property
    def situation(self) -> Situation:
        """What speaks against a smooth solution, if anything."""
        if self.jumps_reason:
            return "advected-discontinuity"
        if self.nonsmooth_reason:
            return "discontinuous-coefficient" if self._layered else "nonsmooth"
        if self.front_thickness < _THIN:
            return "steep-front"
        return "narrow-data" if self.narrowest < (_FINE if self.acts_along_axes else 1.0) else "smooth"

    @cached_property
    def narrowest(self) -> float:
        """How wide the narrowest feature of the data is, as a share of the domain; 1 where none is narrow.

        On an interval also a layer that comes from the equation.
        """
        problem = self.system.problem
        found = (*equation_features(problem), *initial_features(problem))
        widths = [each.width for each in found if each.thin]
        if len(problem.space) == 1:
            ((axis, (low, high)),) = problem.bounds.items()
            widths += [width / (high - low) for _, width in layer_places(problem, axis)]
        return min(widths, default=1.0)

    @cached_property
    def acts_along_axes(self) -> bool:
        """Whether systems on tensor grids are cheap: in boxes, constant factors and derivatives along single axes."""
        system = self.system
        space = {real(axis) for axis in system.space}
        return (
            isinstance(system.problem.domain, BoxDomain)
            and len(system.space) > 1
            and system.constant_operator
            and not any(factor.free_symbols & space for factor in system.jacobian.values())
            and all(jet.order == max(jet.by) for jet in system.jets)
        )

    @cached_property
    def nonsmooth_reason(self) -> str:
        """What keeps the solution from being smooth, in words; empty where nothing is seen to."""
        if has_accepted_jump(self.system.problem):
            return "initial and boundary values differ where they meet"
        for text, tree in _given(self.system.problem):
            if _is_rough(tree):
                return f"`{text}` has a jump or a kink"
        return ""

    @cached_property
    def jumps_reason(self) -> str:
        """What makes jumps or kinks travel, in words; empty where none are expected to."""
        if frozen := frozen_diffusion(self.system):
            return f"nothing diffuses for some values of {frozen}, so that fronts stay sharp"
        if not self.carries:
            return ""
        if self.nonsmooth_reason:
            return self.nonsmooth_reason
        start = self.system.problem.time[0] if self.system.problem.time else 0.0
        after = breaking_time(self.system.problem)
        return f"waves break at about the time {start + after:.2g}" if isfinite(after) else ""

    @property
    def needs_weak_form(self) -> bool:
        """Whether the solution may have to be understood in the weak sense: data are rough, or jumps may form."""
        return bool(self.nonsmooth_reason) or (self.carries and not self.system.linear)

    @cached_property
    def front_thickness(self) -> float:
        """How thin fronts may become that transport by the solution itself steepens, as a share of the domain.

        That is diffusion over speed and extent, taken at the initial state; 1 where nothing steepens.
        """
        system = self.system
        if system.linear or system.steady or not self._diffusive:
            return 1.0
        first, second = (_largest(system, order) for order in (1, 2))
        extent = max(high - low for low, high in system.problem.bounds.values())
        return min(1.0, second / (first * extent)) if first and second else 1.0

    @cached_property
    def quasilinear(self) -> bool:
        """Whether diffusion depends on the solution, so that it may vanish, and elements of high degree overshoot."""
        fields = {jet.symbol for jet in self.system.jets}
        return any(
            self.system.jets[column].order >= 2 and factor.free_symbols & fields
            for (_, column), factor in self.system.jacobian.items()
        )

    @property
    def _layered(self) -> bool:
        """Whether a coefficient of the equations, or a term of place alone, has a jump or a kink."""
        problem = self.system.problem
        given = [coefficient.expression for coefficient in problem.specification.coefficients.values()]
        if any(_is_rough(problem.tree(text)) for text in given if text is not None):
            return True
        sides = (side for equation in problem.equations for side in (equation.left, equation.right))
        parts = (part for side in sides for part in walk(side) if _switches(part))
        names = [names_in(part) for part in parts]
        return any(found & {*problem.space} and not found & {*problem.fields} for found in names)

    @property
    def carries(self) -> bool:
        """Whether nothing smoothes what is carried along: no field has second derivatives."""
        return not self.system.steady and not self._diffusive

    @property
    def _diffusive(self) -> bool:
        return any(jet.order >= 2 for jet in self.system.jets)


@lru_cache(maxsize=64)
def has_travelling_jumps(problem: Problem) -> bool:
    """Whether jumps or kinks travel through the solution, so that errors are measured in L1.

    Next to a jump that is a distance h out of its place, errors are as large as the jump: the L1 norm of the error is
    of order h at best, the L2 norm of order 1/2 (N. N. Kuznetsov, USSR Comput. Math. Math. Phys. 16, 1976).
    """
    try:
        return bool(SolutionRegularity(system_of(problem)).jumps_reason)
    except UnsupportedProblem:
        return False


def aimed_accuracy(problem: Problem) -> float:
    """Return the relative error to aim at: what is stated, or a usual one, larger where jumps travel."""
    spec = problem.specification
    if "accuracy" not in spec.model_fields_set and has_travelling_jumps(problem):
        return JUMPS_ACCURACY
    return spec.accuracy


def _is_rough(tree: Node) -> bool:
    return any(map(_switches, walk(tree)))


def _switches(part: Node) -> bool:
    return isinstance(part, Apply) and part.function in _ROUGH


def _given(problem: Problem) -> Iterator[tuple[str, Node]]:
    """Yield all given functions of the specification, and the sides of its equations."""
    spec = problem.specification
    functions = [*spec.initial.values(), *spec.coefficients.values()]
    texts = [given.expression for given in functions]
    texts += [text for condition in spec.boundary for text in (condition.value, condition.a, condition.b)]
    yield from ((text, problem.tree(text)) for text in texts if text is not None)
    for text, equation in zip(spec.equations, problem.equations, strict=True):
        yield from ((text, side) for side in (equation.left, equation.right))


def _largest(system: FirstOrderSystem, order: int) -> float:
    """Return the largest factor of a derivative of some order along one axis in the rates, at the initial state."""
    factors = [
        factor
        for (_, j), factor in system.jacobian.items()
        if system.jets[j].order == order and max(system.jets[j].by) == order
    ]
    if not factors:
        return 0.0
    points = interior_points(system.problem, 100)
    values = compile_expressions(factors, system.names)(*_state(system, points))
    finite = [np.abs(value)[np.isfinite(value)] for value in map(np.atleast_1d, values)]
    return float(max((np.max(value) for value in finite if value.size), default=0.0))


def _state(system: FirstOrderSystem, points: Array) -> list[Array | float]:
    """Return the arguments of the rates at the start, with derivatives left at zero."""
    start = system.problem.time[0] if system.problem.time else 0.0
    names = [*system.space, system.time]
    given = compile_expressions(system.initial, names)(*points.T, start)
    jets = [_value(jet, given) for jet in system.jets]
    return [*points.T, start, *jets]


def _value(jet: SpatialDerivative, given: tuple[Array | float, ...]) -> Array | float:
    return given[jet.component] if jet.order == 0 else 0.0
