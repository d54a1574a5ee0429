"""Answers about answers: critique, synthesis, comparison, ratings."""

from __future__ import annotations

import re

import pytest

from sharp.llm.context import count_tokens
from sharp.llm.protocol import Message
from sharp.llm.replies import extract_code
from sharp.problems import load_problem
from sharp.rule_based.composer import compose
from tests.helpers.rule_based.asking_baselines import (
    about,
    answered,
    final,
    generation,
    pair,
    question,
    rating,
)
from tests.helpers.rule_based.programs import PROBLEMS, program, said

WEAK, STRONG = program("first-order"), program("pseudo-spectral")
BROKEN = STRONG.replace("def solver(", "def sover(", 1).replace("return ", "return undefined_name + ", 1)


def rated(text: str) -> str:
    found = re.findall(r"^Rating: \[\[(\w)\]\]$", text, re.MULTILINE)
    assert len(found) == 1
    assert text.rstrip().endswith("]]")
    return str(found[0])


def test_a_critique_speaks_of_each_answer_and_is_short() -> None:
    text = said(about("moa/critique", [WEAK, STRONG, BROKEN]))
    assert re.findall(r"^Answer (\d):", text, re.MULTILINE) == ["1", "2", "3"]
    assert "undefined: undefined_name" in text.split("Answer 3")[1]
    assert "```" not in text
    assert count_tokens([Message("assistant", text)]) < 512


@pytest.mark.parametrize("prompt", ["moa/synthesis", "cepo/compare"])
@pytest.mark.parametrize("place", range(3))
def test_the_program_that_reads_best_is_given_whole_wherever_it_stands(prompt: str, place: int) -> None:
    codes = [WEAK, BROKEN]
    codes.insert(place, STRONG)
    for seed in range(4):
        assert extract_code(said(about(prompt, codes), seed)).strip() == STRONG.strip()


def test_attempts_that_disagree_are_compared_part_by_part() -> None:
    limited = [program("muscl", limiter=name, solver="equal-steps") for name in ("minmod", "van-leer")]
    text = said(about("cepo/compare", limited))
    assert "- limiter: minmod limiter in 1; van Leer limiter in 2" in text
    assert "agree in all" in said(about("cepo/compare", [WEAK, WEAK]))


def test_the_final_answer_is_the_program_of_the_solution() -> None:
    assert extract_code(said(final(answered(STRONG)))).strip() == STRONG.strip()
    assert extract_code(said(final("")))


def test_a_rating_is_one_unless_reading_finds_a_fault() -> None:
    assert rated(said(rating(answered(STRONG)))) == "1"
    assert rated(said(rating(answered(BROKEN)))) == "0"
    assert rated(said(rating("I would rather not."))) == "0"


@pytest.mark.parametrize("problem", PROBLEMS)
def test_sound_programs_are_rated_right_and_most_faulty_ones_wrong(problem: str) -> None:
    family = load_problem(problem).family
    for rate, lowest, highest in ((0.0, 12, 12), (1.0, 0, 3)):
        codes = [compose(family, seed, fault_rate=rate).code for seed in range(12)]
        right = sum(rated(said(rating(answered(code), problem))) == "1" for code in codes)
        assert lowest <= right <= highest


def test_of_a_pair_the_better_one_wins_in_either_order() -> None:
    assert rated(said(pair(STRONG, WEAK))) == "A"
    assert rated(said(pair(WEAK, STRONG))) == "B"
    assert rated(said(pair("", ""))) == "A"


@pytest.mark.parametrize("prompt", ["moa/synthesis", "cepo/compare"])
def test_answers_without_a_program_are_replaced_by_a_new_one(prompt: str) -> None:
    assert extract_code(said(about(prompt, [])))
    assert "that I can read" in said(about("moa/critique", []))


def test_headings_in_an_answer_do_not_change_what_is_asked() -> None:
    deceptive = f"## Plan\n\n## Final answer\n\n## Template\n\n{answered(STRONG)}"
    assert rated(said(rating(deceptive))) == "1"
    text = said(
        [
            generation()[0],
            Message(
                "user",
                about("moa/critique", [WEAK])[1].content.replace(
                    "This is my program.", deceptive.split("\n\n```")[0]
                ),
            ),
        ]
    )
    assert text.startswith("Answer 1")


def test_an_answer_about_an_unknown_equation_is_not_called_right() -> None:
    foreign = question().replace("u_t + (u**2/2)_x = nu*u_xx", "u_t + sinh(u_t) = nu*u_xx - u**3")
    messages = [Message(m.role, m.content.replace(question(), foreign)) for m in rating(answered(STRONG))]
    assert "none that I know" in said(messages)
    assert rated(said(messages)) == "0"
