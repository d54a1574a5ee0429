from __future__ import annotations

import pytest

from sharp.rule_based.composer import compose
from sharp.rule_based.derived_family import family_named
from sharp.rule_based.library import FAMILIES
from sharp.rule_based.program_analysis import understand
from tests.helpers.rule_based.described_problems import asked, case
from tests.helpers.rule_based.programs import code_of, program, understood

SEEDS = 40


# Equations outside the library, which have families as well.
DESCRIBED = ("heat-rod-two-ends", "wave-spring-end", "checkerboard")


@pytest.mark.parametrize("family", [*FAMILIES, *DESCRIBED])
def test_a_program_that_was_understood_is_composed_again_to_the_letter(family: str) -> None:
    name = family if family in FAMILIES else asked(case(family)).name
    composed = [compose(name, seed, fault_rate=0.0) for seed in range(SEEDS)]
    assert len({made.code for made in composed}) >= 14
    for made in composed:
        choices = understood(made.code, name)
        assert code_of(choices) == made.code
        assert name == family or choices.recipe.name == made.choices["recipe"]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_recipe_can_be_moved_to_and_runs_into_the_same_problem(family: str) -> None:
    choices = understood(compose(family, 1, fault_rate=0.0).code, family)
    for recipe in family_named(family).recipes:
        code = code_of(choices.with_recipe(recipe))
        assert code.count("LENGTH = ") <= 1
        compile(code, "solver.py", "exec")


@pytest.mark.parametrize("limiter", ["minmod", "superbee", "van-albada"])
def test_a_function_that_is_not_known_is_taken_for_the_block_it_resembles(limiter: str) -> None:
    sound = program("muscl", limiter=limiter)
    faulty = sound.replace("def limiter(a, b):", "def limiter(a, b):\n    a = -a", 1)
    assert faulty != sound
    assert code_of(understood(faulty)) == sound


def test_compiling_keeps_the_scheme() -> None:
    seen = 0
    for seed in range(SEEDS):
        choices = understood(compose("burgers", seed, fault_rate=0.0).code)
        compiled = choices.compiled()
        if compiled is None:
            continue
        seen += 1
        assert "import jax" in code_of(compiled)
        others = {slot for slot in choices.chosen if slot != "solver"}
        assert all(compiled.chosen[slot] == choices.chosen[slot] for slot in others)
        assert compiled.scheme.merit == choices.scheme.merit
        assert compiled.scheme.seconds <= choices.scheme.seconds
    assert seen > 5


@pytest.mark.parametrize(
    "code", ["", "x = 1\n", "def solver(u):\n    return u\n", "(", "import numpy as np\n"]
)
def test_what_is_not_recognised_is_not_understood(code: str) -> None:
    assert all(understand(code, family) is None for family in (*FAMILIES, "", "maxwell"))


def test_constants_outside_the_library_survive() -> None:
    code = compose("reaction-diffusion", 4, fault_rate=0.0).code
    changed = code.replace("LENGTH = 1.0", "LENGTH = 6.5")
    assert code_of(understood(changed, "reaction-diffusion")) == changed
