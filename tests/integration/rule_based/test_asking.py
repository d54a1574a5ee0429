"""Prompts of an analysis that the rule-based model writes itself."""

from __future__ import annotations

import random

import pytest

from sharp.llm.prompts import render
from sharp.llm.protocol import Message
from sharp.rule_based.answers import answer
from sharp.rule_based.prompt_problem import question
from sharp.tournament.analysis import MOST_PROMPTS, analyse, read_prompts
from tests.helpers.rule_based.asking_baselines import described
from tests.helpers.rule_based.programs import PROBLEMS
from tests.helpers.rule_based.simulated import simulate


def written(problem: str, *, single: bool = False) -> tuple[str, ...]:
    prompt = render("analysis/write", **described(problem), single=single, most=MOST_PROMPTS)
    return read_prompts(answer([Message("user", prompt)], random.Random(0)), single=single)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_prompts_are_written_for_this_problem(problem: str) -> None:
    prompts = written(problem)
    assert len(set(prompts)) == 3
    assert all(not text.startswith("#") and "```" not in text for text in prompts)
    assert not set(prompts) & set(written("darcy" if problem != "darcy" else "burgers"))


def test_one_prompt_asks_for_everything_that_comes_to_mind() -> None:
    (prompt,) = written("burgers", single=True)
    assert all(f"({number}) " in prompt for number in range(1, 4))
    assert "time step" not in prompt  # which is overlooked, as the paper says of GPT-4o


def test_an_unknown_equation_is_asked_about_without_claims() -> None:
    values = described("burgers")
    values["description"] = values["description"].replace("nu*u_xx", "nu*u_xx - u**3")
    prompt = render("analysis/write", **values, single=False, most=MOST_PROMPTS)
    text = answer([Message("user", prompt)], random.Random(0))
    assert text.startswith("This equation is none that I know")
    assert "Burgers" not in read_prompts(text, single=False)[0]


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("prompting", ["written-multi", "written-single"])
async def test_its_own_prompts_are_answered_in_prose(problem: str, prompting: str) -> None:
    session, world = simulate(problem, analysis={"prompting": prompting})
    shipped, _ = simulate(problem)
    found, usual = await analyse(session), await analyse(shipped)
    assert found.written is not None
    assert not found.written.unreadable
    asked = [request.messages[-1].content for request, _ in world.chats.values()]
    assert [question(prompt) for prompt in asked] == ["write-analysis", *["written"] * len(found.steps)]
    assert all(text in prompt for text, prompt in zip(found.written.prompts, asked[1:], strict=True))
    # The checks that it takes come to the same words as where they are asked by our prompts.
    assert usual.steps[0].text.split("\n\n")[0] in found.steps[0].text
    assert "```" not in "".join(step.text for step in found.steps)
