"""Prompts as the stages write them, for programs of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sharp.evaluation.feedback import feedback_described
from sharp.llm.prompts import render
from sharp.llm.protocol import Message
from sharp.problems import load_problem, render_description


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
        description=render_description(load_problem(problem)),
        criteria=criteria,
        own_criteria=["accuracy"],
        feedback=feedback_described(("nrmse",)),
        candidates=[
            {"id": name, "strategy": "numerical", "code": shown.code.strip(), "history": report(shown)}
            for name, shown in programs.items()
        ],
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
) -> Message:
    text = render(
        "synthesis/revise",
        round=round_,
        cycle=1,
        judge=judge,
        results=[
            {
                "id": name,
                "judge": shown.judge,
                "base": shown.base or None,
                "changes": shown.changes,
                "feedback": report(shown),
                "code": shown.code.strip(),
            }
            for name, shown in programs.items()
        ],
        notice="",
        bases=bases,
        latest=latest,
        own_best=own_best,
        global_best=best,
    )
    return Message("user", text)


def round_of(
    programs: Mapping[str, Shown], problem: str = "burgers", *, judge: int = 1, own: str | None = None
) -> list[Message]:
    """Return a judge's conversation after a round in which all programs were run; `own` is the judge's only one."""
    best = min(programs, key=lambda name: programs[name].error or 0.0)
    mine = own or best
    return [
        selection({"c099": Shown("pass\n")}, problem),
        Message("assistant", '```json\n{"nominee": "c099"}\n```'),
        results(1, programs, judge=judge, latest=mine, own_best=mine, best=best, bases=list(programs)),
    ]


def repair(code: str, failure: str, problem: str = "burgers") -> Message:
    description = render_description(load_problem(problem))
    return Message(
        "user",
        render(
            "debug/repair",
            description=description,
            code=code.strip(),
            failure=failure,
            timed_out=False,
            function="solver",
        ),
    )
