"""Programs of a model in the sandbox: what they return is a solution like any other, and what goes wrong is said."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sharp.agent.programs.generated import GeneratedSolution, ProgramFailed, run_program
from sharp.agent.tools import ToolContext, ToolError, ToolResult
from sharp.problems.cases import load_case
from sharp.problems.numpy_printer import Printer
from sharp.problems.problem import Problem
from sharp.solvers.exact import exact_errors
from sharp.solvers.verification import RESIDUAL, CheckTolerances, verdict_of, verify

HELPER = "return helper(points)\ndef helper(x):\n    return x[:, 7]"
DEF = "import numpy as np\ndef solve(points, times):\n    "
ONES = "np.ones((1, max(1, len(times)), len(points)))"
STATED = {"bounds": [[0, 1]], "time": [0, 2], "fields": ["u"]}
POINTS = np.array([[0.25], [0.5], [0.75]])


def tried(code: str, wall_s: float = 60.0, **stated: object) -> ToolResult:
    parameters = run_program.checked({**STATED, **stated, "code": code})
    return run_program.run(ToolContext(parameters, {}, wall_s))


def test_a_program_that_runs_is_a_solution_whose_error_is_not_known() -> None:
    found = tried(f"{DEF}return {ONES}").outputs["solution"]
    assert (found.method, found.error, found.converged) == ("program", math.inf, False)
    assert found.solution.at(POINTS, 0.3) == pytest.approx(np.ones((1, 3)))


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        (f"{DEF}return {ONES}[0]", "shape", r"values has shape \(3, 7\), expected \(1, 3, 7\)"),
        (f"{DEF}return None", "signature", "returned None"),
        (f"{DEF}return 1j * {ONES}", "shape", "expected a real"),
        (f"{DEF}return np.where(points[:, 0] > 0.9, np.nan, {ONES})", "non_finite", r"the first is u at the point"),
        (f"{DEF}{HELPER}", "exception", r"line 5, in helper\n    return"),
        (f"import torch\n{DEF}return {ONES}", "import", "It imports torch; expected numpy and scipy"),
        (f"import importlib\nimportlib.import_module('nowhere')\n{DEF}return {ONES}", "import", "ModuleNotFoundError"),
        (f"{DEF}return {ONES}[", "syntax", "was never closed in line 3"),
        (f"{DEF}return np.ones((10**5, 10**5)).sum() * {ONES}", "memory", "Unable to allocate"),
        ("def solve(points):\n    return points", "signature", r"called as solve\(points, times\)"),
        (f"{DEF}while True: print('x' * 10**6)", "sandbox_violation", "printing too much"),
    ],
)  # fmt: skip
def test_what_a_program_does_wrong_is_said_with_its_own_lines(code: str, kind: str, says: str) -> None:
    with pytest.raises(ProgramFailed, match=says) as caught:
        tried(code)
    assert caught.value.kind == kind


def test_an_endless_loop_is_stopped_at_the_limit() -> None:
    with pytest.raises(ProgramFailed, match="stopped at the limit of 1 s, in the solver") as caught:
        tried(f"{DEF}while True: pass", wall_s=1.0)
    assert caught.value.kind == "timeout"


def test_a_program_may_print_a_lot() -> None:
    assert tried(f"{DEF}print('x' * 10**7)\n    return {ONES}").outputs["solution"].solution is not None


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"bounds": [[1, 0]]}, "expected ascending ends, found 1 and 0"),
        ({"bounds": [[0, "2*pi"]]}, "bounds.0.1"),
        ({"bounds": []}, "bounds"),
        ({"inside": [[0.5, 0.5]]}, "inside: expected points of 1 coordinates"),
        ({"fields": []}, "fields"),
    ],
)
def test_what_is_stated_of_the_problem_has_to_make_sense(stated: dict[str, object], says: str) -> None:
    with pytest.raises(ToolError, match=says):
        tried(f"{DEF}return {ONES}", **stated)


def test_a_domain_that_is_no_box_is_tried_at_points_inside() -> None:
    disk = {"bounds": [[-1, 1], [-1, 1]], "time": None}
    code = f"{DEF}return np.sqrt(0.3 - (points**2).sum(axis=1))[None, None]"
    with pytest.raises(ProgramFailed, match="NaN"):
        tried(code, **disk)
    found = tried(code, **disk, inside=[[0.0, 0.0], [0.1, -0.2]]).outputs["solution"].solution
    assert found.at(np.array([[0.1, 0.2]])) == pytest.approx(np.sqrt([[0.25]]))


def test_times_are_passed_ascending_and_once_each_and_come_back_as_asked() -> None:
    code = f"{DEF}assert np.all(np.diff(times) > 0)\n    return (points[:, 0] + 10 * times[:, None])[None]"
    found = GeneratedSolution(code, 1, False, 60.0).evaluate(POINTS, np.array([2.0, 0.5, 2.0]))
    assert found == pytest.approx((POINTS[:, 0] + 10 * np.array([[2.0], [0.5], [2.0]]))[None])


def test_a_steady_program_is_given_no_times() -> None:
    code = f"{DEF}return np.full((1, 1, len(points)), len(times))"
    assert GeneratedSolution(code, 1, True, 60.0).evaluate(POINTS, np.zeros(1)) == pytest.approx(
        np.zeros((1, 1, 3))
    )


def test_the_same_points_and_times_are_not_computed_again() -> None:
    code = f"import time\n{DEF}return time.perf_counter_ns() * {ONES}"
    solution = GeneratedSolution(code, 1, False, 60.0)
    first = solution.evaluate(POINTS, np.array([0.0, 1.0]))
    np.testing.assert_array_equal(solution.evaluate(POINTS, np.array([1.0, 0.0])), first)
    assert np.all(solution.evaluate(POINTS + 0.1, np.array([0.0, 1.0])) != first)


def test_values_that_are_not_finite_are_passed_on_to_the_checks() -> None:
    code = f"{DEF}return np.where(points[:, 0] == 0.5, np.nan, {ONES})"
    assert np.isnan(GeneratedSolution(code, 1, False, 60.0).evaluate(POINTS, np.zeros(1))).sum() == 1


def test_what_fails_later_than_at_the_trial_fails_with_the_programs_lines() -> None:
    code = f"{DEF}return [1.0, 2.0][int(2 * points[0, 0])] * {ONES}"
    solution = tried(code).outputs["solution"].solution
    with pytest.raises(
        ProgramFailed, match=r"IndexError: list index out of range\nFile \"solver.py\", line 3, in solve"
    ):
        solution.evaluate(np.array([[1.0]]), np.zeros(1))


def closed_form(problem: Problem, factor: float = 1.0) -> str:
    """Return a program that knows the exact solution, with its times off by a factor."""
    names = {
        name: name for name in (*problem.space, *problem.fields, *problem.parameters, str(problem.time_name))
    }
    exact = problem.specification.reference.value[problem.fields[0]]
    lines = [f"{name} = {value!r}" for name, value in problem.parameters.items()]
    lines += [f"{problem.space[0]} = points[:, 0]", f"{problem.time_name} = {factor} * times[:, None]"]
    return DEF + "\n    ".join([*lines, f"return np.array([{Printer(names, {}).code(problem.tree(exact))}])"])


def test_checks_tell_a_right_program_from_one_that_merely_runs() -> None:
    problem = load_case("heat-rod-two-ends").problem
    stated = {"bounds": [[0, 0.4]], "time": [0, 3600], "fields": ["u"]}
    right, wrong = (
        tried(closed_form(problem, factor), **stated).outputs["solution"] for factor in (1.0, 1.3)
    )
    limits = CheckTolerances(problem.specification.accuracy, rough=False)
    measured = [check for check in verify(problem, right, limits) if check.name != "refinement"]
    assert verdict_of(measured) == "verified"
    errors = exact_errors(problem, right.solution)
    assert errors is not None
    assert errors.l2 < 1e-14
    failed = {
        check.name for check in verify(problem, wrong, limits, compare=False) if check.verdict == "failed"
    }
    assert RESIDUAL in failed
