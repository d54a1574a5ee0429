"""Tools that have a solver program written by PDE-SHARP, and solve a problem with it."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from sharp.agent.programs.grid_solver import GridSolverSolution
from sharp.agent.synthesis import SolverProgram, SynthesisArgs, SynthesisService
from sharp.agent.toolkit.solver_tools import SOLUTION, SOUND, GridSolution, NoArgs
from sharp.agent.tools import CheckResult, Tool, ToolContext, ToolError, ToolPort, ToolResult
from sharp.problems.problem import Problem
from sharp.solvers.refine import RefinementStudy, ResolutionAttempt

METHOD = "solver program"
SOLVER = ToolPort("solver", "solver program", "the program, with its errors on validation and test data")

# What may differ between the problem that a program was written for and one that it solves.
_FREE = {"id", "title", "statement", "statements", "notes", "tags", "initial", "reference", "published"}


def synthesis_tools(commission: SynthesisService) -> tuple[Tool, ...]:
    """Return the tools for a course that says where programs are written, and by whom."""

    async def synthesized(call: ToolContext) -> ToolResult:
        return _told(await commission.solver(call.inputs["problem"], call.parameters))

    return (
        Tool(
            "synthesize_solver",
            "solver",
            "Has models write, judge and refine solver programs for a problem, scores them on data, and gives the "
            "best, which takes any initial state.",
            SynthesisArgs,
            (SOUND,),
            (SOLVER,),
            synthesized,
            cost="hours",
            limits="For problems that depend on time, on a box, with an expression as initial state: data can be made "
            "for these. It asks models many times: take it where a solver program is asked for, or where other tools "
            "cannot solve the problem. run_solver then solves the problem with the program.",
            examples=({}, {"candidates": 16, "rounds": 4}),
        ),
        RUN_SOLVER,
    )


def _told(found: SolverProgram) -> ToolResult:
    # Paths in prompts are those within the course: the same wherever it is kept.
    file = found.path.relative_to(found.run.parent).as_posix()
    summary = {key: value for key, value in found.to_json().items() if key not in ("path", "report")}
    return ToolResult({"solver": found}, {**summary, "file": file}, (_finding(found),))


def _rounded(error: float) -> float:
    return float(f"{error:.3g}")


def _finding(found: SolverProgram) -> CheckResult:
    accuracy = found.problem.specification.accuracy
    if math.isinf(found.error):
        return CheckResult("error on test data", False, "the program failed on test data", None, accuracy)
    about = f"mean relative error {found.error:.1e} on test data where {accuracy:.0e} was asked for"
    return CheckResult("error on test data", found.error <= accuracy, about, found.error, accuracy)


def _run(call: ToolContext) -> ToolResult:
    problem, solver = call.inputs["problem"], call.inputs["solver"]
    _check_fits(problem, solver)
    if problem.time is None:
        raise ToolError(
            "run_solver: the problem does not depend on time, and so states no initial state to start from"
        )
    program, began = GridSolverSolution(problem, solver.code), time.perf_counter()
    values = program.at(program.output_times).values
    points, unknowns = max(problem.grid.points.values()), values[:, 0].size
    attempt = ResolutionAttempt(METHOD, points, time.perf_counter() - began, unknowns)
    solution = GridSolution(METHOD, points, program.evaluate, unknowns)
    agreed = solver.error <= problem.specification.accuracy
    found = RefinementStudy(METHOD, (attempt,), solution, solver.error, None, agreed)
    return ToolResult({"solution": found}, _ranges(problem, values))


def _check_fits(problem: Problem, solver: SolverProgram) -> None:
    """Raise `ToolError` where a program was written for a problem with other equations, conditions or outputs."""
    ours, theirs = (
        each.specification.model_dump(mode="json", exclude=_FREE) for each in (problem, solver.problem)
    )
    other = sorted(key for key in ours if ours[key] != theirs[key])
    if other:
        raise ToolError(
            f"run_solver: the program was written for a problem with other {', '.join(other)}; expected one that "
            "differs in the initial state alone"
        )


def _ranges(problem: Problem, values: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return what is told of a solution: its grid, and between which values each field lies."""
    return {
        "method": METHOD,
        "grid": dict(problem.grid.points),
        "output times": problem.grid.times,
        "ranges": {
            name: [_rounded(float(found.min())), _rounded(float(found.max()))]
            for name, found in zip(problem.fields, values, strict=True)
        },
    }


RUN_SOLVER = Tool(
    "run_solver",
    "solver",
    "Runs a solver program, in the sandbox, on the initial state of the problem, and gives the solution on its grid.",
    NoArgs,
    (SOUND, SOLVER),
    (SOLUTION,),
    _run,
    cost="minutes",
    limits="The problem is the one that the program was written for, or differs in the initial state alone. Values "
    "between grid points are interpolated: compare_with_reference and cross_check take the solution, check_residual "
    "and check_conditions do not.",
    examples=({},),
)
