"""Solver programs for a course: PDE-SHARP, run where the course is kept.

    FOLDER/course-<hash>/synthesis-<hash>/     an ordinary run directory: `sharp status`, `sharp report` open it

The hash is that of the problem and of the effort; models and seed are the course's. The directory holds all
that a tool needs to go on: a run that was broken off is carried on, a finished one is opened and asks nobody.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hpc.errors import ReplayMiss
from hpc.files import make_directory, write_atomic
from sharp.agent.tools import Parameters, ToolError
from sharp.errors import InputError
from sharp.evaluation.protocol import Evaluation
from sharp.llm.protocol import Usage
from sharp.problems.problem import Problem
from sharp.problems.writing import as_yaml

if TYPE_CHECKING:
    from sharp.agent.team import Role
    from sharp.config import RunConfig
    from sharp.runs.directory import Run
    from sharp.runs.effects import Progress
    from sharp.stages.state import Tournament

PREFIX = "synthesis-"


class Effort(Parameters):
    """How many programs are written, how many rounds the judges play, and how many samples validate and test."""

    candidates: Annotated[int, Field(ge=2, le=64)] = 8
    rounds: Annotated[int, Field(ge=1, le=8)] = 3
    validation: Annotated[int, Field(ge=2, le=100)] = 8
    test: Annotated[int, Field(ge=2, le=100)] = 8


@dataclass(frozen=True)
class SolverProgram:
    """The winner of a run: a program that takes any initial state, as its problem's interface says.

    `validation` and `test` hold its errors, or why it has none; `written` programs were considered, and `executed` of
    them run. `hash` tells versions apart.
    """

    problem: Problem
    run: Path
    name: str
    code: str
    validation: Evaluation
    test: Evaluation | None
    written: int
    executed: int

    @property
    def path(self) -> Path:
        """The file, which begins with a comment on where the program comes from."""
        return self.run / "solver" / "solver.py"

    @property
    def hash(self) -> str:
        """The SHA-256 (hex) of the program, without that comment."""
        return hashlib.sha256(self.code.encode(errors="surrogatepass")).hexdigest()

    @property
    def error(self) -> float:
        """The mean relative L2 error on test data, against the truth where it is known; infinite if it failed there."""
        scores = self.test.scores if self.test else None
        if scores is None:
            return math.inf
        return scores.nrmse if scores.nrmse_truth is None else scores.nrmse_truth

    def to_json(self) -> dict[str, Any]:
        """Return what is known of the program in plain JSON."""
        return {
            "program": self.name,
            "path": str(self.path),
            "hash": self.hash,
            "candidates": self.written,
            "executed": self.executed,
            "validation": errors_of(self.validation),
            "test": errors_of(self.test),
            "report": str(self.run / "report.html"),
        }


def errors_of(evaluation: Evaluation | None) -> dict[str, Any]:
    """Return the mean relative L2 errors of a run on data, to four digits, or why there are none."""
    if evaluation is None or evaluation.scores is None:
        return {"failed": evaluation.failure.kind if evaluation and evaluation.failure else "not run"}
    found = {
        "error against data": evaluation.scores.nrmse,
        "error against truth": evaluation.scores.nrmse_truth,
    }
    return {name: None if error is None else float(f"{error:.4g}") for name, error in found.items()}


@dataclass(frozen=True)
class Commission:
    """Where solver programs are written, by the models of which agents, with which seed.

    The Planner's model analyses, the Programmer's writes programs and the report's prose; those of Solver, Orchestrator
    and Programmer judge. With `recorded` only what has been finished is opened. `say` is told what is done.
    """

    folder: Path
    models: Mapping[Role, str]
    seed: int = 0
    recorded: bool = False
    say: Callable[[str], None] = lambda _: None

    def run_folder(self, problem: Problem, effort: Effort) -> Path:
        """Return where the run for a problem is kept."""
        content = json.dumps([problem.hash, effort.model_dump()], sort_keys=True)
        return self.folder / f"{PREFIX}{hashlib.sha256(content.encode()).hexdigest()[:12]}"

    async def solver(self, problem: Problem, effort: Effort) -> SolverProgram:
        """Return the best program that models write for a problem, from a finished run if there is one.

        Raises `ToolError` where the problem takes what PDE-SHARP cannot do, or no program ran; `ReplayMiss` where a
        run is not finished and `recorded` is set; and whatever ends a run, which goes on from there the next time.
        """
        run = self._run(problem, effort)
        state = await self._played(run)
        if state.best is None:
            raise ToolError(
                f"synthesize_solver: none of {len(state.candidates)} programs ran successfully; see {run.path.name}"
            )
        return _winner(run, state, state.best)

    def _run(self, problem: Problem, effort: Effort) -> Run:
        from sharp.runs.directory import create_run, load_run

        path = self.run_folder(problem, effort)
        if self.recorded or (path / "run.yaml").exists():
            return load_run(path)
        make_directory(path)
        stated = path / "problem.yaml"
        write_atomic(stated, as_yaml(problem).encode())
        try:
            return create_run(self._configuration(stated, effort), path, self._tell_of_data)
        except InputError as error:
            stated.unlink()
            path.rmdir()
            raise ToolError(f"synthesize_solver: {error}") from None

    def _configuration(self, problem: Path, effort: Effort) -> RunConfig:
        from sharp.config import RunConfig

        models = self.models
        return RunConfig.model_validate(
            {
                "problem": str(problem),
                "seed": self.seed,
                "models": {
                    "analyst": models["planner"],
                    "generator": models["programmer"],
                    "judges": [models["solver"], models["orchestrator"], models["programmer"]],
                    "reporter": models["programmer"],
                },
                "genesis": {"candidates": effort.candidates},
                "synthesis": {"max_rounds": effort.rounds, "max_cycles": 1},
                # Agents answer for errors against the solution, not against another program's.
                "evaluation": {"reference": "truth", "validation": effort.validation, "test": effort.test},
            }
        )

    async def _played(self, run: Run) -> Tournament:
        from sharp.report import write_report
        from sharp.runs.execute import finish, replayed

        found = await replayed(run)
        if self.recorded and found.missing:
            raise ReplayMiss(found.missing)
        state = await finish(run, listener=self._tell, warn=self.say) if found.missing else found.state
        if not self.recorded:
            write_report(run, state)
        return state

    def _tell_of_data(self, done: int, total: int, message: str) -> None:
        if done in (0, total):
            self.say(f"synthesize_solver: data: {message} ({done}/{total})")

    def _tell(self, progress: Progress) -> None:
        if progress.phase in ("barrier", "failed"):
            self.say(f"synthesize_solver: {progress.note or progress.path}")


def _winner(run: Run, state: Tournament, best: str) -> SolverProgram:
    executed = [entry for entry in state.executions if entry.split != "test" and entry.served_from is None]
    validated = state.execution_of(best)
    assert validated is not None, "a winner was run"
    return SolverProgram(
        run.problem,
        run.path,
        best,
        state.candidates[best].code,
        validated.evaluation,
        state.test,
        len(state.candidates),
        len({entry.candidate for entry in executed}),
    )


@dataclass(frozen=True)
class Spending:
    """What runs have asked of models, and how often they ran programs on validation data."""

    runs: int = 0
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    evaluations: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the figures in plain JSON."""
        return {
            "runs": self.runs,
            "calls": self.calls,
            "prompt_tokens": self.usage.prompt,
            "completion_tokens": self.usage.completion,
            "evaluations": self.evaluations,
        }


def spending(folder: Path) -> Spending:
    """Return what all runs of a course have taken, by their records; those that were given up are among them."""
    from hpc.journal import read_run
    from sharp.runs.allowance import recorded_ledger
    from sharp.runs.manifest import read_manifest

    total = Spending()
    for path in sorted(folder.glob(f"{PREFIX}*")):
        if not (path / "run.yaml").exists():
            continue
        ledger = recorded_ledger(read_manifest(path), read_run(path).effects.values())
        total = Spending(
            total.runs + 1,
            total.calls + ledger.total.calls,
            total.usage + ledger.total.usage,
            total.evaluations + ledger.evaluations,
        )
    return total
