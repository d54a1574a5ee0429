"""Orders of accuracy of schemes whose order is known, and of programs that have none."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest

from sharp.errors import DataError
from sharp.evaluation.convergence import (
    assess,
    at_centres,
    format_convergence,
    order_of,
    study_inputs,
    study_request,
)
from sharp.evaluation.protocol import EvaluationRequest
from sharp.problems import load_problem
from sharp.problems.limits import ResourceLimits
from sharp.reference.families import has_smooth_inputs, resolutions, smooth_inputs, smooth_reference
from tests.helpers.problems.known_schemes import (
    advection,
    burgers,
    darcy,
    exact_shift,
    navier_stokes,
    reaction_diffusion,
)
from tests.helpers.problems.small_problems import small

PROBLEMS = ("advection", "burgers", "reaction-diffusion", "navier-stokes", "darcy")
GRIDS = (64, 128, 256, 512, 1024)


def study(problem_id, solver, problem=None):
    """Call a solver on all grids and assess what it returns."""
    problem = problem or load_problem(problem_id)
    interface = problem.interface
    solutions = []
    for inputs in study_inputs(problem):
        arguments = [inputs.arrays[port.name] for port in interface.inputs]
        times = [] if inputs.t is None else [inputs.t]
        found = solver(*arguments, *times, *(problem.parameters[name] for name in interface.parameters))
        fields = found if isinstance(found, tuple) else (found,)
        solutions.append(dict(zip([port.name for port in interface.returns], fields, strict=True)))
    return assess(problem, solutions)


SCHEMES = {
    "upwind": ("advection", advection("upwind"), 1),
    "lax-wendroff": ("advection", advection("lax-wendroff"), 2),
    "fourth-order": ("advection", advection("central-4"), 4),
    "burgers-central": ("burgers", burgers("central-2"), 2),
    "crank-nicolson-strang": ("reaction-diffusion", reaction_diffusion("strang"), 2),
    "lie-splitting": ("reaction-diffusion", reaction_diffusion("lie"), 1),
    "gas": ("navier-stokes", navier_stokes, 2),
    "darcy-harmonic": ("darcy", darcy(lambda one, other: 2 * one * other / (one + other)), 2),
    "darcy-one-sided": ("darcy", darcy(lambda one, _: one), 1),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_known_orders_are_found(name):
    problem, solver, order = SCHEMES[name]
    found = study(problem, solver)
    assert found.order == pytest.approx(order, abs=0.12)
    assert found.orders[-1] == found.order
    assert found.note == ""
    assert (len(found.resolutions), len(found.differences), len(found.orders)) == (5, 4, 3)


def test_exact_solver_has_no_order_but_is_said_to_be_at_round_off():
    found = study("advection", exact_shift)
    assert found.order is None
    assert set(found.orders) == {None}
    assert max(found.differences) < 1e-14
    assert found.note.startswith("at round-off (")
    assert found.note.endswith(") from N = 64: exact on every grid, or consistent with spectral accuracy")


def test_spectral_accuracy_reaches_round_off():
    found = study("burgers", burgers("spectral"))
    assert found.order is None
    assert found.differences[0] > 100 * found.differences[1]
    assert found.note.startswith("at round-off (")
    assert found.note.endswith(") from N = 128, consistent with spectral accuracy")


def test_fourier_series_shift_cell_centres_exactly():
    fine, coarse = (((np.arange(n) + 0.5) / n) for n in (64, 32))
    wave = [np.cos(2 * np.pi * (5 * x - 0.2)) + np.sin(2 * np.pi * 15 * x) for x in (fine, coarse)]
    np.testing.assert_allclose(at_centres(wave[0], 32), wave[1], atol=1e-13)
    noise = np.random.default_rng(1).standard_normal((3, 64))
    smooth = noise - at_centres(noise, 64)
    assert np.abs(smooth).max() < 1e-13
    np.testing.assert_allclose(at_centres(wave[0] + 3, 32).mean(), (wave[0] + 3).mean(), atol=1e-13)


def test_means_of_pairs_would_have_hidden_the_fourth_order():
    x = (np.arange(256) + 0.5) / 256
    pairs = np.sin(2 * np.pi * x).reshape(-1, 2).mean(axis=1)
    exact = np.sin(2 * np.pi * (np.arange(128) + 0.5) / 128)
    assert np.abs(pairs - exact).max() > 50 * study("advection", advection("central-4")).differences[1]


def single(solver):
    """Compute in single precision."""
    return lambda u0, t, *parameters: solver(u0.astype("f4"), t, *parameters).astype("f4")


def test_single_precision_leaves_low_orders_and_no_high_one():
    assert study("advection", single(advection("upwind"))).order == pytest.approx(1, abs=0.1)
    found = study("advection", single(advection("central-4")))
    assert found.order is None
    assert "at round-off" in found.note
    assert found.note.endswith("too soon for an order")


def noisy(size):
    """Add noise to an upwind scheme, whose solutions are 4e-3 to 5e-4 apart."""

    def solver(u0, t, beta):
        u = advection("upwind")(u0, t, beta)
        return u + size * np.random.default_rng(u0.shape[1]).standard_normal(u.shape)

    return solver


@pytest.mark.parametrize("size", [1e-2, 1e-3, 3e-4])
def test_noise_has_no_order(size):
    found = study("advection", noisy(size))
    assert found.order is None
    assert found.note.startswith(("no convergence", "not in the asymptotic range"))


def test_noise_far_below_the_differences_is_of_no_account():
    assert study("advection", noisy(1e-6)).order == pytest.approx(1, abs=0.1)


def test_lower_power_that_takes_over_is_no_order():
    found = study("advection", advection("damped"))
    assert found.order is None
    assert found.note.startswith("not in the asymptotic range: the last two triplets have the orders ")


def test_limit_that_is_not_the_solution_has_no_order():
    found = study("advection", advection("faster"))
    assert found.order is None
    assert found.orders[-1] == pytest.approx(4, abs=0.1)
    assert found.note.endswith("from the true one, an error that the grid does not reduce")


@pytest.mark.parametrize("size", [0.0, 1.0])
def test_solutions_that_do_not_move_are_not_called_exact(size):
    found = study("advection", lambda u0, t, _: size * np.repeat(u0[:, None], len(t), axis=1))
    assert found.order is None
    assert "an error that the grid does not reduce" in found.note
    json.dumps(asdict(found), allow_nan=False)


def test_inconsistent_scheme_has_no_order():
    def fixed_damping(u0, t, beta):
        return advection("lax-wendroff")(u0, t, beta) * np.exp(-0.1 * (t - t[0]))[:, None]

    assert study("advection", fixed_damping).order is None


@pytest.fixture(scope="module")
def second_order():
    """Solutions of a scheme of order 2 on all grids."""
    problem = load_problem("advection")
    solver = advection("lax-wendroff")
    return [{"u": solver(i.arrays["u0_batch"], i.t, 0.1)} for i in study_inputs(problem)]


def spoiled(solutions, **spoil):
    """Replace the solutions on some grids."""
    return [spoil.get(f"n{n}", solution) for n, solution in zip(GRIDS, solutions, strict=True)]


def test_failure_on_the_finest_grid_leaves_an_order(second_order):
    found = assess(load_problem("advection"), spoiled(second_order, n1024=None))
    assert found.order == pytest.approx(2, abs=0.1)
    assert found.resolutions == GRIDS[:4]
    assert found.note == "at N = 1024 the call failed"


def test_nan_on_one_grid_is_named_and_breaks_the_sequence(second_order):
    broken = {"u": second_order[2]["u"].copy()}
    broken["u"][1, 2, 5] = np.nan
    found = assess(load_problem("advection"), spoiled(second_order, n256=broken))
    assert (found.order, found.resolutions, found.orders) == (None, (512, 1024), ())
    assert found.note == (
        "at N = 256 the solution is not finite; "
        "too few grids for an order: those of two triplets have to agree"
    )


def test_no_solution_at_all(second_order):
    problem = load_problem("advection")
    none = assess(problem, [None] * 5)
    assert (none.order, none.resolutions, none.differences, none.orders) == (None, (), (), ())
    huge = assess(problem, [{"u": 1e150 * (solution["u"] > 1)} for solution in second_order])
    assert "at N = 64 the solution grows to 1e+150" in huge.note
    one = assess(problem, spoiled([None] * 5, n64=second_order[0]))
    assert (one.order, one.resolutions) == (None, (64,))


@pytest.mark.parametrize(
    ("distances", "order", "note"),
    [
        ([1, 0.5, 0.25], 1.0, ""),
        ([1, 0.25, 0.06], 2.06, ""),
        ([1, 0.5], None, "too few"),
        ([], None, "too few"),
        ([1, 1, 1], None, "no convergence"),
        ([1, 2, 4], None, "no convergence"),
        ([1, 0.5, 0.5], None, "not in the asymptotic range"),
        ([1, 0.25, 0.1], None, "not in the asymptotic range"),
        (
            [1, 0.1, 1e-4],
            None,
            "the last two triplets have the orders 3.32 and 9.97: consistent with spectral",
        ),
        ([1e-2, 1e-8, 1e-15], None, "at round-off (1e-15) from N = 256, consistent with spectral accuracy"),
        ([1e-6, 2e-7, 1e-15, 1e-15], None, "at round-off (1e-15) from N = 256, consistent with spectral"),
        ([1e-11, 2.5e-12, 6e-13, 5e-13], None, "at round-off (6e-13) from N = 256, too soon for an order"),
        ([1e-8, 2.5e-9, 6.2e-10, 5e-15], 2.01, "at round-off (5e-15) from N = 512"),
        (
            [1e-10, 1.1e-10, 1e-10],
            None,
            "at round-off (1e-10) from N = 64, or at the tolerance of an iteration",
        ),
        ([0.0, 0.0], None, "at round-off (0e+00) from N = 64: exact on every grid"),
    ],
)
def test_orders_from_distances(distances, order, note):
    found = order_of(distances, GRIDS[: len(distances) + 1])
    assert found.order == (order if order is None else pytest.approx(order, abs=0.01))
    assert found.note.startswith(note)
    assert bool(found.note) == bool(note)
    assert len(found.orders) == max(len(distances) - 1, 0)


@pytest.mark.parametrize("name", PROBLEMS)
def test_inputs_are_the_same_functions_on_nested_grids(name):
    problem = load_problem(name)
    grids = study_inputs(problem)
    assert tuple(inputs.x.size for inputs in grids) == resolutions(problem)
    for coarse, fine in pairwise(grids):
        for port in problem.interface.inputs:
            a, b = coarse.arrays[port.name], fine.arrays[port.name]
            assert (a.dtype, a.shape[0]) == (np.float64, b.shape[0])
            at_coarse = b[:, ::2, ::2] if name == "darcy" else at_centres(b, a.shape[-1])
            np.testing.assert_allclose(at_coarse, a, atol=1e-13)
        if coarse.t is not None:
            np.testing.assert_array_equal(coarse.t, fine.t)
            assert len(coarse.t) == 3


@pytest.mark.parametrize("name", PROBLEMS)
def test_truth_starts_from_the_inputs_and_knows_its_error(name):
    problem = load_problem(name)
    points = resolutions(problem)[0]
    truth = smooth_reference(problem, points)
    assert truth.error.max() < 3e-5
    if problem.time is not None:
        inputs = smooth_inputs(problem, points)
        for given, returned in zip(problem.interface.inputs, problem.interface.returns, strict=True):
            np.testing.assert_allclose(truth.arrays[returned.name][:, 0], inputs.arrays[given.name])


def test_inputs_follow_domain_and_parameters():
    problem = small("advection", beta=-4.0)
    inputs = study_inputs(problem)[0]
    assert inputs.t[-1] == pytest.approx(1 / 24)


def test_problems_without_smooth_inputs_are_named():
    problem = load_problem("burgers")
    other = replace(problem, specification=problem.specification.model_copy(update={"family": "other"}))
    with pytest.raises(
        DataError, match=r"no smooth solutions are known for the family other; those .* darcy-2d$"
    ):
        study_inputs(other)
    nodal = replace(problem, grid=replace(problem.grid, kind="nodes"))
    with pytest.raises(DataError, match="are measured on grids of cells, found nodes"):
        study_inputs(nodal)
    known = [has_smooth_inputs(problem) for problem in (*map(load_problem, PROBLEMS), other, nodal)]
    assert known == [True] * 5 + [False] * 2


def test_request_for_the_order_of_a_program():
    scored = EvaluationRequest(
        "p",
        "d",
        "test",
        "code",
        ResourceLimits(9),
        measures=("two_grid",),
        repeats=3,
        shards=2,
        abort_above=0.1,
    )
    asked = EvaluationRequest("p", "d", "test", "code", ResourceLimits(9), x64=True, study="convergence")
    assert study_request(scored) == asked
    assert study_request(replace(scored, x64=False)) == replace(asked, x64=False)


def test_order_in_words():
    found = order_of([1, 0.25, 0.0625], (64, 128, 256, 512))
    assert format_convergence(found) == "2.00 (triplets 2.00, 2.00 of N = 64, 128, 256, 512)"
    assert (
        format_convergence(replace(found, note="x"))
        == "2.00 (triplets 2.00, 2.00 of N = 64, 128, 256, 512); x"
    )
    assert format_convergence(order_of([1, 0.25, 1e-16], (64, 128, 256, 512))) == (
        "none: at round-off (1e-16) from N = 256, consistent with spectral accuracy (triplets 2.00, – of "
        "N = 64, 128, 256, 512)"
    )
    assert format_convergence(order_of([0.0], (64, 128))) == (
        "none: at round-off (0e+00) from N = 64: exact on every grid, or consistent with spectral accuracy"
    )
