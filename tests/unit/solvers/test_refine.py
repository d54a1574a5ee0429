from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from sharp.problems import Problem
from sharp.solvers.driver import SolveOptions, solve_problem
from sharp.solvers.field_sizes import relative_distance, sizes
from sharp.solvers.method import ClockName, Deadline, SolverFailed
from sharp.solvers.refine import (
    ENDS,
    LEAST_SHARE,
    ROUNDING,
    SAFETY,
    RefinementStudy,
    ResolutionAttempt,
    distance,
    estimate_error,
    predict_seconds,
    refine,
)
from sharp.solvers.system import system_of
from tests.helpers.solvers.boxed import boxed
from tests.helpers.solvers.clocks import Clock
from tests.helpers.solvers.solving_fakes import HEAT, MODES, Invented, exact_solution, modes, problem_of

SYSTEM = system_of(problem_of(HEAT))
LONG = Deadline.within(1e6)


class Watched(Invented):
    """Calls `before(resolution, accuracy, deadline)`, and has at most `most` unknowns."""

    def __init__(
        self, before: Callable[..., Any] = lambda *_: None, most: float = math.inf, **more: Any
    ) -> None:
        super().__init__(**more)
        object.__setattr__(self, "before", before)
        object.__setattr__(self, "most", most)

    def solve(self, system, resolution, accuracy, deadline):
        self.before(resolution, accuracy, deadline)
        found = super().solve(system, resolution, accuracy, deadline)
        return replace(found, unknowns=min(found.unknowns, self.most))


def attempts(*errors: float, first: int = 10, ratio: float = 2.0) -> list[ResolutionAttempt]:
    """Attempts whose differences are those of solutions with the given errors, all of one sign."""
    sizes = [round(first * ratio**k) for k in range(len(errors))]
    differences = [None, *(abs(a - b) for a, b in pairwise(errors))]
    return [
        ResolutionAttempt("fd", size, 0.1, size, difference)
        for size, difference in zip(sizes, differences, strict=True)
    ]


