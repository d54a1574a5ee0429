from __future__ import annotations

import pytest

from sharp.rule_based.composer import compose
from sharp.rule_based.library import FAMILIES, family_named
from sharp.rule_based.program_spec import understand

SEEDS = 40


@pytest.mark.parametrize("family", FAMILIES)
def test_a_program_that_was_understood_is_composed_again_to_the_letter(family: str) -> None:
    for seed in range(SEEDS):
        program = compose(family, seed, fault_rate=0.0)
        choices = understand(program.code, family)
        assert choices is not None
        again = choices.compose()
        assert again is not None
        assert again.code == program.code


@pytest.mark.parametrize("family", FAMILIES)
def test_every_recipe_can_be_moved_to_and_runs_into_the_same_problem(family: str) -> None:
    choices = understand(compose(family, 1, fault_rate=0.0).code, family)
    assert choices is not None
    for recipe in family_named(family).recipes:
        moved = choices.with_recipe(recipe)
        assert moved is not None
        program = moved.compose()
        assert program is not None
        assert program.choices["recipe"] == recipe.name
        assert program.code.count("LENGTH = ") <= 1
        compile(program.code, "solver.py", "exec")


@pytest.mark.parametrize("limiter", ["minmod", "superbee", "van-albada"])
def test_a_function_that_is_not_known_is_taken_for_the_block_it_resembles(limiter: str) -> None:
    family = family_named("burgers")
    choices = understand(compose("burgers", 3, fault_rate=0.0).code, "burgers")
    assert choices is not None
    moved = choices.with_recipe(next(recipe for recipe in family.recipes if recipe.name == "muscl"))
    assert moved is not None
    sound = moved.with_block(family.block("limiter", limiter)).compose()
    assert sound is not None
    faulty = sound.code.replace("def limiter(a, b):", "def limiter(a, b):\n    a = -a", 1)
    assert faulty != sound.code
    repaired = understand(faulty, "burgers")
    assert repaired is not None
    assert repaired.compose() == sound


def test_compiling_keeps_the_scheme() -> None:
    seen = 0
    for seed in range(SEEDS):
        choices = understand(compose("burgers", seed, fault_rate=0.0).code, "burgers")
        assert choices is not None
        compiled = choices.compiled()
        if compiled is None:
            continue
        seen += 1
        program = compiled.compose()
        assert program is not None
        assert "import jax" in program.code
        others = {slot for slot in choices.chosen if slot != "solver"}
        assert all(compiled.chosen[slot] == choices.chosen[slot] for slot in others)
        assert compiled.merit == choices.merit
        assert compiled.seconds <= choices.seconds
    assert seen > 5


@pytest.mark.parametrize(
    "code", ["", "x = 1\n", "def solver(u):\n    return u\n", "(", "import numpy as np\n"]
)
def test_what_is_not_recognised_is_not_understood(code: str) -> None:
    assert all(understand(code, family) is None for family in (*FAMILIES, "", "maxwell"))


def test_constants_outside_the_library_survive() -> None:
    code = compose("reaction-diffusion", 4, fault_rate=0.0).code
    changed = code.replace("LENGTH = 1.0", "LENGTH = 6.5")
    choices = understand(changed, "reaction-diffusion")
    assert choices is not None
    program = choices.compose()
    assert program is not None
    assert program.code == changed
