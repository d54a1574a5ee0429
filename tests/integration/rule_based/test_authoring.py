"""Programs from nothing: without a strategy, with reflection, by a plan, beside remembered designs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from sharp.llm.protocol import Message
from sharp.llm.replies import extract_code
from sharp.methods.cot_reflection import output_of
from sharp.problems import load_problem
from sharp.rule_based.authoring import UNCLOSED_RATE, UNKNOWN
from sharp.rule_based.derived_family import family_named
from sharp.rule_based.judging import faults
from tests.helpers.rule_based.asking_baselines import (
    carrying_out,
    described,
    drafting,
    generation,
    planning,
    reflecting,
)
from tests.helpers.rule_based.program_runs import run_programs
from tests.helpers.rule_based.programs import PROBLEMS, said, understood
from tests.helpers.rule_based.shipped_problems import ARGUMENTS


def scheme(code: str, family: str = "burgers") -> str:
    return understood(code, family).recipe.name


def elsewhere(messages: Sequence[Message]) -> list[Message]:
    """Return a conversation about an equation that the library does not know."""
    return [
        Message(m.role, m.content.replace("u_t + (u**2/2)_x = nu*u_xx", "u_t + sinh(u_t) = nu*u_xx - u**3"))
        for m in messages
    ]


def test_without_a_proposed_strategy_every_recipe_may_be_drawn() -> None:
    drawn = {scheme(extract_code(said(generation(), seed))) for seed in range(120)}
    assert drawn == {recipe.name for recipe in family_named("burgers").recipes}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_reflected_answer_has_the_agreed_parts_and_its_program_runs(problem: str, tmp_path: Path) -> None:
    family = load_problem(problem).family
    texts = [said(reflecting(problem), seed) for seed in range(4)]
    for text in texts:
        assert re.match(r"<thinking>.*<reflection>.*</reflection>\s*</thinking>\s*<output>", text, re.DOTALL)
    codes = [extract_code(output_of(text)) for text in texts]
    outcomes = run_programs(tmp_path, codes, ARGUMENTS[family])
    assert sum(bool(outcome.arrays) for outcome in outcomes) >= 3, outcomes


def test_reflection_finds_most_of_the_faults_that_a_first_answer_has() -> None:
    plain, reflected = (
        sum(bool(faults(extract_code(output_of(said(messages, seed))), "burgers")) for seed in range(120))
        for messages in (generation(), reflecting())
    )
    assert plain > 15
    assert reflected < 0.6 * plain


def test_the_output_is_left_open_at_the_stated_rate() -> None:
    open_ = sum("</output>" not in said(reflecting("advection"), seed) for seed in range(150)) / 150
    assert open_ == pytest.approx(UNCLOSED_RATE, abs=0.045)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_plan_is_numbered_and_as_sure_of_each_step_as_it_says(problem: str) -> None:
    lines = said(planning(problem)).splitlines()
    assert [int(line.split(".")[0]) for line in lines] == list(range(1, len(lines) + 1))
    assert all(re.search(r"\((\d{2}|100) %\)", line) for line in lines)
    assert len(lines) > 4


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_program_follows_the_plan_that_was_made(problem: str) -> None:
    family = load_problem(problem).family
    followed = []
    for seed in range(12):
        plan = said(planning(problem), seed)
        planned = re.search(r"Follow the `([\w-]+)` scheme", plan)
        assert planned
        code = extract_code(said(carrying_out(plan, problem), seed))
        # A fault may hide the part of a program by which its scheme is known.
        followed.append(bool(faults(code, family)) or scheme(code, family) == planned[1])
    assert sum(followed) >= 11


def test_a_plan_that_names_no_scheme_leaves_the_choice_free() -> None:
    codes = {extract_code(said(carrying_out("1. Think.\n2. Write.", "darcy"), seed)) for seed in range(8)}
    assert len(codes) > 5


def test_a_draft_differs_from_the_designs_that_are_remembered_while_there_is_another() -> None:
    recipes = family_named("burgers").recipes
    ideas = [recipe.idea for recipe in recipes]
    for left in recipes:
        designs = [idea for idea in ideas if idea != left.idea]
        text = said(drafting(designs), seed=3)
        assert left.idea in text
    assert extract_code(said(drafting(ideas)))
    assert {scheme(extract_code(said(drafting(), seed))) for seed in range(30)} > {"muscl", "weno"}


@pytest.mark.parametrize(
    "messages", [generation(), reflecting(), planning(), carrying_out("1. Think."), drafting()]
)
def test_an_equation_outside_the_library_gets_no_program_and_the_reason(messages: list[Message]) -> None:
    text = said(elsewhere(messages))
    assert UNKNOWN in text
    if "def solver" in text:
        assert described("burgers")["template"].splitlines()[0] in extract_code(text)
