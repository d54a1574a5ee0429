"""Linear algebra for matrices that are dense arrays or sparse ones of SciPy."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.solvers.grid import Array, Indices
from sharp.solvers.separable import Separable

# States, and those that are their rates.
Pairs = tuple[Indices, Indices]
Solve = Callable[[NDArray[Any]], NDArray[Any]]

# Entries below this share of the largest one are rounding errors of an inverse.
_NOTHING = 1e-15
_CHUNK = 512
# Sparse matrices [N, N] have at most about this many times N^(1/3) entries a row; small ones are taken as dense.
_FEW = 2.0
_SMALL = 200
# Dense factorisations are timed by so many of this size; large ones are up to this factor faster by the operation.
_SAMPLES = 3
_SAMPLE = 400
_FASTER = 2.0

# Solutions that leave more than this share of their terms come from bad pivots.
_EXACT = 1e-12
# The largest condition of the small matrix that is left of a border.
_SINGULAR = 1e13
# The share of the entries without a counterpart up to which a pattern is as good as symmetric.
_UNLIKE = 0.2

# Pivots stay on the diagonal, which halves the work and more where the pattern is symmetric and the diagonal large
# (X. S. Li, An overview of SuperLU, ACM Trans. Math. Softw. 31, 2005).
_ON_THE_DIAGONAL = {
    "permc_spec": "MMD_AT_PLUS_A",
    "diag_pivot_thresh": 0.0,
    "options": {"SymmetricMode": True},
}


class Singular(Exception):
    """A matrix has no inverse."""


@dataclass(frozen=True)
class Quotient:
    """The matrix `mass^-1 matrix` of two sparse ones, which would be dense: systems with it are as cheap as sparse.

    Where it is `implicit`, the mass may be singular, and right sides are those of systems with `shift mass - matrix`.
    """

    matrix: Any
    mass: Any
    implicit: bool = False


def compact(matrix: Any) -> Any:
    """Return a sparse matrix as a dense one where a good part of its entries is not zero, otherwise as CSR."""
    rows, columns = matrix.shape
    return matrix.toarray() if matrix.nnz > 0.3 * rows * columns else matrix.tocsr()


def block_diagonal(blocks: Sequence[Any]) -> Any:
    """Return the matrix with blocks along its diagonal, dense where a good part of it is filled."""
    if len(blocks) == 1:
        return blocks[0]
    from scipy import sparse

    return compact(sparse.block_diag([sparse.csr_array(block) for block in blocks], format="csr"))


def block_matrix(blocks: Sequence[Sequence[Any]], size: int) -> Any:
    """Return the matrix of square blocks [n, n], None for one of zeros; dense where the blocks are."""
    found = [block for row in blocks for block in row if block is not None]
    if all(isinstance(block, np.ndarray) for block in found):
        return np.block(_filled(blocks, np.zeros((size, size))))
    from scipy import sparse

    return sparse.block_array(_filled(blocks, sparse.csr_array((size, size))), format="csr")


def _filled(blocks: Sequence[Sequence[Any]], zero: Any) -> Any:
    return [[zero if block is None else block for block in row] for row in blocks]


def scaled_rows(factors: Array, matrix: Any) -> Any:
    """Return a matrix whose rows are multiplied by factors [n]."""
    if isinstance(matrix, np.ndarray):
        return factors[:, None] * matrix
    from scipy import sparse

    return sparse.diags_array(factors) @ matrix


def sparse_rows(columns: Indices, entries: Array, size: int) -> Any:
    """Return the matrix [m, size] whose rows have the given entries [m, k] in the given columns [m, k]."""
    from scipy import sparse

    starts = np.arange(len(columns) + 1) * columns.shape[1]
    return sparse.csr_array((entries.ravel(), columns.ravel(), starts), shape=(len(columns), size))


def solve_sparse(matrix: Any, right: Any) -> Any:
    """Return the sparse solution of a sparse system; raises `RuntimeError` for a singular matrix.

    Empty columns on the right are not solved for, and rounding errors are dropped.
    """
    from scipy import sparse

    if not matrix.shape[0]:
        return sparse.csr_array(right)
    entries = sparse.coo_array(matrix)
    # Given values, one to a row: a permutation with factors.
    if len(np.unique(entries.row)) == len(np.unique(entries.col)) == entries.nnz == matrix.shape[0]:
        inverse = sparse.csr_array((1 / entries.data, (entries.col, entries.row)), shape=matrix.shape)
        return (inverse @ right).tocsr()
    factors = sparse.linalg.splu(sparse.csc_array(matrix))
    right = sparse.csc_array(right)
    filled = np.flatnonzero(np.diff(right.indptr))
    blocks = [sparse.csc_array((right.shape[0], 0))]
    for start in range(0, len(filled), _CHUNK):
        solved = factors.solve(right[:, filled[start : start + _CHUNK]].toarray())
        solved[np.abs(solved) < _NOTHING * np.abs(solved).max()] = 0.0
        blocks.append(sparse.csc_array(solved))
    dense_columns = sparse.hstack(blocks, format="csc")
    scatter = sparse.eye_array(right.shape[1], format="csr")[filled]
    return (dense_columns @ scatter).tocsr()


def prefers_dense_lu(matrix: Any) -> bool:
    """Whether a sparse matrix had better be factorised as a dense one.

    On spectral grids in d <= 3 dimensions nearly every row has d N^(1/d) entries or more, and factors fill up
    whatever the order of the unknowns; finite differences have a few entries a row on any grid.
    """
    size = matrix.shape[0]
    if size <= _SMALL or isinstance(matrix, np.ndarray):
        return True
    entries = np.diff(matrix.tocsr().indptr)
    return bool(np.quantile(entries, 0.9) > _FEW * size ** (1 / 3))


def factorise(matrix: Any) -> Solve:
    """Return the function that solves systems with a real or complex matrix [n, n]; right sides are [n] or [n, k].

    Raises `Singular`.
    """
    if isinstance(matrix, np.ndarray):
        return _factorise_dense(matrix)
    if isinstance(matrix, Separable):
        return _determined(matrix.solver())
    if isinstance(matrix, Quotient) and matrix.implicit:
        return factorise(matrix.matrix)
    if isinstance(matrix, Quotient):
        solve = _factorise_sparse(matrix.matrix, **_ON_THE_DIAGONAL)
        return lambda right: solve(matrix.mass @ right)
    return _factorise_on_the_diagonal(matrix) or _factorise_sparse(matrix)


def factorise_bordered(matrix: Any, border: int, pins: Sequence[int]) -> Solve:
    """Return `factorise` of a matrix [n + border, n + border] whose last rows and columns are dense.

    Without them it may be singular, by one dimension for each unknown that is pinned: there a number is added to the
    diagonal, and what that changes is taken back (formula of Sherman, Morrison and Woodbury). Raises `Singular`.
    """
    if not border or isinstance(matrix, np.ndarray):
        return factorise(matrix)
    matrix = matrix.tocsr()
    size = matrix.shape[0] - border
    inner, columns = matrix[:size, :size], matrix[:size, size:].toarray()
    rows, corner = matrix[size:, :size].toarray(), matrix[size:, size:].toarray()
    added = np.zeros(size)
    added[list(pins)] = float(abs(inner.diagonal()).max()) or 1.0
    from scipy import sparse

    solve = factorise((inner + sparse.diags_array(added)).tocsr())
    units = np.zeros((size, len(pins)))
    units[list(pins), np.arange(len(pins))] = added[list(pins)]
    by_columns, by_units = solve(np.ascontiguousarray(columns)), solve(units)
    # For the borders' unknowns and the pinned ones: what the rows say, and that pinned unknowns are what they are.
    small = np.block(
        [
            [corner - rows @ by_columns, rows @ by_units],
            [by_columns[list(pins)], np.eye(len(pins)) - by_units[list(pins)]],
        ]
    )
    sizes = np.abs(small).max(axis=1)
    scaled = small / np.where(sizes > 0, sizes, 1.0)[:, None]
    scaled = scaled / np.maximum(np.abs(scaled).max(axis=0), 1e-300)
    if not np.all(np.isfinite(scaled)) or np.linalg.cond(scaled) > _SINGULAR:
        raise Singular("the matrix is singular")

    def solved(right: NDArray[Any]) -> NDArray[Any]:
        first = solve(right[:size])
        found = np.linalg.solve(small, np.concatenate([right[size:] - rows @ first, first[list(pins)]]))
        inside = first - by_columns @ found[:border] + by_units @ found[border:]
        return np.concatenate([inside, found[:border]])

    return solved


def _factorise_on_the_diagonal(matrix: Any) -> Solve | None:
    """Return factors with pivots on the diagonal, far fewer where the pattern is symmetric; None where these are bad.

    Each solution is refined once; whether that leaves rounding errors alone is tried with one right side.
    """
    matrix = matrix.tocsc()
    pattern = matrix.copy()
    pattern.data = np.ones(len(pattern.data), dtype=np.int8)
    # Entries that cancel on one side of the diagonal alone are rounding errors on the other.
    if matrix.shape[0] < _SMALL or (pattern != pattern.T).nnz > _UNLIKE * pattern.nnz:
        return None
    try:
        plain = _factorise_sparse(matrix, **_ON_THE_DIAGONAL)
    except Singular:
        return None

    def refined(right: NDArray[Any]) -> NDArray[Any]:
        found = plain(right)
        return np.asarray(found + plain(right - matrix @ found))

    with np.errstate(all="ignore"):
        right = np.cos(np.arange(matrix.shape[0], dtype=float) ** 2)
        found = refined(right.astype(matrix.dtype))
        left = np.abs(matrix @ found - right).max()
        size = (abs(matrix) @ np.abs(found)).max()
    return refined if left <= _EXACT * size else None


def _determined(solve: Solve | None) -> Solve:
    if solve is None:
        raise Singular("the matrix is singular")
    return solve


def _factorise_sparse(matrix: Any, **options: Any) -> Solve:
    from scipy.sparse.linalg import splu

    try:
        return splu(matrix.tocsc(), **options).solve
    except RuntimeError:
        raise Singular("the matrix is singular") from None


def negative_pivots(matrix: Any) -> int:
    """Return the number of negative eigenvalues of a symmetric sparse matrix, by the signs of its pivots.

    Raises `Singular` where a pivot vanishes, or had to be taken from beside the diagonal.
    """
    from scipy.sparse.linalg import splu

    options: dict[str, Any] = dict(_ON_THE_DIAGONAL)
    try:
        factors = splu(matrix.tocsc(), **options)
    except RuntimeError:
        raise Singular from None
    if not np.array_equal(factors.perm_r, factors.perm_c):
        raise Singular
    return int(np.sum(factors.U.diagonal() < 0))


def _factorise_dense(matrix: NDArray[Any]) -> Solve:
    from scipy.linalg import get_lapack_funcs

    routines: Any = get_lapack_funcs(("getrf", "getrs"), (matrix,))
    factor, solve = routines
    factors, pivots, info = factor(matrix)
    if info or not np.all(np.isfinite(factors)):
        raise Singular("the matrix is singular")
    return lambda right: solve(factors, pivots, right)[0]


def dense_seconds(size: int, complex_: bool = False) -> float:
    """Return the least that the factorisation of a dense matrix will take: 2/3 n³ operations, four times complex."""
    return (4 if complex_ else 1) * size**3 / _dense_speed()


def seconds_of(matrix: Any, shift: complex, pairs: Pairs) -> float:
    """Return the least that `factorise_shifted` will take, 0 for a sparse matrix, whose factors are not foreseen."""
    if not isinstance(matrix, np.ndarray):
        return 0.0
    return dense_seconds(len(matrix) - len(pairs[0]), isinstance(shift, complex))


@cache
def _dense_speed() -> float:
    """Return n³ per second in the factorisation of a dense matrix [n, n], by the fastest of some small ones."""
    matrix = np.eye(_SAMPLE) + 1 / (1 + np.arange(_SAMPLE) + np.arange(_SAMPLE)[:, None])
    seconds = []
    for _ in range(_SAMPLES):
        start = time.perf_counter()
        _factorise_dense(matrix)
        seconds.append(time.perf_counter() - start)
    return _FASTER * _SAMPLE**3 / min(seconds)


def factorise_shifted(matrix: Any, shift: complex, pairs: Pairs) -> Solve:
    """Return the function that solves systems with `shift` times the identity minus the matrix [n, n].

    Where the rate of state `pairs[0][i]` is state `pairs[1][i]` and nothing else, the former is eliminated from a dense
    matrix or a quotient, in which both have the same mass, before it is factorised: that leaves half of the unknowns of
    a wave equation. Raises `Singular`.
    """
    followers, leaders = pairs
    if isinstance(matrix, Separable):
        return _determined(matrix.solver(shift, -1.0))
    implicit = isinstance(matrix, Quotient) and matrix.implicit
    if implicit or not len(followers) or not isinstance(matrix, (np.ndarray, Quotient)):
        return factorise(shifted(matrix, shift))
    whole = matrix.matrix if isinstance(matrix, Quotient) else matrix
    rest = np.setdiff1d(np.arange(whole.shape[0]), followers)
    rows, leading = whole[rest], np.searchsorted(rest, leaders)
    coupling, among = rows[:, followers] / shift, rows[:, rest]
    mass: Any = None
    if isinstance(matrix, Quotient):
        from scipy import sparse

        mass = matrix.mass[rest][:, rest]
        place = sparse.eye_array(len(rest), format="csr")[leading]
        solve = _factorise_sparse(shift * mass - among - coupling @ place, **_ON_THE_DIAGONAL)
    else:
        condensed = shifted(among, shift)
        condensed[:, leading] -= coupling
        solve = _factorise_dense(condensed)

    def solved(right: NDArray[Any]) -> NDArray[Any]:
        found = np.empty_like(right, dtype=np.result_type(right, type(shift)))
        own = right[rest] if mass is None else mass @ right[rest]
        found[rest] = solve(own + coupling @ right[followers])
        found[followers] = (right[followers] + found[leaders]) / shift
        return found

    return solved


def shifted(matrix: Any, shift: complex) -> Any:
    """Return `shift` times the identity minus the matrix."""
    if isinstance(matrix, np.ndarray):
        found = np.array(-matrix, dtype=np.result_type(matrix, type(shift)), order="F")
        found[np.diag_indices_from(found)] += shift
        return found
    if isinstance(matrix, Quotient):
        return Quotient(shift * matrix.mass - matrix.matrix, matrix.mass, matrix.implicit)
    from scipy import sparse

    identity: Any = sparse.eye_array(matrix.shape[0], format="csc")
    return shift * identity - matrix


def columns_of(matrix: Any, vectors: Array) -> Array:
    """Return the product of a matrix [m, n] with each of the vectors [..., n], as [..., m]."""
    flat = vectors.reshape(math.prod(vectors.shape[:-1]), vectors.shape[-1])
    product = flat @ matrix.T if isinstance(matrix, np.ndarray) else (matrix @ flat.T).T
    return np.asarray(product).reshape(*vectors.shape[:-1], matrix.shape[0])
