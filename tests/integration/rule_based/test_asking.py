"""Prompts of an analysis that the rule-based model writes itself."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from sharp.llm.prompts import render
from sharp.llm.protocol import Message
from sharp.rule_based.answers import answer
from sharp.rule_based.prompt_problem import question
from sharp.tournament.analysis import SINGLE, VERDICTS, analyse, read_prompts
from tests.helpers.rule_based.asking_baselines import described
from tests.helpers.rule_based.programs import PROBLEMS
from tests.helpers.rule_based.simulated import simulate


def written(names: Sequence[str], problem: str, *, stability: bool = True) -> dict[str, str]:
    values = {"single": len(names) == 1, "stability": stability, "names": names}
    prompt = render("analysis/write", **described(problem), **values)
    return read_prompts(answer([Message("user", prompt)], random.Random(0)), names)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_prompt_is_written_for_every_check_and_for_this_problem(problem: str) -> None:
    prompts = written(tuple(VERDICTS), problem)
    assert len(set(prompts.values())) == len(VERDICTS)
    assert all(not text.startswith("#") and "```" not in text for text in prompts.values())
    others = written(tuple(VERDICTS), "darcy" if problem != "darcy" else "burgers")
    assert not set(prompts.values()) & set(others.values())


def test_one_prompt_asks_for_everything_that_is_wanted() -> None:
    with_, without = (written((SINGLE,), "burgers", stability=wanted)[SINGLE] for wanted in (True, False))
    assert "bounds on the time step" in with_
    assert "bounds on the time step" not in without
    assert all(f"({number}) " in without for number in range(1, 5))


def test_an_unknown_equation_is_asked_about_without_claims() -> None:
    values = described("burgers")
    values["description"] = values["description"].replace("nu*u_xx", "nu*u_xx - u**3")
    prompt = render("analysis/write", **values, single=False, stability=True, names=tuple(VERDICTS))
    text = answer([Message("user", prompt)], random.Random(0))
    assert text.startswith("This equation is none that I know")
    assert "Burgers" not in read_prompts(text, tuple(VERDICTS))["classification"]


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("prompting", ["written-multi", "written-single"])
async def test_its_own_prompts_are_answered_as_the_shipped_ones_are(problem: str, prompting: str) -> None:
    session, world = simulate(problem, analysis={"prompting": prompting})
    shipped, _ = simulate(
        problem, analysis={"prompting": "merged" if "single" in prompting else "multi-step"}
    )
    found, usual = await analyse(session), await analyse(shipped)
    assert found.written is not None
    assert not found.written.unreadable
    assert [step.verdict for step in found.steps] == [step.verdict for step in usual.steps]
    assert found.bounds == usual.bounds
    asked = [request.messages[-1].content for request, _ in world.chats.values()]
    assert all(any(text in prompt for prompt in asked) for text in found.written.prompts.values()) or (
        found.strategy == "analytical"
    )
    assert question(asked[0]) == "write-analysis"
