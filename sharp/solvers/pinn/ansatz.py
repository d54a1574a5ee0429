"""What a network stands for: a field that has its initial state and its Dirichlet values built in where they fit.

A field is `base + size * factor * network`: the base takes the values that are given, and the factor vanishes where
they are given (I. Lagaris, A. Likas, D. Fotiadis, IEEE Transactions on Neural Networks 9, 1998). In a box the base is
a transfinite interpolation of the given values (W. Gordon, SIAM Journal on Numerical Analysis 8, 1971). The network
sees coordinates that run from -1 to 1, and along periodic axes their sines and cosines, so that it repeats by itself.
Both are programs, which torch differentiates in training and numpy evaluates afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy

from sharp.errors import SpecificationError
from sharp.problems.domains import BoxDomain
from sharp.problems.programs import ExpressionProgram, compile_expressions
from sharp.solvers.pinn.points import (
    at_start,
    coordinates,
    ends,
    order_in_time,
    pinn_boundary_points,
    pinn_interior_points,
    values,
)
from sharp.solvers.pinn.scales import Scale, field_scales
from sharp.solvers.system import BoundaryCondition, FirstOrderSystem, StateComponent, real

# Waves along a periodic axis that the network sees.
WAVES = 2
# How far the base may miss what it is built from, relative to its size, before the values are left to training.
MISSED = 1e-6
_ROUGH = (sympy.Piecewise, sympy.Heaviside, sympy.Abs, sympy.sign, sympy.Min, sympy.Max)


@dataclass(frozen=True)
class FieldAnsatz:
    """A field as `base + size * factor * network`; `built_in` says whether base and factor keep the values given."""

    base: sympy.Expr
    factor: sympy.Expr
    scale: Scale
    built_in: bool


@dataclass(frozen=True)
class Ansatz:
    """The forms of all fields of a system, and what of its conditions is left to training."""

    system: FirstOrderSystem
    forms: tuple[FieldAnsatz, ...]

    @cached_property
    def features(self) -> ExpressionProgram:
        """What the network is given, as a program of the coordinates."""
        return compile_expressions(_features(self.system), coordinates(self.system))

    @cached_property
    def fields(self) -> ExpressionProgram:
        """The fields, as a program of the coordinates and of the outputs of the network."""
        outputs = [real(f"network {index}") for index in range(len(self.forms))]
        fields = [
            form.base + form.scale.size * form.factor * output
            for form, output in zip(self.forms, outputs, strict=True)
        ]
        return compile_expressions(fields, (*coordinates(self.system), *(output.name for output in outputs)))

    @property
    def conditions(self) -> tuple[BoundaryCondition, ...]:
        """The boundary conditions of fields that are left to training; those of their rates follow from them."""
        return tuple(
            condition
            for condition in self.system.conditions
            if (component := self.system.components[condition.component]).order == 0
            and not (self.form(component).built_in and _fits_in(self.system, condition))
        )

    @property
    def starts(self) -> tuple[StateComponent, ...]:
        """The components whose initial state is left to training."""
        return tuple(
            component
            for component in self.system.components
            if not self.system.steady and not self.form(component).built_in
        )

    def form(self, component: StateComponent) -> FieldAnsatz:
        """Return the form of the field of a component."""
        return self.forms[self.system.problem.fields.index(component.field)]


def ansatz_of(system: FirstOrderSystem) -> Ansatz:
    """Return the ansatz of a system."""
    scales = zip(system.problem.fields, field_scales(system), strict=True)
    return Ansatz(system, tuple(_form(system, field, scale) for field, scale in scales))


def _features(system: FirstOrderSystem) -> list[sympy.Expr]:
    found: list[sympy.Expr] = []
    for name in coordinates(system):
        share = _share(system, name)
        if name in system.periodic:
            for wave in range(1, WAVES + 1):
                found += [sympy.cos(2 * sympy.pi * wave * share), sympy.sin(2 * sympy.pi * wave * share)]
        else:
            found.append(2 * share - 1)
    return found


def _share(system: FirstOrderSystem, name: str) -> sympy.Expr:
    """Return a coordinate as a number between 0 and 1."""
    low, high = (sympy.Float(end, 17) for end in ends(system, name))
    return (real(name) - low) / (high - low)


def _form(system: FirstOrderSystem, field: str, scale: Scale) -> FieldAnsatz:
    """Return the form of a field with all given values built in if they fit together, else with none."""
    conditions = [
        condition
        for condition in system.conditions
        if system.components[condition.component] == StateComponent(field, 0) and _fits_in(system, condition)
    ]
    base, factor = _from_start(system, field)
    for axis in system.space:
        given = {each.part[-1]: each.value for each in conditions if each.part[:-1] == axis}
        base, factor = _lifted(system, axis, given, base, factor)
    if not _keeps(system, field, base, conditions):
        return FieldAnsatz(sympy.Float(scale.level, 17), sympy.Integer(1), scale, built_in=False)
    level = 0 if conditions or not system.steady else sympy.Float(scale.level, 17)
    return FieldAnsatz(base + level, factor, scale, built_in=True)


def _fits_in(system: FirstOrderSystem, condition: BoundaryCondition) -> bool:
    return isinstance(system.problem.domain, BoxDomain) and condition.factors == {0: sympy.Integer(1)}


def _from_start(system: FirstOrderSystem, field: str) -> tuple[sympy.Expr, sympy.Expr]:
    """Return what has the initial state and rates of a field, and the factor that leaves them alone.

    A field of order n starts as its Taylor polynomial of n terms; those that would grow with time are damped.
    """
    order = order_in_time(system, field)
    if order == 0:
        return sympy.Integer(0), sympy.Integer(1)
    share = _share(system, system.time)
    since = real(system.time) - sympy.Float(ends(system, system.time)[0], 17)
    damping = sympy.exp(-((4 * share) ** order))
    terms = [
        state * since**component.order / math.factorial(component.order) * (damping if component.order else 1)
        for component, state in zip(system.components, system.initial, strict=True)
        if component.field == field
    ]
    return sympy.Add(*terms), share**order


def _lifted(
    system: FirstOrderSystem, axis: str, given: Mapping[str, sympy.Expr], base: sympy.Expr, factor: sympy.Expr
) -> tuple[sympy.Expr, sympy.Expr]:
    """Return base and factor once the base takes the values at the ends of an axis (`-`, `+`) as well."""
    share = _share(system, axis)
    # Each function is 1 at an end and 0 at the other.
    shapes = {"-": 1 - share, "+": share}
    at = {end: sympy.Float(value, 17) for end, value in zip("-+", ends(system, axis), strict=True)}
    missing = {end: (value - base).subs(real(axis), at[end]) for end, value in given.items()}
    for end, value in missing.items():
        base += value * (shapes[end] if len(given) == 2 else 1)
        factor *= 2 * (1 - shapes[end])
    return base, factor


def _keeps(
    system: FirstOrderSystem, field: str, base: sympy.Expr, conditions: Sequence[BoundaryCondition]
) -> bool:
    """Return whether a base is smooth, finite, and takes all values that it was built from."""
    if base.has(*_ROUGH):
        return False
    try:
        typical = values([base], coordinates(system), pinn_interior_points(system.problem, 200))
        missed = np.concatenate([np.zeros(1), *_missed(system, field, base, conditions)])
    except SpecificationError:
        return False
    fits = np.abs(missed) <= MISSED * np.max(np.abs(typical), initial=1e-300)
    return bool(np.all(np.isfinite(typical)) and np.all(fits))


def _missed(
    system: FirstOrderSystem, field: str, base: sympy.Expr, conditions: Sequence[BoundaryCondition]
) -> list[np.ndarray]:
    names, problem = coordinates(system), system.problem
    missed = [
        values([base - condition.value], names, pinn_boundary_points(problem, condition.part, 12, 9)[0])[0]
        for condition in conditions
    ]
    if not system.steady:
        state = system.initial[system.components.index(StateComponent(field, 0))]
        missed.append(values([base - state], names, at_start(problem, 200))[0])
    return missed
