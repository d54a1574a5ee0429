"""Tensor grids: derivatives, boundary parts, integrals and interpolation in one to three dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from sharp.solvers.axes import ChebyshevAxis, FourierAxis, UniformAxis
from sharp.solvers.boxes import BoxGrid

GRIDS = {
    "spectral": BoxGrid({"x": ChebyshevAxis(0, 1, 16), "y": FourierAxis(0, 2 * np.pi, 14)}),
    "differences": BoxGrid({"x": UniformAxis(0, 1, 60), "y": UniformAxis(0, 2 * np.pi, 90, periodic=True)}),
    "mixed": BoxGrid({"x": ChebyshevAxis(0, 1, 16), "y": UniformAxis(0, 2 * np.pi, 90, periodic=True)}),
}
ACCURACY = {"spectral": 1e-8, "differences": 2e-4, "mixed": 2e-4}


def function(points: NDArray[np.float64]) -> NDArray[np.float64]:
    x, y = points.T
    return np.exp(2 * x) * np.sin(3 * y)


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("by", [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2)])
def test_derivatives_are_products_of_those_along_the_axes(name: str, by: tuple[int, int]) -> None:
    grid = GRIDS[name]
    x, y = grid.points.T
    expected = 2.0 ** by[0] * 3.0 ** by[1] * np.exp(2 * x) * np.sin(3 * y + by[1] * np.pi / 2)
    found = grid.derivative(by) @ function(grid.points)
    np.testing.assert_allclose(found, expected, atol=10 * ACCURACY[name] * 2.0 ** by[0] * 3.0 ** by[1])


@pytest.mark.parametrize("name", GRIDS)
def test_values_between_nodes_and_integrals_are_those_of_the_function(name: str) -> None:
    grid = GRIDS[name]
    points = np.random.default_rng(0).uniform((0, 0), (1, 2 * np.pi), (40, 2))
    found = grid.interpolation(points) @ function(grid.points)
    np.testing.assert_allclose(found, function(points), atol=ACCURACY[name])
    assert grid.weights.sum() == pytest.approx(2 * np.pi)
    assert grid.weights @ (grid.points[:, 0] ** 2) == pytest.approx(2 * np.pi / 3, rel=1e-6)


def test_periodic_axes_have_no_ends() -> None:
    grid = GRIDS["spectral"]
    assert set(grid.parts) == {"x-", "x+"}
    low = grid.parts["x-"]
    assert (grid.points[low, 0] == 0).all()
    assert len(low) == 14


@pytest.mark.parametrize(
    ("part", "order", "sign"), [("x-", 1, -1), ("x+", 1, 1), ("x-", 2, 1), ("x-", 3, -1)]
)
def test_normal_derivatives_are_taken_outward(part: str, order: int, sign: int) -> None:
    grid = GRIDS["spectral"]
    nodes = grid.parts[part]
    found = grid.normal_derivative(part, order) @ function(grid.points)
    np.testing.assert_allclose(found, sign * 2**order * function(grid.points[nodes]), atol=1e-6)


def test_corners_belong_to_several_parts_and_layers_are_given_up_from_outside() -> None:
    cube = BoxGrid({axis: UniformAxis(0, 1, 4) for axis in "xyz"})
    assert cube.shape == (4, 4, 4)
    corner = 0
    assert all(corner in cube.parts[part] for part in ("x-", "y-", "z-"))
    given_up = cube.replaced_nodes("y+", 2)
    np.testing.assert_allclose(cube.points[given_up[:16], 1], 1)
    np.testing.assert_allclose(cube.points[given_up[16:], 1], 2 / 3)
    np.testing.assert_array_equal(given_up[:16], cube.parts["y+"])


def test_a_single_spectral_axis_has_dense_matrices_and_fewer_nodes_to_go_over_to() -> None:
    line = BoxGrid({"x": ChebyshevAxis(-1, 1, 12)})
    assert isinstance(line.derivative((1,)), np.ndarray)
    fewer = line.resampling(3)
    assert fewer is not None
    nodes = ChebyshevAxis(-1, 1, 12).inner_nodes(9)
    np.testing.assert_allclose(fewer @ line.points[:, 0] ** 5, nodes**5, atol=1e-14)
    assert GRIDS["spectral"].resampling(3) is None
