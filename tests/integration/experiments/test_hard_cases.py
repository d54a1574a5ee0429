"""The second hundred: references agree with what is found in another way; the rule-based model knows no case."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from sharp.errors import ModelRefused, SpecificationError
from sharp.experiments.hard_cases.checks import faults
from sharp.experiments.hard_cases.families import HardCase, list_hard_cases, load_hard_case
from sharp.problems import list_cases, list_ill_posed
from sharp.rule_based.agents import known_case

CASES = list_hard_cases()


@pytest.mark.parametrize("name", CASES)
def test_what_is_known_of_a_case_agrees_with_another_way_to_find_it(name: str) -> None:
    assert list(faults(load_hard_case(name))) == []


def test_a_hundred_cases_of_all_kinds_have_statements_in_several_styles_and_languages() -> None:
    assert len(CASES) >= 100
    assert min(Counter(CASES.values()).values()) >= 4
    cases = [load_hard_case(name).case for name in CASES]
    styles = Counter(said.style for case in cases for said in case.statements)
    assert {"plain", "words", "units", "scrambled", "distracting", "german", "chinese"} <= styles.keys()
    assert sum(len(case.problem.quantities) > 1 for case in cases) >= 15
    assert all(said.text.count("{") == 0 for case in cases for said in case.statements)


def test_no_case_is_known_to_the_rule_based_model() -> None:
    assert not CASES.keys() & {*list_cases(), *list_ill_posed()}
    for name in CASES:
        for said in load_hard_case(name).case.statements:
            with pytest.raises(ModelRefused):
                known_case(said.text)


def shifted(case: HardCase) -> HardCase:
    """The case with another solution or other eigenvalues, and other numbers."""
    numbers = {name: 1.01 * value + 0.01 for name, value in case.numbers.items()}
    if isinstance(exact := case.exact, tuple):
        return replace(case, exact=tuple(1.001 * value for value in exact), numbers=numbers)
    return replace(case, exact=lambda points, times: exact(points, 0.95 * times) * 1.02, numbers=numbers)


WRONG = (
    "gas-tube-lax dam-break-high tail-of-a-queue-city two-phase-front-equal ring-drum-wide clamped-reed-reed "
    "slice-of-a-drum-pacman ground-water-mound-gas flash-short triangle-drum-unit"
)


@pytest.mark.parametrize("name", WRONG.split())
def test_a_wrong_reference_is_found(name: str) -> None:
    assert list(faults(shifted(load_hard_case(name))))


def test_a_shock_that_rarefies_is_found() -> None:
    """A fan may not be replaced by a jump: the balance holds, but entropy grows."""
    case = load_hard_case("burgers-fan-slow")

    def jump(points: np.ndarray, times: np.ndarray) -> np.ndarray:
        return np.where(points[:, 0] < 0.6 * times[:, None], 0.2, 1.0)[None]

    assert any("entropy grows" in fault for fault in faults(replace(case, exact=jump)))


def test_an_unknown_case_lists_the_known_ones() -> None:
    with pytest.raises(SpecificationError, match="unknown case 'gas-tube-sodd'; did you mean 'gas-tube-sod'"):
        load_hard_case("gas-tube-sodd")