@pytest.mark.parametrize("order", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("ratio", [1.5, 2.0])
def test_the_order_of_convergence_is_observed_from_two_differences(order: float, ratio: float) -> None:
    tried = attempts(*((100 * ratio**k) ** -order for k in range(3)), first=100, ratio=ratio)
    assert estimate_error(tried)[1] == pytest.approx(order, rel=0.02)


def test_the_estimate_of_a_slow_method_is_above_the_last_difference_and_near_the_true_error() -> None:
    errors = [n**-1.0 for n in (100, 125, 156)]
    tried = attempts(*errors, first=100, ratio=1.25)
    found, _ = estimate_error(tried)
    assert found > tried[-1].difference
    assert found == pytest.approx(SAFETY * errors[-1], rel=0.05)


def test_the_estimate_is_never_far_below_the_last_difference_nor_below_rounding() -> None:
    tried = attempts(1e-1, 1e-4, 1e-9)
    assert estimate_error(tried)[0] >= LEAST_SHARE * tried[-1].difference
    assert estimate_error(attempts(1e-3, 1e-9, 1e-9))[0] == ROUNDING


def test_orders_on_uneven_meshes_are_measured_by_their_unknowns_and_trusted_less() -> None:
    # Elements about a re-entrant corner, refined in steps of 1.5: unknowns, and errors against the exact solution.
    plate = (841, 2.5794e-5, None), (2981, 8.479e-7, 2.4547e-5), (7025, 2.0149e-7, 7.655e-7)
    sizes = (4, 6, 9)
    tried = [
        ResolutionAttempt("fem", size, 0.1, unknowns, difference)
        for size, (unknowns, _, difference) in zip(sizes, plate, strict=True)
    ]
    assert estimate_error(tried)[0] < plate[-1][1] / 2
    found, order = estimate_error(tried, uneven=True)
    assert plate[-1][1] < found < 2 * plate[-1][1]
    assert order == pytest.approx(5.4, abs=0.2)


def test_differences_that_grow_are_no_sign_of_convergence() -> None:
    tried = [
        ResolutionAttempt("fd", 10, 0, 10),
        ResolutionAttempt("fd", 20, 0, 20, 1e-5),
        ResolutionAttempt("fd", 40, 0, 40, 1e-4),
    ]
    assert estimate_error(tried) == (1e-4, None)
    tried[2] = ResolutionAttempt("fd", 40, 0, 40, 9.9e-6)
    assert estimate_error(tried)[0] > 5e-5


def test_one_solution_has_an_unknown_error() -> None:
    assert estimate_error([ResolutionAttempt("fd", 10, 0, 10)]) == (math.inf, None)
    assert estimate_error([]) == (math.inf, None)


@pytest.mark.parametrize("order", [2, 4])
def test_refinement_stops_where_the_estimate_is_small_enough_and_tells_the_true_error(order: int) -> None:
    accuracy = 1e-5
    found = refine(
        Invented(error=lambda n: float(n) ** -order), SYSTEM, accuracy, LONG, (8, 16, 32, 64, 128, 256, 512)
    )
    assert found.converged
    assert found.order == pytest.approx(order, rel=0.05)
    true = distance(SYSTEM, found.solution, exact_solution(SYSTEM.problem))
    assert true <= found.error <= accuracy
    assert found.error < 10 * true
    assert [attempt.resolution for attempt in found.attempts][:3] == [8, 16, 32]


def test_a_resolution_at_which_the_method_fails_is_passed_over() -> None:
    method = Invented(error=lambda n: None if n in (8, 32) else n**-6.0)
    found = refine(method, SYSTEM, 1e-8, LONG)
    assert found.converged
    assert [attempt.failure for attempt in found.attempts][:3] == ["no convergence", "", "no convergence"]
    assert found.attempts[3].difference == pytest.approx(16**-6.0, rel=0.5)


def test_a_method_that_never_succeeds_has_no_solution() -> None:
    found = refine(Invented(error=lambda _: None), SYSTEM, 1e-6, LONG)
    assert found.solution is None
    assert not found.converged
    assert [attempt.resolution for attempt in found.attempts] == [8, 16, 32, 64, 128, 256]


def test_failures_at_coarse_resolutions_jump_ahead_and_end_nothing() -> None:
    method = Invented(
        error=lambda n: None if n < 200 else n**-6.0, sizes=(12, 18, 27, 40, 60, 90, 135, 200, 300)
    )
    found = refine(method, SYSTEM, 1e-8, LONG)
    assert [attempt.resolution for attempt in found.attempts] == [12, 27, 60, 135, 300]
    assert found.solution is not None


def test_resolutions_that_end_at_the_same_time_end_the_search() -> None:
    def blows_up(resolution: int, *_: Any) -> None:
        raise SolverFailed("the solution could not be followed", reached=0.5 + 1e-9 * resolution)

    found = refine(Watched(blows_up), SYSTEM, 1e-8, LONG)
    assert [attempt.resolution for attempt in found.attempts] == [8, 16, 32][:ENDS]


def test_the_limit_of_time_ends_the_refinement_with_what_is_there() -> None:
    found = refine(Invented(), SYSTEM, 1e-6, Deadline.within(-1))
    assert [attempt.failure for attempt in found.attempts] == ["the limit of time was reached"]


def test_a_refinement_is_carried_on_with_another_accuracy() -> None:
    method = Invented()
    first = refine(method, SYSTEM, 1e-4, LONG)
    further = refine(method, SYSTEM, 1e-8, LONG, before=first)
    assert further.attempts[: len(first.attempts)] == first.attempts
    assert further.error < first.error
    resolutions = [attempt.resolution for attempt in further.attempts]
    assert resolutions == sorted(set(resolutions))


def test_every_attempt_steps_in_time_otherwise_than_the_one_before() -> None:
    asked: list[float] = []
    refine(Watched(lambda _, accuracy, __: asked.append(accuracy)), SYSTEM, 1e-9, LONG)
    assert all(a != b for a, b in pairwise(asked))
    assert max(asked) <= 1e-9


def test_steps_are_refined_where_finer_grids_do_not_lower_the_difference() -> None:
    """A method whose error is that of its steps, a hundred times what was asked for, of a sign that changes."""
    asked: list[float] = []

    class Stepping(Invented):
        def solve(self, system, resolution, accuracy, deadline):
            asked.append(accuracy)
            error = 100 * accuracy * (-1) ** len(asked)
            return exact_solution(system.problem, error, self.name, resolution)

    found = refine(Stepping(), SYSTEM, 1e-6, LONG)
    assert found.converged
    assert len(asked) < len(Stepping.sizes)
    assert asked[-1] < 1e-2 * asked[0]


def test_fields_of_different_size_count_by_their_own_size() -> None:
    big, small = np.full((1, 4, 5), 1e3), np.full((1, 4, 5), 1e-2)
    reference = np.concatenate([big, small])
    problem = two_fields("v")
    assert relative_distance(problem, np.concatenate([big, 1.5 * small]), reference) == pytest.approx(0.5)
    nothing = np.zeros((1, 4, 5))
    rounding = np.concatenate([big, nothing + 1e-12])
    assert relative_distance(problem, rounding, np.concatenate([big, nothing])) < 1e-14
    assert relative_distance(problem, reference * np.nan, reference) == math.inf


def two_fields(rest: str, end: str = "0") -> Problem:
    return boxed(
        ["-u_xx = 1", f"-v_xx + {rest} = 0"],
        {"x": (0, 1)},
        ["all: dirichlet u = 1", f"x = 0: dirichlet v = {end}", "x = 1: dirichlet v = 0"],
        fields=["u", "v"],
    )


@pytest.mark.parametrize(
    ("rest", "end", "scale"),
    [
        ("v", "1e-9", 1e-9),  # boundary values say that it is small
        ("v - 1e-9*u", "0", 1e-9),  # so does what drives it
        ("v - (u - 1)", "0", 1.0),  # what cancels leaves rounding
        ("v", "0", 1.0),  # of what vanishes nothing is known
        ("v", "sin(pi)", 1.0),  # nor of what is rounding
    ],
)
def test_a_tiny_field_is_measured_by_what_its_equation_and_data_make_of_it(
    rest: str, end: str, scale: float
) -> None:
    values = np.concatenate([np.ones((1, 1, 5)), np.full((1, 1, 5), 1e-9)])
    assert sizes(two_fields(rest, end), values)[1] == pytest.approx(scale, rel=0.2)


def test_two_meshes_that_meet_a_jump_alike_by_chance_do_not_make_the_estimate_small() -> None:
    made = attempts(0.021, 0.0164, 0.0053, 0.0047)
    assert estimate_error(made, highest=1.0)[0] > 0.0047 > 10 * estimate_error(made)[0]


def test_eigenvalue_problems_are_compared_by_their_eigenvalues() -> None:
    system = system_of(problem_of(MODES))
    first, second = modes({1: 9.0, 2: 39.0}), modes({1: 10.0, 2: 40.0}, 16)
    assert distance(system, first, second) == pytest.approx(0.1)


def test_the_course_is_told_in_words() -> None:
    slow = refine(Invented(error=lambda n: n**-2.0), SYSTEM, 1e-4, LONG)
    assert slow.summary == "from resolution 64 to 128 with order 2.0"
    fast = refine(Invented(error=lambda n: 2.0**-n), SYSTEM, 1e-9, LONG)
    assert fast.summary == "from resolution 32 to 64"
    assert refine(Invented(), SYSTEM, 1e-9, LONG, (8,)).summary == "at resolution 8 alone"


def test_a_solution_with_no_more_unknowns_than_the_one_before_is_no_evidence() -> None:
    found = refine(Watched(error=lambda n: 1e-3, most=32), SYSTEM, 1e-6, LONG, (32, 64, 128))
    assert not found.converged
    assert found.attempts[-1].failure == "no finer than before, with 32 unknowns"


def costly(
    limit: float, cost: Callable[[int], float], resolutions: tuple[int, ...], **more: Any
) -> RefinementStudy:
    """A method that takes `cost(resolution)` seconds of a clock; after its deadline it stops."""
    clock = Clock()

    def wait(resolution: int, _: float, deadline: Deadline) -> None:
        clock.now += min(cost(resolution), deadline.remaining_s + 0.1)

    return refine(Watched(wait, **more), SYSTEM, 1e-12, Deadline.within(limit, clock), resolutions)


def test_a_resolution_that_would_not_be_done_in_time_is_not_begun() -> None:
    found = costly(30, lambda n: (n / 64) ** 1.5, (8, 64, 1024))
    assert [attempt.resolution for attempt in found.attempts] == [8, 64, 1024]
    assert [attempt.failure for attempt in found.attempts] == [
        "",
        "",
        "not tried: would take about 64 s of the 29 s that are left",
    ]
    assert found.solution.resolution == 64
    assert found.attempts[-1].seconds == 0


def test_the_cost_of_a_resolution_follows_from_the_two_before() -> None:
    tried = [ResolutionAttempt("fd", 10, 1.0, 10), ResolutionAttempt("fd", 20, 4.0, 20, 0.1)]
    assert predict_seconds([], 40, 1) == 0
    assert predict_seconds(tried[:1], 20, 1) == pytest.approx(2**1.5)
    assert predict_seconds(tried, 40, 1) == pytest.approx(16)
    failed = ResolutionAttempt("fd", 30, 0.01, failure="no convergence")
    assert predict_seconds([*tried, failed], 40, 1) == pytest.approx(16)


@pytest.mark.parametrize(("later", "power"), [(1.01, 1.5), (1000.0, 3.0), (0.0, 1.5)])
@pytest.mark.parametrize("dimension", [1, 3])
def test_the_cost_grows_at_least_like_sparse_and_at_most_like_dense_factorisations(
    later: float, power: float, dimension: int
) -> None:
    tried = [ResolutionAttempt("fd", 10, 1.0, 10), ResolutionAttempt("fd", 20, later**dimension, 20, 0.1)]
    assert predict_seconds(tried, 40, dimension) == pytest.approx(later**dimension * 2 ** (power * dimension))


def test_one_solution_that_cannot_be_refined_in_time_is_compared_with_a_coarser_one() -> None:
    found = costly(10, lambda n: 4 * (n / 60) ** 2, (60, 120), error=lambda n: n**-2.0)
    assert [attempt.resolution for attempt in found.attempts] == [40, 60, 120]
    assert found.solution.resolution == 60
    assert found.error == found.attempts[1].difference
    assert found.error == pytest.approx(40**-2.0 - 60**-2.0, rel=0.5)
    assert found.attempts[0].difference is None
    assert found.attempts[2].failure.startswith("not tried")
    assert found.summary == "from resolution 40 to 60"


def test_a_coarser_solution_that_is_no_coarser_does_not_count() -> None:
    found = costly(10, lambda n: 4 * (n / 60) ** 2, (60, 120), most=30)
    assert [attempt.resolution for attempt in found.attempts] == [60, 120]
    assert found.error == math.inf


def test_without_time_for_a_coarser_one_either_the_error_stays_unknown() -> None:
    found = costly(10, lambda n: 4.9 + n / 1000, (60, 120))
    assert [attempt.resolution for attempt in found.attempts] == [40, 60, 120]
    late = costly(10, lambda n: 5.0 + n / 1000, (60, 120))
    assert [attempt.resolution for attempt in late.attempts] == [60]
    assert late.attempts[0].failure == "the limit of time was reached"


def test_the_first_attempt_leaves_time_for_another_and_later_ones_may_take_all_of_it() -> None:
    limits: list[float] = []
    method = Watched(lambda _, __, deadline: limits.append(deadline.remaining_s))
    refine(method, SYSTEM, 1e-12, Deadline.within(80, Clock()), (8, 16, 32))
    assert limits == [40, 80, 80]


def test_nothing_finer_is_tried_than_what_is_foreseen_to_take_too_long() -> None:
    method = Watched(lambda resolution, _, deadline: deadline.check(needed=resolution))
    found = refine(method, SYSTEM, 1e-12, Deadline.within(100, Clock()), (40, 90, 120, 160))
    assert [attempt.resolution for attempt in found.attempts] == [40, 90, 120]
    told = "its next step would take about 120 s of the 100 s that are left"
    assert found.attempts[-1].failure == told


@pytest.mark.parametrize(("clock", "all_tried"), [("cpu", True), ("wall", False)])
def test_seconds_of_the_processor_do_not_pass_while_others_have_it(clock: ClockName, all_tried: bool) -> None:
    waiting = Watched(before=lambda *_: time.sleep(0.3), error=lambda n: n**-1.0)
    options = SolveOptions(time_limit=1.0, clock=clock, accuracy=1e-6, cross_check=False)
    found = solve_problem(problem_of(HEAT), options, methods=[waiting])
    solved = [each for each in found.trials[0].refinement.attempts if not each.failure]
    assert (len(solved) == len(waiting.sizes)) == all_tried
