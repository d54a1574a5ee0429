"""The cases of a file, solved by classical methods without any model, and held against their own references."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from sharp.error_messages import valid_values
from sharp.errors import ConfigurationError, InputError
from sharp.experiments.agent_benchmark.pde_agent_bench.cases import UnsupportedCase, read_case, read_lines
from sharp.experiments.agent_benchmark.pde_agent_bench.importer import RejectedCase, import_case
from sharp.experiments.agent_benchmark.pde_agent_bench.reference import grid_error, without_reference
from sharp.experiments.agent_benchmark.pde_agent_bench.results import (
    CaseResult,
    CaseSettings,
    CaseTask,
    CaseWriter,
)
from sharp.experiments.agent_benchmark.process_pool import WorkerDied, map_unordered
from sharp.problems import Problem
from sharp.reference import ProgressCallback
from sharp.solvers import Solution, SolveOptions, solve_problem

AT_WORK = "cases are solved"
Solver = Callable[[Problem, SolveOptions], Solution]


def list_tasks(
    path: Path, settings: CaseSettings, families: Collection[str] = (), limit: int | None = None
) -> list[CaseTask]:
    """Return the cases of a file, in its order, of some families or all, and at most so many.

    Raises `DataError` where the file cannot be read, and `ConfigurationError` for a family of which it has no case.
    """
    found = [CaseTask(line, *_named(line, number), settings) for number, line in read_lines(path)]
    known = {task.family for task in found}
    for family in families:
        if family not in known:
            raise ConfigurationError(f"unknown family '{family}'; {valid_values('families', family, known)}")
    return [task for task in found if not families or task.family in families][:limit]


def _named(line: str, number: int) -> tuple[str, str]:
    """Return id and family of a case, as far as its line says them."""
    try:
        case = json.loads(line)
        return str(case["id"]), str(case["oracle_config"]["pde"]["type"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"line {number}", "unknown"


def run_cases(
    folder: Path,
    tasks: Sequence[CaseTask],
    jobs: int,
    on_message: Callable[[str], None] = lambda _: None,
    progress: ProgressCallback = lambda *_: None,
) -> None:
    """Solve the cases that have no row yet, crashed or were refused, in that many processes; all stays resumable.

    `on_message` is told each row, `progress` how many cases have ended.
    Raises `RunLocked` where another process does so, and KeyboardInterrupt.
    """
    with CaseWriter(folder) as writer:
        for warning in writer.record.warnings:
            on_message(warning)
        left = writer.record.left(list(tasks))
        progress(0, len(left), AT_WORK)
        found = map_unordered(([task] for task in left), solve_case, jobs, writer.beat)
        for number, each in enumerate(found, start=1):
            row = _lost(each) if isinstance(each, WorkerDied) else each
            writer.add(row)
            progress(number, len(left), AT_WORK)
            on_message(format_row(row))


def solve_case(task: CaseTask, solver: Solver = solve_problem) -> CaseResult:
    """Import, solve and judge a case; an error of ours becomes a row that crashed, and ends no other."""
    wall, processor = time.perf_counter(), time.process_time()
    row = CaseResult(task.key, task.case, task.family, gate=task.settings.gate)
    try:
        row = _solved(row, task, solver)
    except Exception as error:  # noqa: BLE001 - as the docstring says
        row = replace(row, reason=f"{type(error).__name__}: {error}")
    return replace(
        row,
        seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - processor,
    )


def _solved(row: CaseResult, task: CaseTask, solver: Solver) -> CaseResult:
    try:
        case = read_case(task.line)
    except UnsupportedCase as error:
        return replace(row, outcome="refused", reason=str(error))
    row = replace(row, domain=case.oracle_config.domain.type)
    found = import_case(task.line, task.case)
    if isinstance(found, RejectedCase):
        return replace(row, outcome="refused", reason=": ".join(filter(None, (found.reason, found.detail))))
    settings = task.settings
    row = replace(row, reference="exact" if found.problem.specification.reference.value else "none")
    options = SolveOptions(
        accuracy=settings.accuracy, time_limit=settings.time_limit, clock=settings.clock, compare=False
    )
    try:
        answer = solver(without_reference(found), options)
    except InputError as error:
        return replace(row, outcome="unsolved", reason=str(error).partition("\n")[0])
    row = replace(row, outcome=answer.verdict.status, reason=answer.verdict.reason)
    if answer.discrete is None:
        return row
    missed = grid_error(case, found, answer.discrete)
    return replace(
        row,
        method=answer.discrete.method,
        resolution=answer.discrete.resolution,
        unknowns=answer.discrete.unknowns,
        estimate=answer.error,
        error=missed.asked if missed else None,
        field_error=missed.fields if missed else None,
    )


def _lost(died: WorkerDied[CaseTask]) -> CaseResult:
    task = died.item
    reason = f"its process ended with code {died.exitcode}"
    return CaseResult(task.key, task.case, task.family, reason=reason, gate=task.settings.gate)


def format_row(row: CaseResult) -> str:
    """Return a row as one line of progress."""
    errors = [] if row.error is None else [f"error {row.error:.1e}"]
    if row.estimate is not None:
        errors.append(f"estimate {row.estimate:.1e}")
    told = ", ".join([row.outcome, row.method, *errors] if row.method else [row.outcome, row.reason])
    marked = "WRONG VERDICT: " if row.wrong else ""
    return f"{row.case}: {marked}{told}, {row.seconds or 0.0:.1f} s"
