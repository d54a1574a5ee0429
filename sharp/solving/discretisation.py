"""What nodes and finite elements make of a system: equations for finitely many unknowns."""

from __future__ import annotations

from typing import Any, Protocol

from sharp.solving.grid import Array
from sharp.solving.matrices import Pairs
from sharp.solving.system import System


class Nodes(Protocol):
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


class Discretisation(Protocol):
    """A system of ordinary equations for free values [f], from which all values [c, n] follow; see `Collocation`."""

    @property
    def system(self) -> System:
        """What is solved."""
        ...

    @property
    def grid(self) -> Nodes:
        """Where values are known."""
        ...

    @property
    def size(self) -> int:
        """The number of free values."""
        ...

    @property
    def linear(self) -> bool:
        """Whether rates are affine in the state."""
        ...

    @property
    def constant(self) -> bool:
        """Whether the Jacobian depends on neither time nor state."""
        ...

    @property
    def pairs(self) -> Pairs:
        """Free values that change at the rate of another one's value, and those others."""
        ...

    def start(self) -> Array:
        """Return the free values [f] of the initial state."""
        ...

    def rates(self, times: Array, states: Array) -> Array:
        """Return the time derivatives of free values [k, f], or residuals of a steady problem."""
        ...

    def jacobian(self, time: float, state: Array) -> Any:
        """Return the derivatives [f, f] of the rates by the free values."""
        ...

    def sizes(self, states: Array) -> Array:
        """Return the largest absolute value [c] of each component in states [..., f]."""
        ...

    def values(self, times: Array, states: Array) -> Array:
        """Return all values [k, c, n] for the free ones [k, f] at times [k]."""
        ...

    def sampled(self, values: Array) -> Array:
        """Return the free values [..., f] of all values [..., c, n]."""
        ...

    def spread(self, time: float) -> Any:
        """Return the matrix [c * n, f] by which all values depend on the free ones."""
        ...
