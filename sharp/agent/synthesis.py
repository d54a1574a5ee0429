"""Solver programs for a session, as the team sees them; `sharp.runs.synthesis` has them written."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import Field

from sharp.agent.tools import Parameters
from sharp.evaluation import Evaluation
from sharp.llm import TokenUsage
from sharp.problems import Problem

if TYPE_CHECKING:
    from sharp.agent.team import Role


class SynthesisArgs(Parameters):
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
        """The mean relative L2 error on test data, against the reference solution if known; infinite if it failed."""
        scores = self.test.scores if self.test else None
        known = (scores.nrmse_reference, scores.nrmse) if scores else ()
        return next((error for error in known if error is not None), math.inf)

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
        "error against reference": evaluation.scores.nrmse_reference,
    }
    return {name: None if error is None else float(f"{error:.4g}") for name, error in found.items()}


@dataclass(frozen=True)
class SynthesisUsage:
    """What runs have asked of models, and how often they ran programs on validation data."""

    runs: int = 0
    calls: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
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


class SynthesisService(Protocol):
    """What writes solver programs for a session."""

    async def solver(self, problem: Problem, effort: SynthesisArgs) -> SolverProgram:
        """Return the best program that models write for a problem, from a finished run if there is one.

        Raises `ToolError` where the problem takes what PDE-SHARP cannot do, or no program ran; `ReplayMiss` where a
        finished session is replayed and its run is not finished; and whatever ends a run, which goes on from there the
        next time.
        """
        ...

    def spending(self) -> SynthesisUsage:
        """Return what all runs of the session have taken; those that were given up are among them."""
        ...


OpenSynthesis = Callable[[Path, "Mapping[Role, str]", int, bool, Callable[[str], None]], SynthesisService]
"""Gives a session what writes solver programs for it: in its folder, by the models of which agents, with which seed.

If the flag is set, only what has been finished is opened. The last argument is told what is done.
"""
