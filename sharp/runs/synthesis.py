"""Solver programs for an agent session: PDE-SHARP, run where the session is kept.

    FOLDER/session-<hash>/synthesis-<hash>/     an ordinary run directory: `sharp status`, `sharp report` open it

The hash is that of the problem and of the effort; models and seed are the session's. The directory holds all
that a tool needs to go on: a run that was broken off is carried on, a finished one is opened without a call.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hpc.errors import ReplayMiss
from hpc.journal import read_run
from sharp.agent import OpenSynthesis, Role, SolverProgram, SynthesisArgs, SynthesisUsage, ToolError
from sharp.config import RunConfig
from sharp.errors import InputError
from sharp.problems import Problem
from sharp.runs.budget_status import recorded_ledger
from sharp.runs.creation import create_run, write_specification
from sharp.runs.directory import RunDirectory, load_run
from sharp.runs.effects import ProgressEvent
from sharp.runs.execute import finish, replayed
from sharp.runs.manifest import read_manifest
from sharp.tournament import Tournament

PREFIX = "synthesis-"

WriteReport = Callable[[RunDirectory, Tournament], object]


def synthesis_by_runs(write_report: WriteReport) -> OpenSynthesis:
    """Return what has solver programs written by runs, whose reports `write_report` writes."""

    return partial(RunSynthesis, write_report)


@dataclass(frozen=True)
class RunSynthesis:
    """Where solver programs are written, by the models of which agents, with which seed.

    The Planner's model analyses, the Programmer's writes programs and the report's prose; those of Solver, Orchestrator
    and Programmer judge. With `recorded` only what has been finished is opened. `say` is told what is done.
    """

    write_report: WriteReport
    folder: Path
    models: Mapping[Role, str]
    seed: int = 0
    recorded: bool = False
    say: Callable[[str], None] = lambda _: None

    def run_folder(self, problem: Problem, effort: SynthesisArgs) -> Path:
        """Return where the run for a problem is kept."""
        content = json.dumps([problem.hash, effort.model_dump()], sort_keys=True)
        return self.folder / f"{PREFIX}{hashlib.sha256(content.encode()).hexdigest()[:12]}"

    async def solver(self, problem: Problem, effort: SynthesisArgs) -> SolverProgram:
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
        executed = [
            entry for entry in state.executions if entry.split != "test" and entry.reused_from is None
        ]
        validated = state.execution_of(state.best)
        assert validated is not None, "a winner was run"
        return SolverProgram(
            run.problem,
            run.path,
            state.best,
            state.candidates[state.best].code,
            validated.evaluation,
            state.test,
            len(state.candidates),
            len({entry.candidate for entry in executed}),
        )

    def _run(self, problem: Problem, effort: SynthesisArgs) -> RunDirectory:
        path = self.run_folder(problem, effort)
        if self.recorded or (path / "run.yaml").exists():
            return load_run(path)
        stated = write_specification(problem, path)
        try:
            return create_run(self._configuration(stated, effort), path, self._tell_of_data)
        except InputError as error:
            stated.unlink()
            path.rmdir()
            raise ToolError(f"synthesize_solver: {error}") from None

    def _configuration(self, problem: Path, effort: SynthesisArgs) -> RunConfig:
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
                "evaluation": {
                    "data_kind": "reference",
                    "validation": effort.validation,
                    "test": effort.test,
                },
            }
        )

    async def _played(self, run: RunDirectory) -> Tournament:
        found = await replayed(run)
        if self.recorded and found.missing:
            raise ReplayMiss(found.missing)
        state = await finish(run, listener=self._tell, warn=self.say) if found.missing else found.state
        if not self.recorded:
            self.write_report(run, state)
        return state

    def _tell_of_data(self, done: int, total: int, message: str) -> None:
        if done in (0, total):
            self.say(f"synthesize_solver: data: {message} ({done}/{total})")

    def _tell(self, progress: ProgressEvent) -> None:
        if progress.phase in ("barrier", "failed"):
            self.say(f"synthesize_solver: {progress.note or progress.path}")

    def spending(self) -> SynthesisUsage:
        """Return what all runs of the session have taken, by their records; those that were given up are among them."""
        total = SynthesisUsage()
        for path in sorted(self.folder.glob(f"{PREFIX}*")):
            if not (path / "run.yaml").exists():
                continue
            ledger = recorded_ledger(read_manifest(path), read_run(path).effects.values())
            total = SynthesisUsage(
                total.runs + 1,
                total.calls + ledger.total.calls,
                total.usage + ledger.total.usage,
                total.evaluations + ledger.evaluations,
            )
        return total
