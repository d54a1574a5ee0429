"""Factorisation and assembly of dense and sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from sharp.solvers import matrices
from sharp.solvers.axes import ChebyshevAxis, UniformAxis
from sharp.solvers.boxes import BoxGrid
from sharp.solvers.matrices import (
    Quotient,
    Singular,
    block_matrix,
    columns_of,
    dense_seconds,
    factorise,
    factorise_shifted,
    prefers_dense_lu,
    seconds_of,
    solve_sparse,
)

NO_PAIRS = (np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))
MATRIX = np.random.default_rng(0).standard_normal((6, 6))
RIGHT = np.random.default_rng(1).standard_normal((6, 2))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shift", [2.0, 1.0 + 3.0j])
def test_shifted_systems_are_solved(kind: Any, shift: complex) -> None:
    found = factorise_shifted(kind(MATRIX), shift, NO_PAIRS)(RIGHT.astype(type(shift)))
    np.testing.assert_allclose((shift * np.eye(6) - MATRIX) @ found, RIGHT, atol=1e-12)


def test_a_quotient_is_solved_without_being_formed() -> None:
    """The order of unknowns is kept for matrices like those of finite elements: symmetric, with a large diagonal."""
    matrix, mass = MATRIX @ MATRIX.T + np.eye(6), np.diag([1.0, 2, 3, 4, 5, 6])
    quotient = Quotient(sparse.csr_array(-matrix), sparse.csr_array(mass))
    found = factorise_shifted(quotient, 3.0, NO_PAIRS)(RIGHT)
    expected = np.linalg.solve(3 * np.eye(6) + np.linalg.solve(mass, matrix), RIGHT)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_states_that_follow_others_are_eliminated_from_any_place() -> None:
    matrix = MATRIX.copy()
    followers, leaders = np.array([4, 1]), np.array([0, 3])
    matrix[followers] = 0
    matrix[followers, leaders] = 1
    found = factorise_shifted(matrix, 2 + 1j, (followers, leaders))(RIGHT[:, 0].astype(complex))
    np.testing.assert_allclose(((2 + 1j) * np.eye(6) - matrix) @ found, RIGHT[:, 0], atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_singular_matrices_are_told(kind: Any) -> None:
    with pytest.raises(Singular):
        factorise(kind(np.diag([1.0, 0.0])))


def test_sparse_right_sides_are_solved_with_their_empty_columns() -> None:
    right = sparse.csr_array(np.array([[0, 1.0, 0], [0, 0, 0], [0, 2.0, 1.0]]))
    matrix = sparse.csr_array(np.diag([2.0, 4.0, 5.0]) + np.eye(3, k=1))
    found = solve_sparse(matrix, right)
    assert found.shape == (3, 3)
    np.testing.assert_allclose(matrix @ found.toarray(), right.toarray(), atol=1e-15)


def test_blocks_that_are_missing_are_zero() -> None:
    expected = np.block([[MATRIX, np.zeros((6, 6))], [np.eye(6), MATRIX]])
    dense = block_matrix([[MATRIX, None], [np.eye(6), MATRIX]], 6)
    mixed = block_matrix(
        [[sparse.csr_array(MATRIX), None], [sparse.eye_array(6), sparse.csr_array(MATRIX)]], 6
    )
    np.testing.assert_array_equal(dense, expected)
    np.testing.assert_array_equal(mixed.toarray(), expected)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_products_with_many_vectors_keep_their_shape(kind: Any) -> None:
    vectors = np.random.default_rng(2).standard_normal((3, 2, 6))
    np.testing.assert_allclose(columns_of(kind(MATRIX[:4]), vectors), vectors @ MATRIX[:4].T, atol=1e-14)
    assert columns_of(kind(MATRIX), np.empty((3, 0, 6))).shape == (3, 0, 6)


def laplacian(axis: Any, dimension: int) -> Any:
    grid = BoxGrid(dict.fromkeys("xyz"[:dimension], axis))
    return sum(grid.derivative(tuple(row)) for row in 2 * np.eye(dimension, dtype=int))


@pytest.mark.parametrize(("nodes", "dimension"), [(18, 2), (40, 2), (8, 3), (12, 3)])
def test_spectral_grids_are_dense_and_finite_differences_sparse(nodes: int, dimension: int) -> None:
    assert prefers_dense_lu(laplacian(ChebyshevAxis(0, 1, nodes), dimension))
    assert not prefers_dense_lu(laplacian(UniformAxis(0, 1, 18 if dimension == 2 else 9), dimension))


def test_the_time_of_a_dense_factorisation_grows_with_the_third_power_of_what_is_factorised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matrices, "_dense_speed", lambda: 1e6)
    assert dense_seconds(200) == pytest.approx(8)
    assert seconds_of(np.eye(200), 1.0, NO_PAIRS) == pytest.approx(8)
    assert seconds_of(np.eye(200), 1j, NO_PAIRS) == pytest.approx(32)
    half = (np.arange(100), np.arange(100, 200))
    assert seconds_of(np.eye(200), 1.0, half) == pytest.approx(1)
    assert seconds_of(sparse.eye_array(200), 1.0, NO_PAIRS) == 0


def test_the_speed_of_this_machine_is_measured_once() -> None:
    assert dense_seconds(100) == dense_seconds(100) > 0
