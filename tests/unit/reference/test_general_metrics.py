"""General measures on solutions with known defects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from sharp.problems import load_problem
from sharp.reference import darcy
from sharp.reference.coarse_grid import coarsened
from sharp.reference.datasets import Inputs
from sharp.reference.error_norms import relative_errors
from sharp.reference.families import family_of, residual, tightest_limit
from sharp.reference.feedback import compute
from sharp.reference.metrics import MetricInput
from tests.helpers.problems.known_schemes import advection, exact_shift

Array = np.ndarray
Solver = Callable[[Array, Array, float], Array]
BETA = load_problem("advection").parameters["beta"]


def waves(x: Array, t: Array, shift: float = 0.0) -> Array:
    """Two samples [2, T, N] that travel with the speed beta."""
    phase = 2 * np.pi * (x - BETA * (t - t[0])[:, None] - shift)
    return np.stack([np.sin(phase), 2 + np.cos(phase) + 0.3 * np.sin(3 * phase + 1)])


def travelling(points: int = 128, frames: int = 41, end: float = 2.0) -> MetricInput:
    """Return the exact solution of advection as if a program had returned it."""
    x, t = (np.arange(points) + 0.5) / points, np.linspace(0, end, frames)
    u = waves(x, t)
    return MetricInput(load_problem("advection"), Inputs({"u0_batch": u[:, 0]}, t, x), {"u": u}, {"u": u})


def gas(points: int = 64, frames: int = 11) -> MetricInput:
    """Return fields of a gas that do not solve its equations, and start as they should."""
    problem = load_problem("navier-stokes")
    x, t = (np.arange(points) + 0.5) / points, np.linspace(0, 1, frames)
    base = np.sin(2 * np.pi * x + 0.5 * t[:, None])[None]
    fields = {"Vx": base, "density": 3 + base, "pressure": 5 + base}
    inputs = {port.name: fields[port.field][:, 0] for port in problem.interface.inputs}
    return MetricInput(problem, Inputs(inputs, t, 2 * x - 1), fields)


def value(name: str, case: MetricInput) -> float:
    return compute([name], case)[name].value


def changed(case: MetricInput, change: Callable[[Array], Array], field: str = "u") -> MetricInput:
    prediction = {name: values.copy() for name, values in case.prediction.items()}
    prediction[field] = change(prediction[field])
    return replace(case, prediction=prediction)


def test_an_exact_solution_has_no_defect() -> None:
    case = travelling()
    found = compute(["nrmse", "residual", "initial_condition", "periodic_wrap"], case)
    assert {name: found[name].value for name in found if name != "residual"} == {
        "nrmse": 0.0,
        "initial_condition": 0.0,
        "periodic_wrap": 0.0,
    }
    assert found["residual"].value < 1e-4


def test_nrmse_and_residual_are_those_of_every_score() -> None:
    case = changed(travelling(), lambda u: 0.98 * u)
    assert value("nrmse", case) == pytest.approx(0.02)
    assert value("nrmse", case) == relative_errors(case.prediction, case.reference).mean
    assert value("residual", case) == residual(case.problem, case.inputs, case.prediction).value


def test_a_first_frame_that_is_off_by_a_hundredth() -> None:
    def off(u: Array) -> Array:
        u[:, 0] *= 1.01
        return u

    case = changed(travelling(), off)
    assert value("initial_condition", case) == pytest.approx(1e-2, rel=1e-9)
    assert value("initial_condition", changed(travelling(), lambda u: np.roll(u, 1, axis=1))) > 0.1


def test_the_worst_field_of_a_wrong_start_counts() -> None:
    found = compute(["initial_condition"], changed(gas(), lambda u: 1.01 * u, "pressure"))
    assert found["initial_condition"].value == pytest.approx(1e-2, rel=1e-9)
    assert found["initial_condition"].note == "largest for pressure"


def test_a_start_from_rest_needs_no_division_by_zero() -> None:
    case = gas()
    still = {**case.inputs.arrays, "Vx0": np.zeros_like(case.inputs.arrays["Vx0"])}
    at_rest = replace(case, inputs=replace(case.inputs, arrays=still))
    assert value("initial_condition", at_rest) == 1.0
    assert value("initial_condition", changed(at_rest, np.zeros_like, "Vx")) == 0.0


def outflow(u: Array) -> Array:
    """Let every wave leave on the right and keep what was on the left: the solution without its wrap."""
    t, x = travelling().inputs.t, travelling().inputs.x
    entered = x < BETA * (t - t[0])[:, None]
    return np.where(entered, u[:, :1, :1], u)


BROKEN: Mapping[str, tuple[Callable[[Array], Array], float]] = {
    "outflow": (outflow, 0.02),
    "ends held at their first values": (
        lambda u: np.concatenate([np.repeat(u[:, :1, :1], 41, axis=1), u[..., 1:]], axis=2),
        0.1,
    ),
    "ends set to zero": (lambda u: np.pad(u[..., 1:-1], ((0, 0), (0, 0), (1, 1))), 0.3),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_wrap_is_seen(name: str) -> None:
    broken, least = BROKEN[name]
    assert value("periodic_wrap", changed(travelling(), broken)) > least


def test_the_size_of_a_jump_at_the_wrap_is_measured() -> None:
    def torn(u: Array) -> Array:
        later = np.arange(u.shape[1]) > 0
        return u + 0.3 * later[:, None] * np.linspace(1, 0, u.shape[2])

    flat = changed(travelling(), lambda u: np.zeros_like(u) + np.linspace(1, 0, u.shape[2]))
    given = replace(flat.inputs, arrays={"u0_batch": np.zeros((2, 128))})
    # Of the jump 1 between the ends, 2/127 are what the slope beside them accounts for twice.
    assert value("periodic_wrap", replace(flat, inputs=given)) == pytest.approx(1 - 2 / 127)
    assert 0.05 < value("periodic_wrap", changed(travelling(), torn)) < 0.15


@pytest.mark.parametrize("at", [0.0, 0.002, 0.25, 0.5])
def test_steep_fronts_that_cross_the_wrap_are_none_of_its_faults(at: float) -> None:
    case = travelling()
    x, t = case.inputs.x, case.inputs.t
    place = (x - at - BETA * (t - t[0])[:, None]) % 1.0
    front = np.tanh((place - 0.5) / 0.01) - np.tanh((place - 0.02) / 0.01)
    moved = replace(
        case, inputs=replace(case.inputs, arrays={"u0_batch": front[None, 0]}), prediction={"u": front[None]}
    )
    assert value("periodic_wrap", moved) == 0.0


def test_a_shock_that_stands_on_the_wrap_is_none_of_its_faults() -> None:
    problem = load_problem("burgers")
    x, t = (np.arange(1024) + 0.5) / 1024, np.linspace(0, 0.3, 5)
    arrays = {"u0_batch": -1.5 * np.sin(2 * np.pi * x)[None]}
    truth = family_of(problem).solve_reference(problem, arrays, t, tolerance=1e-4).arrays
    assert np.abs(np.diff(truth["u"][0, -1, [-1, 0]])) > 0.2
    assert value("periodic_wrap", MetricInput(problem, Inputs(arrays, t, x), truth)) == 0.0


@pytest.fixture(scope="module")
def porous() -> MetricInput:
    problem = load_problem("darcy")
    a = np.where(darcy.sample_initial(problem, 2, 6).arrays["a"][:, ::14, ::14] > 5, 12.0, 3.0)
    u = darcy.FAMILY.solve_reference(problem, {"a": a}).arrays["u"]
    return MetricInput(problem, Inputs({"a": a}, None, np.linspace(0, 1, a.shape[1])), {"u": u})


def test_walls_that_are_off_by_a_hundredth(porous: MetricInput) -> None:
    assert value("boundary_condition", porous) == 0.0

    def lifted(u: Array) -> Array:
        edge = np.ones(u.shape[1:], bool)
        edge[1:-1, 1:-1] = False
        inside = np.sqrt(np.mean(u[:, 1:-1, 1:-1] ** 2, axis=(1, 2)))[:, None, None]
        return u + 0.01 * edge * inside

    assert value("boundary_condition", changed(porous, lifted)) == pytest.approx(1e-2, rel=1e-9)


def solved(solver: Solver, points: int) -> MetricInput:
    """Return what a solver makes of the waves on a grid, and on that of half as many points."""
    case = travelling(points, frames=6, end=5 / 64 / BETA)  # one cell of the coarsest grid a frame
    coarse = coarsened(case.problem, case.inputs)
    return replace(
        case,
        prediction={"u": solver(case.inputs.arrays["u0_batch"], case.inputs.t, BETA)},
        coarse=(coarse, {"u": solver(coarse.arrays["u0_batch"], coarse.t, BETA)}),
    )


@pytest.mark.parametrize(("solver", "order"), [(advection("upwind"), 1), (advection("lax-wendroff"), 2)])
def test_the_two_grid_difference_is_that_of_richardson(solver: Solver, order: int) -> None:
    cases = [solved(solver, points) for points in (128, 256, 512)]
    found = [value("two_grid", case) for case in cases]
    for coarse, fine in pairwise(found):
        assert coarse / fine == pytest.approx(2**order, rel=0.05)
    # Richardson's argument: the difference is 2^p - 1 times the error of the fine solution.
    for case, difference in zip(cases, found, strict=True):
        assert difference == pytest.approx((2**order - 1) * value("nrmse", case), rel=0.05)


def test_a_scheme_without_discretisation_error_has_no_two_grid_difference() -> None:
    assert value("two_grid", solved(exact_shift, 256)) < 1e-5


def test_a_solution_of_nothing_but_zeros_has_a_two_grid_difference() -> None:
    case = solved(advection("upwind"), 64)
    nothing = changed(case, np.zeros_like)
    assert value("two_grid", nothing) == 1.0
    zeros = replace(nothing, coarse=(case.coarse[0], {"u": np.zeros_like(case.coarse[1]["u"])}))
    assert value("two_grid", zeros) == 0.0


def test_two_grids_of_a_field_in_two_dimensions(porous: MetricInput) -> None:
    coarse = coarsened(porous.problem, porous.inputs)
    u = porous.prediction["u"][:, ::2, ::2]
    assert value("two_grid", replace(porous, coarse=(coarse, {"u": u}))) == 0.0
    assert value("two_grid", replace(porous, coarse=(coarse, {"u": 1.03 * u}))) == pytest.approx(0.03)


@pytest.mark.parametrize("name", ["advection", "burgers", "reaction-diffusion"])
def test_steps_beyond_the_stability_limit(name: str) -> None:
    problem, t = load_problem(name), np.linspace(0, 1, 11)
    u = np.stack([3 + np.sin(2 * np.pi * (np.arange(64) + 0.5) / 64)] * 2)
    case = MetricInput(problem, Inputs({"u0_batch": u}, t, np.arange(64)), {"u": u[:, None]})
    limit = tightest_limit(problem, case.inputs).length
    assert value("cfl", replace(case, internal_dt=0.99 * limit)) == 0.0
    assert value("cfl", replace(case, internal_dt=3 * limit)) == pytest.approx(2.0, rel=1e-3)
    steps = round(1 / (3 * limit))
    assert value("cfl", replace(case, internal_steps=steps)) == pytest.approx(1 / steps / limit - 1, rel=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_single_precision_is_measured_in_double(dtype: type) -> None:
    case = travelling()
    single = replace(
        case,
        inputs=replace(case.inputs, arrays={"u0_batch": case.inputs.arrays["u0_batch"].astype(np.float32)}),
        prediction={"u": case.prediction["u"].astype(dtype)},
    )
    assert value("initial_condition", single) < 1e-7
    assert value("periodic_wrap", single) == 0.0
