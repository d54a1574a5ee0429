"""The coarse grid of the two-grid measure, and the stability limits of explicit schemes."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.problems import list_problems, load_problem, parse_problem
from sharp.reference.coarse_grid import coarsened, restricted
from sharp.reference.datasets import Inputs, uniform_points
from sharp.reference.families import explicit_limits, family_of

ADVECTION, DARCY = load_problem("advection"), load_problem("darcy")


def given(points: int, dtype: type = np.float64) -> Inputs:
    x = uniform_points(ADVECTION, "x", points)
    u0 = np.stack([np.sin(2 * np.pi * x), 2 + np.cos(4 * np.pi * x)]).astype(dtype)
    return Inputs({"u0_batch": u0}, np.linspace(0, 1, 3), x)


def test_coarse_cells_hold_the_same_functions_to_order_four() -> None:
    errors = []
    for points in (32, 64):
        coarse = coarsened(ADVECTION, given(points))
        wanted = given(points // 2)
        assert coarse.x == pytest.approx(wanted.x)
        assert coarse.t is not None
        errors.append(np.abs(coarse.arrays["u0_batch"] - wanted.arrays["u0_batch"]).max())
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.1)


def test_coarse_cells_conserve_sums_and_precision() -> None:
    rng = np.random.default_rng(1)
    u = rng.standard_normal((2, 3, 40))
    assert restricted(ADVECTION, u).mean(axis=-1) == pytest.approx(u.mean(axis=-1))
    coarse = coarsened(ADVECTION, given(32, np.float32))
    assert coarse.arrays["u0_batch"].dtype == np.float32


def test_every_second_node_is_a_node_of_the_coarse_grid() -> None:
    a = np.random.default_rng(2).uniform(1, 2, (2, 9, 9)).astype(np.float32)
    coarse = coarsened(DARCY, Inputs({"a": a}, None, np.linspace(0, 1, 9)))
    assert np.array_equal(coarse.x, np.linspace(0, 1, 5))
    assert np.array_equal(coarse.arrays["a"], a[:, ::2, ::2])


def test_grids_that_cannot_be_halved_have_no_coarse_one() -> None:
    assert coarsened(ADVECTION, given(33)) is None
    a = np.ones((1, 8, 8))
    assert coarsened(DARCY, Inputs({"a": a}, None, np.linspace(0, 1, 8))) is None
    text = list_problems()["advection"].read_text().replace("family: advection", "family: other")
    walls = text.replace("{type: periodic, axis: x}", "{type: dirichlet, where: x = 0, field: u, value: 0}")
    assert coarsened(parse_problem(walls, "walls"), given(32)) is None


@pytest.mark.parametrize(("name", "bound"), [("burgers", 1e-3), ("reaction-diffusion", 1e-7)])
def test_true_solutions_on_both_grids_agree(name: str, bound: float) -> None:
    problem, t = load_problem(name), np.linspace(0, 0.2, 3)
    x = uniform_points(problem, "x", 256)
    u0 = 0.5 + 0.4 * np.sin(2 * np.pi * x)[None]
    coarse = coarsened(problem, Inputs({"u0_batch": u0}, t, x))
    solve = family_of(problem).solve_reference
    fine_u, coarse_u = (
        solve(problem, {"u0_batch": start}, t, tolerance=1e-7).arrays["u"]
        for start in (u0, coarse.arrays["u0_batch"])
    )
    difference = np.linalg.norm(restricted(problem, fine_u) - coarse_u) / np.linalg.norm(coarse_u)
    assert difference < bound


def start(name: str, points: int = 50) -> Inputs:
    problem = load_problem(name)
    levels = {"u": 3.0, "Vx": -2.0, "density": 2.0, "pressure": 5.0}
    arrays = {port.name: np.full((2, points), levels[port.field]) for port in problem.interface.inputs}
    return Inputs(arrays, np.linspace(0, 1, 3), np.arange(points))


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("advection", {"transport": 0.02 / 0.1}),
        ("burgers", {"transport": 0.02 / 3, "diffusion": 0.02**2 / (2 * 0.01 / np.pi)}),
        ("reaction-diffusion", {"diffusion": 0.02**2 / (2 * 0.5), "reaction": 2.0}),
        (
            "navier-stokes",
            {
                "transport": 0.04 / (2 + np.sqrt(5 / 3 * 5 / 2)),
                "diffusion": 0.04**2 / (2 * (0.1 + 4 / 3 * 0.1)),
            },
        ),
    ],
)
def test_explicit_limits(name: str, limits: dict[str, float]) -> None:
    assert load_problem(name).parameters.get("beta", 0.1) == 0.1
    found = {limit.part: limit.length for limit in explicit_limits(load_problem(name), start(name))}
    assert found == pytest.approx(limits)


def test_what_does_not_move_has_no_limit_and_steady_problems_have_none() -> None:
    still = Inputs({"u0_batch": np.zeros((1, 50))}, np.linspace(0, 1, 3), np.arange(50))
    assert [limit.part for limit in explicit_limits(load_problem("burgers"), still)] == ["diffusion"]
    flow = Inputs({"a": np.ones((1, 9, 9))}, None, np.linspace(0, 1, 9))
    assert explicit_limits(DARCY, flow) == ()
