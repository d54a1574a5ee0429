"""Better programs from programs with results, as whole files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path

import pytest

from sharp.evaluation.code import canonical_hash
from sharp.llm.protocol import Message
from sharp.llm.replies import explanation, extract_code
from sharp.problems import load_problem
from sharp.rule_based.composer import compose
from sharp.rule_based.program_analysis import read
from sharp.rule_based.prompt_problem import open_question
from sharp.rule_based.revising import EXPLORES
from tests.helpers.rule_based.asking_baselines import improvement, refinement
from tests.helpers.rule_based.conversations import Shown
from tests.helpers.rule_based.program_runs import run_programs
from tests.helpers.rule_based.programs import FOREIGN, PROBLEMS, program, said
from tests.helpers.rule_based.shipped_problems import ARGUMENTS

MINMOD = program("muscl", limiter="minmod", solver="equal-steps")
SHOWN = {
    "c002": Shown(MINMOD, 3e-3),
    "c005": Shown(program("first-order"), 5e-2),
    "c001": Shown(program("central"), inf),
}


def rewritten(messages: Sequence[Message], seeds: int) -> list[str]:
    return [extract_code(said(messages, seed)) for seed in range(seeds)]


def merit(code: str, family: str = "burgers") -> float:
    return read(code, family).merit


def as_promised(family: str, seeds: Sequence[int]) -> dict[str, Shown]:
    """Return sound programs of the library with the errors that reading promises."""
    codes = {f"c{seed:03d}": compose(family, seed, fault_rate=0.0).code for seed in seeds}
    return {name: Shown(code, 10.0 ** -merit(code, family)) for name, code in codes.items()}


def test_a_refinement_says_what_was_seen_and_why_it_changes_what() -> None:
    text = explanation(said(refinement(SHOWN)))
    assert all(f"- {name}: " in text for name in SHOWN)
    assert "measured error 3.000e-03" in text
    assert "it failed when it was run" in text
    assert "Rationale: I build on c00" in text
    assert "The reason:" in text


def test_refinements_build_on_what_ran_and_mostly_on_the_best() -> None:
    bases = [said(refinement(SHOWN), seed).split("I build on ")[1][:4] for seed in range(40)]
    assert set(bases) == {"c002", "c005"}
    assert bases.count("c002") > 18


@pytest.mark.parametrize("problem", PROBLEMS)
def test_refinements_of_the_same_programs_differ(problem: str) -> None:
    shown = as_promised(load_problem(problem).family, (0, 1, 2))
    codes = {canonical_hash(extract_code(said(refinement(shown, problem), seed))) for seed in range(4)}
    assert len(codes) >= 2
    assert not codes & {canonical_hash(item.code) for item in shown.values()}


def test_refinements_mostly_promise_less_error_than_what_they_build_on() -> None:
    better = []
    for number, problem in enumerate(PROBLEMS * 6):
        family = load_problem(problem).family
        shown = as_promised(family, range(number, number + 3))
        text = said(refinement(shown, problem), number)
        base = shown[text.split("I build on ")[1].split(".")[0]]
        better.append(merit(extract_code(text), family) > merit(base.code, family))
    assert sum(better) > 18


@pytest.mark.parametrize("problem", PROBLEMS)
def test_rewritten_programs_run(problem: str, tmp_path: Path) -> None:
    family = load_problem(problem).family
    shown = as_promised(family, (1, 2, 3))
    codes = rewritten(refinement(shown, problem), 2)
    codes += rewritten(improvement(shown["c002"], problem=problem), 1)
    outcomes = run_programs(tmp_path, codes, ARGUMENTS[family])
    assert all(outcome.arrays for outcome in outcomes), outcomes


def test_an_improvement_makes_one_change_and_says_so_in_a_few_sentences() -> None:
    for seed in range(12):
        text = said(improvement(Shown(MINMOD, 3e-3)), seed)
        assert text.startswith("I change one thing: ")
        assert 3 <= explanation(text).replace("e.g.", "").count(". ") + 1 <= 6
        assert canonical_hash(extract_code(text)) != canonical_hash(MINMOD)


def test_improvements_mostly_promise_less_error() -> None:
    codes = rewritten(improvement(Shown(MINMOD, 3e-3)), 30)
    better = sum(merit(code) > merit(MINMOD) for code in codes) / 30
    assert better > 1 - EXPLORES - 0.25


def test_what_the_memory_tells_of_is_not_tried_again() -> None:
    designs: list[str] = []
    codes = set()
    for seed in range(14):
        text = said(improvement(Shown(MINMOD, 3e-3), designs), seed)
        assert explanation(text) not in designs
        designs.append(explanation(text))
        codes.add(extract_code(text))
    assert len(codes) == 14


def test_where_nothing_is_left_to_try_another_program_is_written() -> None:
    designs: list[str] = []
    for seed in range(60):
        text = said(improvement(Shown(MINMOD, 3e-3), designs), seed)
        if "I know no change" in text:
            break
        designs.append(explanation(text))
    assert seed > 14
    assert "I write another program" in text
    assert "def solver" in extract_code(text)


def test_a_program_of_unknown_parts_is_tuned_or_given_back() -> None:
    codes = rewritten(improvement(Shown(FOREIGN, 0.3)), 8)
    assert any("jax_enable_x64" in code for code in codes)
    assert any("CFL = 0.4" in code for code in codes)
    empty = Shown("def solver(u):\n    return 0.5 * u\n", 0.3)
    foreign = [
        Message(m.role, m.content.replace("nu*u_xx", "nu*u_xx - sinh(u_t)")) for m in improvement(empty)
    ]
    text = said(foreign)
    assert "return the program as it is" in text
    assert canonical_hash(extract_code(text)) == canonical_hash(empty.code)


def test_a_memory_in_the_prompt_is_no_result_of_the_program() -> None:
    failed = improvement(Shown(MINMOD, 3e-3), ["Status: failed (timeout)", "## Draft and ## Template"])
    assert open_question(failed)[0] == "improve"
    assert said(failed).startswith("I change one thing")


@pytest.mark.parametrize("programs", [{}, {"c001": Shown("")}])
def test_without_a_program_to_build_on_one_is_written(programs: Mapping[str, Shown]) -> None:
    assert "def solver" in extract_code(said(refinement(programs)))


def test_of_programs_of_which_none_ran_one_is_restored() -> None:
    faulty = MINMOD.replace("def limiter(a, b):", "def limiter(a, b):\n    a = -a", 1)
    text = said(refinement({"c001": Shown(faulty, inf)}), seed=1)
    assert "I build on c001" in text
    assert "def solver" in extract_code(text)


def test_without_measured_errors_the_base_is_the_best_by_reading() -> None:
    shown = {"c001": Shown(program("first-order")), "c002": Shown(program("pseudo-spectral"))}
    bases = [said(refinement(shown), seed).split("I build on ")[1][:4] for seed in range(40)]
    assert bases.count("c002") > 18
