"""Solver programs as solutions: run in the sandbox on the stated state, interpolated, checked, and refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from sharp.agent.programs import whole_toolkit
from sharp.agent.programs.grid_solver import GridSolverSolution, Interpolant, axes_of
from sharp.agent.synthesis import SolverProgram, SynthesisArgs, SynthesisUsage
from sharp.agent.toolkit import standard_toolkit
from sharp.agent.tools import ToolContext, ToolError, ToolResult
from sharp.evaluation.protocol import CandidateFailure, Evaluation, Scores
from sharp.problems import parse_problem
from sharp.problems.problem import Problem

DECAY = """
import numpy as np

def solver(u0_batch, t_coordinate, a):
    factors = np.exp(-a * np.pi**2 * (np.asarray(t_coordinate) - t_coordinate[0]))
    return u0_batch[:, None, :] * factors[None, :, None]
"""
ROD: dict[str, Any] = {
    "pde_spec": 1,
    "id": "rod",
    "title": "A cooling rod",
    "coordinates": {"space": ["x"], "time": "t"},
    "fields": ["u"],
    "parameters": {"a": "0.1"},
    "equations": ["u_t = a*u_xx"],
    "domain": {"type": "box", "bounds": {"x": ["0", "1"]}},
    "time": ["0.5", "2"],
    "initial": {"u": "sin(pi*x)"},
    "boundary": [{"type": "dirichlet", "where": "all", "field": "u", "value": "0"}],
    "reference": {"kind": "exact", "value": {"u": "exp(-a*pi**2*(t - 0.5))*sin(pi*x)"}},
    "accuracy": 1e-3,
}


def problem_of(**changes: Any) -> Problem:
    return parse_problem(yaml.safe_dump({**ROD, **changes}), "rod.yaml")


def evaluation(error: float | None) -> Evaluation:
    """The outcome of a run with an error, or of one that failed."""
    failure = CandidateFailure("timeout", "too slow") if error is None else None
    scores = None if error is None else Scores(2 * error, (2 * error,), error, error, (error,), None)
    return Evaluation(failure, scores, 1.0, 1.0, 1.0, None, None, "float64", "", "", {})


def program(code: str = DECAY, error: float | None = 1e-5) -> SolverProgram:
    found = evaluation(error)
    return SolverProgram(problem_of(), Path("course/synthesis-1"), "c001", code, found, found, 4, 3)


class Ready:
    """Gives a program that is there already."""

    found: SolverProgram = program()

    async def solver(self, problem: Problem, effort: SynthesisArgs) -> SolverProgram:
        del effort
        return replace(self.found, problem=problem)

    def spending(self) -> SynthesisUsage:
        return SynthesisUsage()


TOOLS = whole_toolkit(Ready())


def use(tool: str, **inputs: Any) -> ToolResult:
    found = TOOLS[tool].run(ToolContext(TOOLS[tool].checked({}), inputs, 60.0))
    assert isinstance(found, ToolResult)
    return found


def test_the_standard_tools_are_those_without_a_commission() -> None:
    assert set(TOOLS) - set(standard_toolkit()) == {"synthesize_solver", "run_solver"}


def test_a_program_gives_the_solution_of_the_stated_problem_and_of_one_that_starts_otherwise() -> None:
    for size in (1, 3):
        problem = problem_of(initial={"u": f"{size}*sin(pi*x)"}, reference={"kind": "data"})
        outcome = use("run_solver", problem=problem, solver=program())
        solution = outcome.outputs["solution"].solution
        x, t = np.linspace(0, 1, 37), np.array([2.0, 0.5, 1.1])
        exact = size * np.exp(-0.1 * np.pi**2 * (t[:, None] - 0.5)) * np.sin(np.pi * x)
        assert np.allclose(solution.evaluate(x[:, None], t)[0], exact, atol=1e-7)
        assert outcome.summary["ranges"]["u"][1] == size


def test_the_estimated_error_is_that_on_test_data_against_the_truth() -> None:
    found = use("run_solver", problem=problem_of(), solver=program(error=1e-5)).outputs["solution"]
    assert (found.error, found.converged) == (1e-5, True)
    found = use("run_solver", problem=problem_of(), solver=program(error=1e-2)).outputs["solution"]
    assert (found.error, found.converged) == (1e-2, False)


def test_values_are_compared_with_other_methods_and_exact_solutions_alone() -> None:
    problem = problem_of()
    solution = use("run_solver", problem=problem, solver=program()).outputs["solution"]
    for tool in ("cross_check", "compare_with_reference"):
        findings = use(tool, problem=problem, solution=solution).findings
        assert findings
        assert all(finding.passed for finding in findings), findings
    for tool in ("check_residual", "check_conditions"):
        with pytest.raises(ToolError, match=r"known on a grid only.*expected cross_check"):
            use(tool, problem=problem, solution=solution)


def test_a_wrong_program_does_not_pass_the_comparison() -> None:
    problem = problem_of()
    wrong = program(DECAY.replace("np.pi**2", "np.pi"))
    solution = use("run_solver", problem=problem, solver=wrong).outputs["solution"]
    assert not all(found.passed for found in use("cross_check", problem=problem, solution=solution).findings)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"parameters": {"a": "0.2"}},
            "with other parameters; expected one that differs in the initial state",
        ),
        ({"equations": ["u_t = a*u_xx + u"], "accuracy": 1e-4}, "with other accuracy, equations"),
    ],
)
def test_a_program_does_not_solve_other_problems(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ToolError, match=says):
        use("run_solver", problem=problem_of(**changes), solver=program())


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (DECAY.replace("u0_batch[:", "np.nan*u0_batch[:"), "1111 values are NaN or infinite"),
        (DECAY.replace("import numpy as np", "import nothing_of_the_kind"), "nothing_of_the_kind"),
        (DECAY.replace("[:, None, :] *", "[:, None, 1:] *"), "shape"),
    ],
)
def test_a_program_that_fails_is_the_tools_failure(code: str, says: str) -> None:
    with pytest.raises(ToolError, match=f"run_solver: .*{says}"):
        use("run_solver", problem=problem_of(), solver=program(code))


def test_a_family_of_random_states_states_no_problem() -> None:
    family = problem_of(
        initial={"u": {"family": "sine-sums"}},
        boundary=[{"type": "periodic", "axis": "x"}],
        reference={"kind": "data"},
    )
    with pytest.raises(ToolError, match="expected an expression for 'u', found a family of random functions"):
        use("run_solver", problem=family, solver=replace(program(), problem=family))


@pytest.mark.parametrize(
    ("error", "value", "passed"), [(1e-4, 1e-4, True), (2e-3, 2e-3, False), (None, None, False)]
)
def test_the_error_on_test_data_stands_beside_the_accuracy_asked_for(
    monkeypatch: pytest.MonkeyPatch, error: float | None, value: float | None, passed: bool
) -> None:
    monkeypatch.setattr(Ready, "found", program(error=error))
    tool = TOOLS["synthesize_solver"]
    outcome = asyncio.run(tool.run(ToolContext(tool.checked({}), {"problem": problem_of()}, 1.0)))  # type: ignore[arg-type]
    (finding,) = outcome.findings
    assert (finding.value, finding.limit, finding.passed) == (value, 1e-3, passed)
    assert outcome.summary["file"] == "synthesis-1/solver/solver.py"
    assert outcome.summary["test"] == (
        {"failed": "timeout"}
        if error is None
        else {"error against data": 2 * error, "error against reference": error}
    )


@pytest.mark.parametrize(
    "size", [{"candidates": 1}, {"rounds": 0}, {"validation": 1000}, {"test": 1}, {"wall_s": 3}]
)
def test_sizes_have_bounds(size: dict[str, int]) -> None:
    with pytest.raises(ToolError, match=f"synthesize_solver: {next(iter(size))}: "):
        TOOLS["synthesize_solver"].checked(size)


@pytest.mark.parametrize("grid", ["cells", "nodes"])
def test_between_grid_points_values_are_those_of_smooth_functions_also_across_a_period(grid: str) -> None:
    plane = problem_of(
        coordinates={"space": ["x", "y"], "time": "t"},
        equations=["u_t = a*lap(u)"],
        domain={"type": "box", "bounds": {"x": ["0", "2"], "y": ["0", "1"]}},
        initial={"u": "0"},
        boundary=[
            {"type": "periodic", "axis": "x"},
            {"type": "dirichlet", "where": "y = 0", "field": "u", "value": "0"},
            {"type": "dirichlet", "where": "y = 1", "field": "u", "value": "0"},
        ],
        reference={"kind": "data"},
        outputs={"grid": grid, "points": {"x": 40, "y": 30}, "times": 2},
    )

    def wave(x: Any, y: Any) -> Any:
        return np.sin(np.pi * x + 1) * np.exp(y)

    values = wave(*np.meshgrid(*axes_of(plane), indexing="ij"))
    between = Interpolant.of(plane, np.stack([values, 2 * values])[None])
    x, y = np.random.default_rng(1).uniform(size=(2, 300)) * [[2], [1]]
    x[:3], y[:2] = [0, 2, 1e-3], [0, 1]
    found = between(np.stack([x, y], axis=1))[0]
    assert np.allclose(found, [wave(x, y), 2 * wave(x, y)], atol=2e-5)
    assert np.array_equal(between(np.array([[0, 0.3]])), between(np.array([[2, 0.3]])))


def test_a_program_runs_once_for_the_same_times() -> None:
    counted = GridSolverSolution(problem_of(), DECAY)
    counted.evaluate(np.array([[0.2]]), np.array([0.7]))
    counted.evaluate(np.array([[0.3], [0.4]]), np.array([0.7, 0.7]))
    assert len(counted._known) == 1
    assert len(counted.output_times) == 11
