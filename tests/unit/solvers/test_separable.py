"""Matrices that act along one axis at a time: what is recognised, and that systems with it are solved."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from sharp.solvers import separable
from sharp.solvers.axes import ChebyshevAxis
from sharp.solvers.method import load_method
from sharp.solvers.separable import Diagonalised, Separable, Triangular, separated
from sharp.solvers.system import system_of
from tests.helpers.solvers.boxed import boxed


def line(count: int, speed: float = 0.0) -> np.ndarray:
    axis = ChebyshevAxis(0.0, 1.0, count)
    return np.asarray(-axis.derivative(2) + speed * axis.derivative(1))[1:-1, 1:-1]


def summed(*parts: np.ndarray) -> sparse.csr_array:
    total = None
    for place, part in enumerate(parts):
        term = sparse.csr_array(part) if place == 0 else sparse.eye_array(len(parts[0]))
        for other in range(1, len(parts)):
            factor = part if other == place else np.eye(len(parts[other]))
            term = sparse.kron(term, factor)
        total = term if total is None else total + term
    return sparse.csr_array(total)


@pytest.mark.parametrize(("equation", "finest"), [("-lap(u) = 1", 64), ("-div((1 + x*y)*grad(u)) = 1", 32)])
def test_resolutions_go_further_where_systems_are_cheap(equation: str, finest: int) -> None:
    problem = boxed([equation], {axis: [0, 1] for axis in "xyz"}, ["all: dirichlet u = 0"])
    assert load_method("chebyshev").resolution_sequence(system_of(problem))[-1] == finest


def found(whole: sparse.csr_array, counts: tuple[int, ...], fields: int = 1) -> Separable:
    result = separated(whole, counts, fields)
    assert result is not None
    return result


@pytest.mark.parametrize("shift", [0.0, 3.5, 2.0 + 5.0j])
@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(summed(line(9), line(8)), id="plane"),
        pytest.param(summed(line(7), line(8, 4.0), line(6)), id="space"),
        pytest.param(summed(line(14, 900.0), line(15, 500.0)), id="layer"),
    ],
)
def test_shifted_systems_are_solved(whole: sparse.csr_array, shift: complex) -> None:
    counts = {42: (7, 6), 120: (5, 6, 4), 156: (12, 13)}[whole.shape[0]]
    matrix = found(whole, counts)
    random = np.random.default_rng(1)
    solution = random.normal(size=(whole.shape[0], 2)) + (1j if np.iscomplexobj(shift) else 0.0)
    for sign in (1.0, -1.0):
        solve = matrix.solver(shift, sign)
        assert solve is not None
        right = shift * solution + sign * (whole @ solution)
        assert solve(right) == pytest.approx(solution, rel=1e-8, abs=1e-9)
        assert solve(right[:, 0]) == pytest.approx(solution[:, 0], rel=1e-8, abs=1e-9)


def test_eigenvectors_that_are_nearly_dependent_are_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, counts = summed(line(20, 300.0), line(18, 100.0)), (18, 16)
    assert isinstance(found(whole, counts), Diagonalised)
    monkeypatch.setattr(separable, "_CONDITION", 2.0)
    layers = found(whole, counts)
    assert isinstance(layers, Triangular)
    solution = np.cos(np.arange(18 * 16))
    for shift in (0.0, 2.0 - 3.0j):
        solve = layers.solver(shift, 1.0)
        assert solve is not None
        assert solve(shift * solution + whole @ solution) == pytest.approx(solution, abs=1e-9)


def test_fields_are_solved_for_together() -> None:
    part, eye = summed(line(8), line(9)), sparse.eye_array(42)
    whole = sparse.csr_array(sparse.block_array([[2.0 * part + 3.0 * eye, eye], [part, None]]))
    solution = np.sin(np.arange(84.0))
    solve = found(whole, (6, 7), 2).solver(1.5, -1.0)
    assert solve is not None
    assert solve(1.5 * solution - whole @ solution) == pytest.approx(solution, abs=1e-9)


def test_what_is_no_sum_along_axes_is_not_taken_for_one() -> None:
    part = summed(line(8), line(9))
    varying = sparse.csr_array(sparse.diags_array(1 + 0.001 * np.arange(42)) @ part)
    assert separated(varying, (6, 7), 1) is None
    mixed = part + sparse.kron(line(8), line(9))
    assert separated(sparse.csr_array(mixed), (6, 7), 1) is None
    apart = sparse.block_array([[summed(line(8), line(9)), None], [None, summed(line(8, 1.0), line(9))]])
    assert separated(sparse.csr_array(apart), (6, 7), 2) is None


def test_a_singular_matrix_has_no_solver() -> None:
    eigenvalue = float(np.linalg.eigvals(line(8)).real.min() + np.linalg.eigvals(line(9)).real.min())
    matrix = found(summed(line(8), line(9)), (6, 7))
    assert matrix.solver(eigenvalue, -1.0) is None
