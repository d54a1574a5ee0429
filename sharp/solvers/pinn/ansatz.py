"""What a network stands for: a field that has its initial state and its Dirichlet values built in where they fit.

A field is `base + size * factor * network`: the base takes the values that are given, and the factor vanishes where
they are given (I. Lagaris, A. Likas, D. Fotiadis, IEEE Transactions on Neural Networks 9, 1998). In a box the base is
a transfinite interpolation of the given values (W. Gordon, SIAM Journal on Numerical Analysis 8, 1971). The network
sees coordinates that run from -1 to 1, and along periodic axes their sines and cosines, so that it repeats by itself.
Both are programs, which torch differentiates in training and numpy evaluates afterwards.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import sympy

from hpc.files import write_atomic
from sharp.errors import DataError, SpecificationError
from sharp.problems import BoxDomain, ExpressionProgram, compile_expressions
from sharp.solvers.grid import Array, full
from sharp.solvers.pinn.scales import (
    FieldScale,
    at_start,
    coordinates,
    ends,
    field_scales,
    order_in_time,
    pinn_boundary_points,
    values,
    with_times,
)
from sharp.solvers.sample_points import space_time_points
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
    scale: FieldScale
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
    low, high = (sympy.Float(end, 17) for end in ends(system, name))
    return (real(name) - low) / (high - low)


def _form(system: FirstOrderSystem, field: str, scale: FieldScale) -> FieldAnsatz:
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
        typical = values(system, [base], space_time_points(system.problem, 200))
        missed = np.concatenate([np.zeros(1), *_missed(system, field, base, conditions)])
    except SpecificationError:
        return False
    fits = np.abs(missed) <= MISSED * np.max(np.abs(typical), initial=1e-300)
    return bool(np.all(np.isfinite(typical)) and np.all(fits))


def _missed(
    system: FirstOrderSystem, field: str, base: sympy.Expr, conditions: Sequence[BoundaryCondition]
) -> list[np.ndarray]:
    missed = [
        values(
            system,
            [base - condition.value],
            pinn_boundary_points(system.problem, condition.part, 12, 9)[0],
        )[0]
        for condition in conditions
    ]
    if not system.steady:
        state = system.initial[system.components.index(StateComponent(field, 0))]
        missed.append(values(system, [base - state], at_start(system.problem, 200))[0])
    return missed


PROBLEM, SETTINGS, RESULT = "problem.yaml", "settings.json", "result.npz"


@dataclass(frozen=True)
class PinnConfig:
    """How a network is trained: hidden layers, points inside, steps of Adam and of L-BFGS, seed.

    Training ends when the machine's monotonic clock says `until`, or the relative error may be below `accuracy`. In the
    loss, conditions have a `weight` where equations have 1.
    """

    width: int
    points: int
    until: float
    accuracy: float
    adam: int
    lbfgs: int
    depth: int = 3
    learning_rate: float = 2e-3
    weight: float = 30.0
    seed: int = 0

    def write(self, folder: Path) -> None:
        """Write them into the folder of a training."""
        write_atomic(folder / SETTINGS, json.dumps(asdict(self), indent=1).encode())

    @classmethod
    def read(cls, folder: Path) -> PinnConfig:
        """Read them from the folder of a training."""
        return cls(**json.loads((folder / SETTINGS).read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Network:
    """Layers `weight [out, in]`, `bias [out]` with tanh between them."""

    layers: tuple[tuple[Array, Array], ...]

    @property
    def size(self) -> int:
        """The number of its parameters."""
        return sum(weight.size + bias.size for weight, bias in self.layers)

    def __call__(self, features: Array) -> Array:
        """Return the outputs [m, outputs] for features [m, inputs]."""
        hidden, (weight, bias) = self.layers[:-1], self.layers[-1]
        for inner, shift in hidden:
            features = np.tanh(features @ inner.T + shift)
        return features @ weight.T + bias


@dataclass(frozen=True)
class TrainedNetwork:
    """A network, and facts of its training: settings, steps, versions."""

    network: Network
    facts: Mapping[str, Any]

    def write(self, folder: Path) -> None:
        """Write all of it as one file of arrays."""
        arrays: dict[str, Any] = {"facts": np.array(json.dumps(dict(self.facts)))}
        for number, (weight, bias) in enumerate(self.network.layers):
            arrays |= {f"weight {number}": weight, f"bias {number}": bias}
        buffer = BytesIO()
        np.savez(buffer, **arrays)
        write_atomic(folder / RESULT, buffer.getvalue())

    @classmethod
    def read(cls, folder: Path, inputs: int, outputs: int) -> TrainedNetwork:
        """Read what a training has left; raises `DataError` for anything but a network from inputs to outputs."""
        path = folder / RESULT
        try:
            with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            network = _network(arrays)
            if network(np.zeros((1, inputs))).shape != (1, outputs):
                raise ValueError(f"expected {inputs} inputs and {outputs} outputs")
            if not all(np.all(np.isfinite(weights)) for layer in network.layers for weights in layer):
                raise ValueError("it holds weights that are not finite")
            return cls(network, dict(json.loads(str(arrays["facts"]))))
        except (OSError, LookupError, ValueError, EOFError, TypeError, RuntimeError, BadZipFile) as error:
            raise DataError(f"{path}: is no result of a training: {error}") from None


def _network(arrays: Mapping[str, Array]) -> Network:
    count = sum(name.startswith("weight ") for name in arrays)
    layers = ((arrays[f"weight {number}"], arrays[f"bias {number}"]) for number in range(count))
    return Network(tuple((weight.astype(np.float64), bias.astype(np.float64)) for weight, bias in layers))


@dataclass(frozen=True)
class Function:
    """The fields that a network stands for, with constants [fields] added to them."""

    ansatz: Ansatz
    network: Network
    shift: Array

    def __call__(self, points: Array, times: Array) -> Array:
        """Return the values [fields, k, m] at points [m, d] and times [k]."""
        where = points if self.ansatz.system.steady else with_times(points, times)
        features = _columns(self.ansatz.features(*where.T), len(where)).T
        fields = self.ansatz.fields(*where.T, *self.network(features).T)
        found = (_columns(fields, len(where)) + self.shift[:, None]).reshape(len(fields), -1, len(points))
        return np.broadcast_to(found, (len(fields), len(times), len(points)))


def _columns(found: tuple[Any, ...], count: int) -> Array:
    return np.array([full(value, count) for value in found])
