"""How many eigenvalues lie below a number: counted, and not computed, so that none is missed.

By Sylvester's law of inertia the symmetric pencil A - s M, with M positive definite, has as many negative pivots in
its factorisation L D L^T as there are eigenvalues below s (B. Parlett, The Symmetric Eigenvalue Problem, 1998, ch. 3).
A and M are those of finite elements of another degree and on another mesh than those of the methods, graded towards
narrow wells; there eigenvalues are never too low, so that one that is counted does exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharp.problems import BoxDomain, Problem
from sharp.solvers.data_features import equation_features
from sharp.solvers.fem import FemSystem, element_space
from sharp.solvers.grid import Array
from sharp.solvers.matrices import Singular, negative_pivots
from sharp.solvers.method import CLOCKS, Deadline, TimeLimitExceeded
from sharp.solvers.system import FirstOrderSystem, UnsupportedProblem, system_of

# Elements along an interval beside one for each eigenvalue, and across a plane domain.
_ELEMENTS, _ACROSS = 11, 7
_DEGREES = {1: 7, 2: 3}
# Eigenvalues that differ by less than this, relative to their size, are counted together.
_LEAST_APART = {1: 1e-5, 2: 1e-3}
# Where a potential jumps in the plane.
_OVER_JUMPS = 0.05
_SYMMETRIC = 1e-9
# Of the processor: whether eigenvalues are counted does not depend on what else the machine does.
_SECONDS = 10.0


@dataclass(frozen=True)
class EigenvalueCount:
    """How many eigenvalues were `missed`, and how many too many were found, as far as the elements can tell."""

    missed: int
    unknown: int


def count_eigenvalues(problem: Problem, values: Sequence[float], accuracy: float) -> EigenvalueCount | None:
    """Return what a count says of the lowest eigenvalues, ascending; None where operator or domain do not allow one.

    Where elements see fewer than were found, more of them are taken once.
    """
    system, dimension = system_of(problem), len(problem.space)
    if dimension > 2 or (dimension == 2 and isinstance(problem.domain, BoxDomain) and system.periodic):
        return None
    apart = max(20 * accuracy, _LEAST_APART[dimension])
    if dimension == 2 and any(each.jump for each in equation_features(problem)):
        # Elements that a jump crosses integrate it roughly, and may see eigenvalues too low.
        apart = max(apart, _OVER_JUMPS)
    resolution = _ELEMENTS + len(values) if dimension == 1 else _ACROSS + round(len(values) ** 0.5)
    found, deadline = None, Deadline.within(_SECONDS, CLOCKS["cpu"])
    with suppress(UnsupportedProblem, TimeLimitExceeded, Singular), np.errstate(all="ignore"):
        for finer in (1, 2):
            found = _counted(system, finer * resolution, values, apart, deadline)
            if found is None or found.missed or not found.unknown:
                return found
    return found


def _counted(
    system: FirstOrderSystem, resolution: int, values: Sequence[float], apart: float, deadline: Deadline
) -> EigenvalueCount | None:
    elements = FemSystem(system, element_space(system, resolution, _DEGREES[len(system.space)]), deadline)
    matrix, mass = elements.jacobian(0.0, np.zeros(elements.size)), elements.mass()
    if _asymmetry(matrix) > _SYMMETRIC or _asymmetry(mass) > _SYMMETRIC:
        return None
    missed = unknown = 0
    for place, least, most in _between(np.sort(np.asarray(values, dtype=float)), apart):
        counted = negative_pivots(matrix - place * mass)
        missed, unknown = max(missed, counted - most), max(unknown, least - counted)
    return EigenvalueCount(missed, unknown)


def _asymmetry(matrix: Any) -> float:
    return float(abs(matrix - matrix.T).max() / (abs(matrix).max() or 1.0))


def _between(values: Array, apart: float) -> list[tuple[float, int, int]]:
    """Return numbers that no eigenvalue is near, each with the least and the largest count that is right below it."""
    margins = apart * (np.abs(values) + 1e-3 * np.max(np.abs(values)))
    found = [(float(values[0] - 2 * margins[0]), 0, 0)]
    for index in range(1, len(values)):
        low, high = values[index - 1] + 2 * margins[index - 1], values[index] - 2 * margins[index]
        if low < high:
            found += [(float(low), index, index), (float(high), index, index)]
    # Beyond the last one there may be more that are equal to it.
    found.append((float(values[-1] + 2 * margins[-1]), len(values), 10**9))
    return found
