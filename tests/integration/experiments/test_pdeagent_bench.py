"""`sharp bench pdeagent`: cases solved and held against references that the solver does not see."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from sharp.cli.bench import bench
from sharp.errors import ConfigurationError
from sharp.experiments.agent_benchmark.pde_agent_bench import solving
from sharp.experiments.agent_benchmark.pde_agent_bench.published import published_rates
from sharp.experiments.agent_benchmark.pde_agent_bench.report import (
    build_report,
    publish_cases,
    rows_frame,
    summary_of,
)
from sharp.experiments.agent_benchmark.pde_agent_bench.results import (
    CaseResult,
    CaseSettings,
    CaseTask,
    CaseWriter,
    log_file,
    read_record,
)
from sharp.experiments.agent_benchmark.pde_agent_bench.solving import list_tasks, solve_case
from sharp.problems import Problem
from sharp.solvers import Solution, SolveOptions, solve_problem

FILE = Path(__file__).parents[2] / "helpers" / "experiments" / "pdeagent_cases.jsonl"
TASKS = {task.case: task for task in list_tasks(FILE, CaseSettings())}


def sabotaged(problem: Problem, options: SolveOptions) -> Solution:
    """A solver whose field is off by a tenth, and which swears by it."""
    found = solve_problem(problem, replace(options, cross_check=False))
    assert found.trial is not None
    assert found.discrete is not None
    exact = found.discrete
    wrong = replace(exact, evaluate=lambda points, times: 1.1 * np.asarray(exact.evaluate(points, times)))
    trial = replace(found.trial, refinement=replace(found.trial.refinement, solution=wrong))
    return replace(found, trial=trial)


def turned(problem: Problem, options: SolveOptions) -> Solution:
    """A solver of vectors with the right magnitude in the opposite direction."""
    found = solve_problem(problem, replace(options, cross_check=False))
    assert found.trial is not None
    assert found.discrete is not None
    exact = found.discrete
    wrong = replace(exact, evaluate=lambda points, times: -np.asarray(exact.evaluate(points, times)))
    trial = replace(found.trial, refinement=replace(found.trial.refinement, solution=wrong))
    return replace(found, trial=trial)


@pytest.mark.parametrize("name", ["own_poisson", "own_disk", "own_elastic", "own_heat"])
def test_a_case_is_solved_and_held_against_its_own_solution(name: str) -> None:
    row = solve_case(TASKS[name])
    assert (row.outcome, row.reference) == ("verified", "exact")
    assert row.error is not None
    assert row.error < 1e-6
    assert row.field_error is not None
    assert row.field_error < 1e-6
    assert row.passed
    assert not row.wrong
    assert row.seconds is not None
    assert row.seconds > 0


def test_a_case_without_a_solution_of_its_own_passes_by_its_verdict() -> None:
    row = solve_case(TASKS["own_poisson_load"])
    assert (row.outcome, row.reference, row.error, row.passed) == ("verified", "none", None, True)
    assert not replace(row, outcome="inconclusive").passed


def test_a_case_that_is_not_well_stated_is_refused_with_a_sentence() -> None:
    row = solve_case(TASKS["own_advection"])
    assert row.outcome == "refused"
    assert row.reason.startswith("pure advection: where it flows in")
    assert not row.passed


def test_the_solver_never_sees_the_reference() -> None:
    seen: list[Problem] = []

    def looking(problem: Problem, options: SolveOptions) -> Solution:
        seen.append(problem)
        assert not options.compare
        return solve_problem(problem, options)

    solve_case(TASKS["own_disk"], looking)
    (problem,) = seen
    assert problem.specification.reference.value == {}


@pytest.mark.parametrize(("solver", "name"), [(sabotaged, "own_disk"), (turned, "own_elastic")])
def test_a_wrong_field_that_is_called_verified_is_counted(solver: solving.Solver, name: str) -> None:
    row = solve_case(TASKS[name], solver)
    assert row.outcome == "verified"
    assert row.wrong
    assert summary_of([row])["wrong_verified"] == 1
    report = build_report([TASKS[name]], [row])
    assert report.notes[0].text.startswith(f"Wrongly verified: {name}")
    assert bool(rows_frame([row])["wrong"].iloc[0])


def test_a_solver_that_fails_ends_no_other_case() -> None:
    def broken(problem: Problem, options: SolveOptions) -> Solution:
        raise ZeroDivisionError("on purpose")

    row = solve_case(TASKS["own_disk"], broken)
    assert (row.outcome, row.reason) == ("crashed", "ZeroDivisionError: on purpose")


def test_rows_survive_the_log(tmp_path: Path) -> None:
    row = CaseResult("k", "a", "poisson", outcome="inconclusive", estimate=float("inf"), error=0.5)
    with CaseWriter(tmp_path) as writer:
        writer.add(row)
        writer.add(CaseResult("l", "b", "poisson", reason="crashed"))
    record = read_record(tmp_path)
    assert record.rows["k"] == row
    tasks = [CaseTask("", name, "poisson", CaseSettings()) for name in "ab"]
    left = record.left(tasks)
    assert left == tasks
    assert [record.rows["l"].outcome] == ["crashed"]


def invoke(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(
        bench, ["pdeagent", str(FILE), "--dir", str(folder), "--workers", "1", *arguments]
    )


def test_the_command_writes_rows_and_tables_and_takes_up_where_it_ended(tmp_path: Path) -> None:
    first = invoke(tmp_path, "--family", "poisson", "--limit", "1", "--json")
    assert first.exit_code == 0, first.output
    assert json.loads(first.stdout)["cases"] == 1
    kept = log_file(tmp_path).read_bytes()
    again = invoke(tmp_path, "--family", "poisson", "--family", "convection_diffusion", "--json")
    assert again.exit_code == 0, again.output
    assert log_file(tmp_path).read_bytes().startswith(kept)
    told = (re.sub(r", [^]]* left]", "]", line) for line in again.stderr.splitlines())
    assert [line.split(":")[0] for line in told] == [
        "[1/2] own_poisson_load",
        "[2/2] own_advection",
    ]
    facts = json.loads(again.stdout)
    assert (facts["cases"], facts["imported"], facts["passed"], facts["wrong"]) == (3, 2, 2, [])
    assert facts["families"]["poisson"]["passed"] == 2
    page = (tmp_path / "pdeagent.md").read_text()
    assert "Gemini 3.1 Pro" in page
    assert "prescribed" in page
    assert (tmp_path / "cases.csv").read_text().count("\n") == 4


def test_a_wrong_verdict_comes_first_and_is_no_success(tmp_path: Path) -> None:
    task = TASKS["own_disk"]
    with CaseWriter(tmp_path) as writer:
        writer.add(solve_case(task, sabotaged))
    done = invoke(tmp_path, "--family", "helmholtz", "--report-only")
    assert done.exit_code == 3
    assert done.output.splitlines()[0] == "1 verified and wrong: own_disk"
    publish_cases(tmp_path, [task], list(read_record(tmp_path).rows.values()))
    assert "Wrongly verified: own_disk" in (tmp_path / "pdeagent.md").read_text()


def test_a_family_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigurationError, match="unknown family 'poison'; did you mean 'poisson'"):
        list_tasks(FILE, CaseSettings(), ["poison"])


def test_published_rates_have_sources() -> None:
    rates = published_rates()
    assert [rate.share for rate in rates] == [0.545, 0.541, 0.478, 0.46, 0.447]
    assert all("arXiv" in rate.source for rate in rates)
