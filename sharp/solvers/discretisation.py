"""What nodes and finite elements make of a system: equations for finitely many unknowns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.problems import compile_expressions
from sharp.solvers.grid import Array, Indices, PointSet, full
from sharp.solvers.matrices import Pairs
from sharp.solvers.radau import OdeSystem
from sharp.solvers.system import FirstOrderSystem, StateComponent


class SemiDiscreteSystem(OdeSystem, ABC):
    """Equations for free values [f], ordered by components, from which all values [c, n] follow."""

    system: FirstOrderSystem
    grid: PointSet

    @property
    @abstractmethod
    def ends(self) -> Indices:
        """Up to where the free values of each component go [c]."""

    @abstractmethod
    def values(self, times: Array, states: Array) -> Array:
        """Return all values [k, c, n] for the free ones [k, f] at times [k]."""

    @abstractmethod
    def sampled(self, values: Array) -> Array:
        """Return the free values [..., f] of all values [..., c, n]."""

    @abstractmethod
    def constraint_matrix(self, time: float) -> Any:
        """Return the matrix [c * n, f] by which all values depend on the free ones."""

    def constants(self) -> Array:
        """Return for every component what a constant adds to its equations, zero in those of others [c, f]."""
        nodes = len(self.grid.points)
        return self.sampled(np.repeat(np.eye(len(self.system.components))[:, :, None], nodes, axis=2))

    def weighed(self, changes: Array) -> Array:
        """Return what rates are compared with for time derivatives [s, f]: these, unless there are constraints."""
        return changes

    @property
    def algebraic(self) -> NDArray[np.bool_]:
        """Which free values [f] have no time derivative in the equations: none, unless there are constraints."""
        return np.zeros(self.size, dtype=bool)

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

    def start(self) -> Array:
        """Return the free values [f] of the initial state, taken at the nodes."""
        program, points = compile_expressions(self.system.initial, self.system.space), self.grid.points
        with np.errstate(all="ignore"):
            return self.sampled(np.stack([full(value, len(points)) for value in program(*points.T)]))

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
