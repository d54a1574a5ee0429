"""Prompts as the methods that PDE-SHARP is compared with write them, for programs of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sharp.llm.prompts import render
from sharp.llm.protocol import Message
from sharp.problems import load_problem, render_template
from tests.helpers.rule_based.conversations import Shown, report, told


def described(problem: str) -> dict[str, Any]:
    return {**told(problem), "template": render_template(load_problem(problem)).strip()}


def question(problem: str = "burgers") -> str:
    """Return CodePDE's prompt, which all techniques answer."""
    return render("codepde/generate", **described(problem)).strip()


def asked(prompt: str) -> list[Message]:
    return [Message("system", render("codepde/system")), Message("user", prompt)]


def generation(problem: str = "burgers") -> list[Message]:
    return asked(question(problem))


def reflecting(problem: str = "burgers") -> list[Message]:
    system, prompt = generation(problem)
    return [Message("system", render("cot-reflection/system", system=system.content.strip())), prompt]


def answered(code: str) -> str:
    return f"This is my program.\n\n```python\n{code.strip()}\n```\n"


def about(prompt: str, codes: Sequence[str], problem: str = "burgers") -> list[Message]:
    """Return a prompt about several answers, with a program in each."""
    answers = [answered(code) for code in codes]
    if prompt == "cepo/compare":
        own = render("cepo/attempts", attempts=answers)
        return [Message("assistant", own), Message("user", render(prompt, question=question(problem)))]
    return asked(render(prompt, question=question(problem), answers=answers, critique=""))


def planning(problem: str = "burgers") -> list[Message]:
    return asked(render("cepo/plan", question=question(problem)))


def carrying_out(plan: str, problem: str = "burgers") -> list[Message]:
    return [*planning(problem), Message("assistant", plan), Message("user", render("cepo/execute"))]


def final(solution: str, problem: str = "burgers") -> list[Message]:
    return [
        Message("assistant", solution),
        Message("user", render("cepo/final", question=question(problem))),
    ]


def rating(answer: str, problem: str = "burgers") -> list[Message]:
    told = render("cepo/rater", system=render("codepde/system").strip())
    return [
        Message("system", told),
        Message("user", question(problem)),
        Message("assistant", answer),
        Message("user", render("cepo/rate")),
    ]


def pair(first: str, second: str, problem: str = "burgers") -> list[Message]:
    values = {"first": answered(first), "second": answered(second)}
    return asked(render("cepo/rate_pair", question=question(problem), **values))


def refinement(programs: Mapping[str, Shown], problem: str = "burgers") -> list[Message]:
    items = [
        {"id": name, "code": shown.code.strip(), "feedback": report(shown)}
        for name, shown in programs.items()
    ]
    values = {"programs": items, "kinds": ("nrmse",), "slow_s": 600, "wall_s": 1200}
    return asked(render("codepde/refine", **described(problem), **values))


def in_tree(move: str, problem: str = "burgers", **values: Any) -> list[Message]:
    """Return one of AIDE's prompts."""
    return asked(render(f"aide/{move}", **described(problem), **values))


def drafting(designs: Sequence[str] = (), problem: str = "burgers") -> list[Message]:
    return in_tree("draft", problem, memory=remembered(designs))


def improvement(shown: Shown, designs: Sequence[str] = (), problem: str = "burgers") -> list[Message]:
    values = {"id": "s004", "code": shown.code.strip(), "feedback": report(shown)}
    return in_tree("improve", problem, memory=remembered(designs), **values)


def remembered(designs: Sequence[str]) -> list[dict[str, str]]:
    result = "Status: passed\nnRMSE: 2.000e-03 (mean of 2 samples, worst 3.0e-03)"
    return [{"id": f"s{k:03d}", "design": text, "result": result} for k, text in enumerate(designs, 1)]


def complaint(failure: str, *, non_finite: bool = False) -> Message:
    """Return CodePDE's prompt after a failure, which goes on with the conversation."""
    values = {"stdout": "", "stderr": "Traceback", "function": "solver", "in_time": True}
    return Message("user", render("codepde/debug", failure=failure, non_finite=non_finite, **values))
