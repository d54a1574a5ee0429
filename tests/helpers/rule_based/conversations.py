"""Prompts as the stages write them, for programs of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sharp.evaluation import Environment
from sharp.evaluation.feedback import feedback_described
from sharp.llm.prompts import render
from sharp.llm.protocol import Message
from sharp.problems import Problem, load_problem, render_description

ENVIRONMENT = Environment("3.12.1", {"numpy": "2.1.0", "scipy": "1.14.1", "jax": "0.4.35"})


def told(problem: str | Problem = "burgers") -> dict[str, Any]:
    """Return what prompts that ask for programs, or judge them, say alike."""
    loaded = load_problem(problem) if isinstance(problem, str) else problem
    return {
        "description": render_description(loaded),
        "function": loaded.interface.function,
        "environment": ENVIRONMENT,
        "in_time": loaded.time is not None,
        "sampled": bool(loaded.interface.inputs),
        "scored": feedback_described(("nrmse",)),
    }


@dataclass(frozen=True)
class Shown:
    """A program as a prompt shows it: its error (None if it was not run, inf if it failed), its run time and base."""

    code: str
    error: float | None = None
    run_time: float = 1.0
    base: str = ""
    changes: str = ""
    judge: int = 1


def report(item: Shown) -> str:
    if item.error is None:
        return ""
    if item.error == float("inf"):
        return "Status: failed (exception)\nZeroDivisionError"
    error = f"nRMSE: {item.error:.3e} (mean of 2 samples, worst 1.0e+00)"
    return f"Status: passed\n{error}\nRun time: {item.run_time:.2f} s"


def selection(
    programs: Mapping[str, Shown], problem: str = "burgers", *, criteria: str = "dynamic", cycle: int = 1
) -> Message:
    text = render(
        "synthesis/select",
        **told(problem),
        turns=3,
        runs=True,
        criteria=criteria,
        own_criteria=["accuracy"],
        candidates=[
            {"id": name, "strategy": "numerical", "code": shown.code.strip(), "history": report(shown)}
            for name, shown in programs.items()
        ],
        shared="",
        summaries=[],
        unread=[],
        sittings=0,
        cycle=cycle,
        shortlist=max(3, len(programs) // 2),
    )
    return Message("user", text)


def results(
    round_: int,
    programs: Mapping[str, Shown],
    *,
    judge: int,
    latest: str,
    own_best: str,
    best: str,
    bases: Sequence[str],
    aim: str = "",
) -> Message:
    text = render(
        "synthesis/revise",
        round=round_,
        turns=3,
        cycle=1,
        judge=judge,
        results=[
            {
                "id": name,
                "judges": [shown.judge],
                "base": shown.base or None,
                "changes": shown.changes,
                "feedback": report(shown),
                "diff": "",
                "code": shown.code.strip(),
            }
            for name, shown in programs.items()
        ],
        notice="",
        aim=aim,
        measured=True,
        standing=["`c001`: error 1.000e-03 in 1 s"],
        bases=bases,
        latest=latest,
        own_best=own_best,
        global_best=best,
    )
    return Message("user", text)


def round_of(
    programs: Mapping[str, Shown],
    problem: str = "burgers",
    *,
    judge: int = 1,
    own: str | None = None,
    aim: str = "",
) -> list[Message]:
    """Return a judge's conversation after a round in which all programs were run; `own` is the judge's only one."""
    best = min(programs, key=lambda name: programs[name].error or 0.0)
    mine = own or best
    return [
        selection({"c099": Shown("pass\n")}, problem),
        Message("assistant", '```json\n{"nominee": "c099"}\n```'),
        results(
            1, programs, judge=judge, latest=mine, own_best=mine, best=best, bases=list(programs), aim=aim
        ),
    ]


def repair(code: str, failure: str, problem: str = "burgers") -> Message:
    values = {"code": code.strip(), "failure": failure, "output": "", "attempts": [], "too_costly": False}
    return Message("user", render("debug/repair", **told(problem), **values))
