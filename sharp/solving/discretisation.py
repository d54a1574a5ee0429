"""What nodes and finite elements make of a system: equations for finitely many unknowns."""

from __future__ import annotations

from typing import Any, Protocol

from sharp.solving.grid import Array
from sharp.solving.radau import Evolution
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


class Discretisation(Evolution, Protocol):
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

    def start(self) -> Array:
        """Return the free values [f] of the initial state."""
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
