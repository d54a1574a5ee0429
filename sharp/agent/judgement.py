"""The judgement on a session: the same checks, second method and quantities as for a specification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sharp.agent.sessions import SessionResult
from sharp.agent.toolkit.solver_tools import GridSolution
from sharp.errors import SpecificationError
from sharp.problems import Problem
from sharp.solvers import (
    MethodResult,
    RefinementStudy,
    Solution,
    SolveOptions,
    Verdict,
    axis_points,
    on_grid,
    sample_times,
    solve_problem,
    verify_solution,
    verify_study,
)


def judged(
    finished: SessionResult,
    options: SolveOptions | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> SessionResult:
    """Return a session with the verified answer to the problem that was understood, where it has solved one.

    A solution that is not verified is worked on by all methods, as that of a specification would be.
    """
    problem, study = finished.problem, finished.solution
    if finished.outcome.ending != "solved" or problem is None or study is None or study.solution is None:
        return finished
    options = options or SolveOptions()
    if isinstance(study.solution, GridSolution):
        return replace(finished, answer=_on_grid(problem, study, options, say))
    say("verification of the team's solution")
    answer = verify_study(problem, study, options, say)
    if not answer.verdict.verified:
        say("the team's solution is not verified: all methods are tried")
        other = solve_problem(problem, options, say)
        answer = _better(answer, other)
    return replace(finished, answer=answer)


def _better(first: Solution, second: Solution) -> Solution:
    ranks = ("verified", "inconclusive", "failed")
    if second.verdict.status not in ranks:
        return first
    return min(first, second, key=lambda each: (ranks.index(each.verdict.status), each.error))


def _on_grid(
    problem: Problem, study: RefinementStudy, options: SolveOptions, say: Callable[[str], None]
) -> Solution:
    """Judge what is known on a grid by its own points: differences of what is interpolated would measure that."""
    assert study.solution is not None, "a solver program gave a solution"
    axes = tuple(axis_points(problem, name, count) for name, count in problem.grid.points.items())
    times = sample_times(problem, np.linspace(0, 1, problem.grid.times or 1))
    values = on_grid(problem, study.solution, axes, times)
    late = {str(problem.time_name): times} if problem.time is not None else {}
    fields = dict(zip(problem.fields, values if late else values[:, 0], strict=True))
    arrays = {**dict(zip(problem.space, axes, strict=True)), **late, **fields}
    accuracy = options.accuracy or problem.specification.accuracy
    try:
        verdict = verify_solution(problem, arrays, accuracy, options.time_limit, say)
    except SpecificationError as error:
        verdict = Verdict("inconclusive", f"no method here can check the program's solution: {error}")
    return Solution(problem, accuracy, verdict, trial=MethodResult(study))
