"""The lowest eigenvalues of a linear operator on nodes or finite elements, and their eigenfunctions.

Some eigenvalues of an operator on the nodes of a grid have nothing to do with those of the differential one. They
change with the grid, so that only those are kept that a second, coarser grid has as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sharp.solvers.collocation import Collocation
from sharp.solvers.grid import Array, Indices
from sharp.solvers.matrices import Singular, dense_seconds, factorise
from sharp.solvers.method import Deadline, SolverFailed

# How far apart, relatively, an eigenvalue may lie on two grids, and how large the imaginary part of a real one may be.
_SAME = 0.02
_REAL = 1e-6
# Above this number of unknowns only eigenvalues near those of the coarse grid are computed.
_ALL = 700
# All eigenvalues and vectors of a dense matrix take 25 n³ operations, one factorisation 2/3 n³ (G. H. Golub and
# C. F. Van Loan, Matrix Computations, 2013, sec. 7.5).
_PAIRS = 25 / (2 / 3)
# More eigenvalues are computed than are wanted, and the shift is lowered as long as that finds lower ones.
_SPARE = 4
_SHIFTS = 10


def eigenpairs_on_two_grids(
    fine: Collocation, coarse: Collocation, count: int, deadline: Deadline
) -> tuple[Array, Array]:
    """Return the lowest real eigenvalues [count], ascending, and the free values [f] of the first eigenfunction.

    Raises `SolverFailed` where the two grids do not agree on so many, and `TimeLimitExceeded`.
    """
    deadline.check(_PAIRS * dense_seconds(coarse.size))
    known, _ = _real_ones(*_all_pairs(coarse))
    deadline.check()
    few = fine.size <= _ALL or len(known) < count
    values, vectors = _real_ones(*(_all_pairs(fine) if few else _near_known(fine, known[:count])))
    agreed = _agreed(values, known, count)
    if len(agreed) < count:
        raise SolverFailed(f"two grids agree on {len(agreed)} of {count} eigenvalues only")
    return values[agreed], vectors[:, agreed[0]]


def eigenpairs_above_shift(
    matrix: Any, mass: Any, shift: float, count: int, deadline: Deadline
) -> tuple[Array, Array]:
    """Return the lowest real eigenvalues [count], ascending, and the first eigenvector [f].

    The shift is lowered until no eigenvalue is below it. Raises `SolverFailed` and `TimeLimitExceeded`.
    """
    size = matrix.shape[0]
    for attempt in range(_SHIFTS):
        deadline.check()
        values, vectors = _nearest(matrix, mass, shift, min(count + _SPARE, size - 2), np.ones(size))
        if np.any(np.abs(values.imag) > _REAL * np.abs(values - shift)):
            raise SolverFailed("the lowest eigenvalues are not real")
        ascending = np.argsort(values.real)
        found = values.real[ascending]
        if found[0] > shift:
            return found[:count], vectors.real[:, ascending[0]]
        shift = float(found[0] - 2**attempt * (found[-1] - found[0]))
    raise SolverFailed("no lowest eigenvalue was found")


def _nearest(matrix: Any, mass: Any, shift: float, count: int, start: Array) -> tuple[Any, Any]:
    """Return the eigenvalues [count] nearest to a shift and vectors [f, count], by ARPACK on the inverse."""
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigs

    try:
        solve = factorise(matrix - shift * mass)
        inverse = LinearOperator(matrix.shape, matvec=lambda vector: solve(mass @ vector), dtype=float)
        found, vectors = eigs(inverse, k=count, v0=start)
    except (Singular, ArpackError) as error:
        raise SolverFailed(f"eigenvalues could not be computed: {error}") from None
    return shift + 1 / found, vectors


def _near_known(collocation: Collocation, known: Array) -> tuple[Any, Any]:
    shift = known[0] - 0.5 * (known[-1] - known[0]) - 0.1 * abs(known[-1])
    start = np.random.default_rng(0).standard_normal(collocation.size)
    return _nearest(*_pencil(collocation), shift, 2 * len(known) + 4, start)


def _all_pairs(collocation: Collocation) -> tuple[Any, Any]:
    """Return all eigenvalues [k] and vectors [f, k], by the standard problem unless the mass matrix is singular."""
    from scipy.linalg import eig

    matrix, mass = (part if isinstance(part, np.ndarray) else part.toarray() for part in _pencil(collocation))
    try:
        return np.linalg.eig(factorise(mass)(matrix))
    except Singular:
        values, vectors = eig(matrix, mass)
        finite = np.isfinite(values)
        return values[finite], vectors[:, finite]


def _pencil(collocation: Collocation) -> tuple[Any, Any]:
    return collocation.jacobian(0.0, np.zeros(collocation.size)), collocation.mass()


def _real_ones(values: Any, vectors: Any) -> tuple[Array, Array]:
    typical = np.median(np.abs(values))
    real = np.flatnonzero(np.abs(values.imag) <= _REAL * np.maximum(np.abs(values), _REAL * typical))
    ascending = real[np.argsort(values[real].real)]
    return values[ascending].real, vectors[:, ascending].real


def _agreed(values: Array, known: Array, count: int) -> Indices:
    """Return the first `count` of the values that are known, relative to their size or, where small, the others'."""
    if not len(known):
        return np.empty(0, dtype=np.intp)
    distances = np.abs(values[:, None] - known).min(axis=1)
    typical = np.median(np.abs(known[: 2 * count]))
    return np.flatnonzero(distances <= _SAME * np.maximum(np.abs(values), 0.1 * typical))[:count]
