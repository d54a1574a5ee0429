"""A solution that can be asked for its value anywhere, and what it took to compute it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from sharp.solvers.grid import Array


@dataclass(frozen=True)
class DiscreteSolution:
    """The fields of a problem as functions of space and time.

    `evaluate(points [m, d], times [k])` returns the values [fields, k, m]; steady problems have times [1] of any
    value, and points are in the closed domain. `resolution` is what the method was asked for: nodes, cells or modes
    along an axis. For eigenvalue problems `eigenvalues` are ascending, and the fields are those of the first
    eigenfunction, scaled to a largest absolute value of 1.
    """

    method: str
    resolution: int
    evaluate: Callable[[Array, Array], Array]
    unknowns: int
    eigenvalues: tuple[float, ...] = ()
    facts: Mapping[str, float | str] = field(default_factory=dict)

    def at(self, points: Array, time: float = 0.0) -> Array:
        """Return the values [fields, m] at points [m, d] and one time."""
        return self.evaluate(points, np.array([time]))[:, 0]
