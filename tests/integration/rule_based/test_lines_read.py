"""Programs for equations outside the library, read, judged, spoilt and repaired as the library's own are."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.rule_based.code_faults import code_faults
from sharp.rule_based.composer import compose
from sharp.rule_based.conversation_state import SeenProgram
from sharp.rule_based.judging import faults
from sharp.rule_based.program_analysis import read
from sharp.rule_based.proposed_changes import options
from tests.helpers.rule_based.described_problems import arguments, asked, case, family
from tests.helpers.rule_based.program_runs import Outcome, run_calls

NAMES = ("heat-rod-two-ends", "wave-spring-end", "checkerboard")
FAULTY = 24


@pytest.mark.parametrize("case_name", NAMES)
def test_better_parts_promise_more(case_name: str) -> None:
    name = asked(case(case_name)).name
    best = {
        recipe: max(
            read(compose(name, seed, recipes=[recipe], fault_rate=0.0).code, name).merit for seed in range(6)
        )
        for recipe in ("explicit-lines", "first-order-implicit")
    }
    assert best["explicit-lines"] > best["first-order-implicit"] + 0.5


@pytest.mark.parametrize("case_name", NAMES)
def test_changes_lead_to_programs_that_can_be_verified(case_name: str) -> None:
    name = asked(case(case_name)).name
    base = SeenProgram("c001", compose(name, 1, recipes=["first-order-implicit"], fault_rate=0.0).code)
    found = [option for option in options(base, name, []) if option.gain > 0]
    assert {option.kind for option in found} >= {"scheme"}
    for option in found:
        code = option.code()
        assert code is not None
        assert not faults(code, name), option.what


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Outcome, Outcome]]:
    """Run sound and faulty programs of the same choices: the fault, and both outcomes."""
    problem = case("heat-wire-ring")
    name, given = asked(problem).name, arguments(problem, {"x": 31}, batch=1)
    pairs = [
        (compose(name, seed, fault_rate=0.0), compose(name, seed, fault_rate=1.0)) for seed in range(FAULTY)
    ]
    calls = [(program.code, given) for pair in pairs for program in pair]
    results = run_calls(tmp_path_factory.mktemp("mistaken"), calls)
    return [
        (str(faulty.fault), results[2 * number], results[2 * number + 1])
        for number, (_, faulty) in enumerate(pairs)
    ]


def test_faults_show_what_they_say(mistaken: list[tuple[str, Outcome, Outcome]]) -> None:
    kinds = {fault.name: fault.shows for fault in code_faults()}
    hidden = [name for name, plain, faulty in mistaken if not _shown(kinds[name], plain, faulty)]
    assert len({name for name, _, _ in mistaken}) >= 8
    assert len(hidden) <= 0.1 * len(mistaken), hidden


def _shown(shows: str, plain: Outcome, faulty: Outcome) -> bool:
    assert not plain.error
    if shows == "slow":
        return faulty.printed > 20 * plain.printed
    if faulty.error or faulty.arrays[0].shape != plain.arrays[0].shape or not faulty.finite:
        return True
    size = np.abs(plain.arrays[0]).max()
    return shows != "crash" and bool(np.abs(faulty.arrays[0] - plain.arrays[0]).max() > 1e-5 * size)


def test_the_equation_the_differences_and_the_mesh_can_be_mistaken() -> None:
    name = asked(case("heat-wire-ring")).name
    code = compose(name, 0, recipes=["explicit-lines"], fault_rate=0.0).code
    changed = {fault.name: fault.apply(code) for fault in code_faults()}
    assert "rate[0] = -(" in str(changed["sign-error"])
    for wrong in ("sign-error", "long-step", "missing-import", "misspelt-name", "printed-steps", "cut-off"):
        assert changed[wrong] not in (None, code), wrong


def test_every_recipe_is_drawn() -> None:
    problem = case("heat-rod-two-ends")
    name = asked(problem).name
    drawn = {compose(name, seed, fault_rate=0.0).choices["recipe"] for seed in range(80)}
    assert drawn == {recipe.name for recipe in family(problem).recipes}
