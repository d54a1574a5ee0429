"""What nodes and finite elements make of a system: equations for finitely many unknowns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from sharp.solvers.grid import Array, Indices
from sharp.solvers.matrices import Pairs
from sharp.solvers.radau import OdeSystem
from sharp.solvers.system import FirstOrderSystem, StateComponent


class PointSet(Protocol):
    """Points at which functions are known, see `Grid`."""

    @property
    def points(self) -> Array:
        """The points [n, d]."""
        ...

    @property
    def weights(self) -> Array:
        """Quadrature weights [n]."""
        ...

    def interpolation(self, points: Array) -> Any:
        """Return the matrix [m, n] from values at the nodes to values at points [m, d]."""
        ...


class SemiDiscreteSystem(OdeSystem, Protocol):
    """A system of ordinary equations for free values [f], from which all values [c, n] follow; see `Collocation`."""

    @property
    def system(self) -> FirstOrderSystem:
        """What is solved."""
        ...

    @property
    def grid(self) -> PointSet:
        """Where values are known."""
        ...

    @property
    def size(self) -> int:
        """The number of free values."""
        ...

    def start(self) -> Array:
        """Return the free values [f] of the initial state."""
        ...

    def values(self, times: Array, states: Array) -> Array:
        """Return all values [k, c, n] for the free ones [k, f] at times [k]."""
        ...

    def sampled(self, values: Array) -> Array:
        """Return the free values [..., f] of all values [..., c, n]."""
        ...

    def constraint_matrix(self, time: float) -> Any:
        """Return the matrix [c * n, f] by which all values depend on the free ones."""
        ...


class Componentwise(ABC):
    """What a discretisation has from its system, where free values are ordered by components."""

    system: FirstOrderSystem

    @property
    @abstractmethod
    def ends(self) -> Indices:
        """Up to where the free values of each component go [c]."""

    @property
    def size(self) -> int:
        """The number of free values."""
        return int(self.ends[-1])

    @property
    def linear(self) -> bool:
        """Whether rates are affine in the state."""
        return self.system.linear

    @property
    def constant(self) -> bool:
        """Whether the Jacobian depends on neither time nor state."""
        return self.system.constant_operator

    @cached_property
    def pairs(self) -> Pairs:
        """The free values of fields whose time derivative is a component too, and those of that component."""
        index = {component: number for number, component in enumerate(self.system.components)}
        places = np.split(np.arange(self.size), self.ends[:-1])
        found = [
            (places[index[component]], places[index[following]])
            for component in self.system.components
            if (following := StateComponent(component.field, component.order + 1)) in index
        ]
        nothing = np.empty(0, dtype=np.intp)
        followers, leaders = zip(*found, strict=True) if found else ((nothing,), (nothing,))
        return np.concatenate(followers), np.concatenate(leaders)

    def sizes(self, states: Array) -> Array:
        """Return the largest absolute value [c] of the free ones of each component in states [..., f]."""
        largest = np.abs(states).reshape(-1, self.size).max(axis=0)
        return np.array([part.max(initial=0.0) for part in np.split(largest, self.ends[:-1])])
