"""Composing a solver program: a recipe, a block for every slot, constants, sometimes a fault."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sharp.rule_based.assembly import link
from sharp.rule_based.code_faults import inject_fault
from sharp.rule_based.library import (
    FAMILIES,
    CodeBlock,
    EquationFamily,
    Level,
    Library,
    SolverRecipe,
    family_of,
)

LIBRARIES: tuple[Library, ...] = ("numpy", "scipy", "jax")


@dataclass(frozen=True)
class ComposedProgram:
    """One composed program.

    `choices` names the recipe, the block of every slot used, the array library, the precision and the constants;
    `fault` is the name of the injected mistake (see `library.faults`) or None; `plan` is what an author would say
    about it before the code.
    """

    code: str
    title: str
    plan: str
    strategy: str
    choices: Mapping[str, str]
    fault: str | None


def strategies(family: str) -> tuple[str, ...]:
    """Return the strategies that the library has recipes for, in the order of the library."""
    return tuple(dict.fromkeys(recipe.strategy for recipe in _family(family).recipes))


def compose(
    family: str,
    seed: int,
    *,
    strategy: str | None = None,
    level: Level = "any",
    recipes: Collection[str] | None = None,
    fault_rate: float = 0.25,
) -> ComposedProgram:
    """Return the program that a seed stands for; the same arguments always give the same program.

    `recipes` names those that come into question, if not all of the strategy and the level do.
    With probability `fault_rate` the program has one fault; the sound program beneath is the same at every rate.
    """
    source = _family(family)
    rng = random.Random(f"{family}/{strategy}/{level}/{seed}")
    recipe = _draw_recipe(source, strategy, level, recipes, rng)
    library = rng.choice(admissible_libraries(source, recipe))
    chosen = {slot: rng.choice(_blocks(source, slot, names, library)) for slot, names in recipe.slots.items()}
    precision = rng.choice(recipe.precisions)
    admissible = {**source.constants, **recipe.constants}
    constants = {name: rng.choice(values) for name, values in admissible.items()}
    program = build(source, recipe, chosen, library, precision, constants)
    if rng.random() >= fault_rate:
        return program
    code, fault = inject_fault(program.code, rng)
    return replace(program, code=code, fault=fault)


def build(
    family: EquationFamily,
    recipe: SolverRecipe,
    chosen: Mapping[str, CodeBlock],
    library: Library,
    precision: str,
    constants: Mapping[str, str],
) -> ComposedProgram:
    """Return the sound program of a complete set of choices."""
    if library == "scipy" and not any("xp.fft." in block.source for block in chosen.values()):
        library = "numpy"
    code, slots, kept = link(family, chosen, library, precision, constants, recipe.strategy)
    choices = {
        "recipe": recipe.name,
        **{slot: chosen[slot].name for slot in slots},
        "library": library,
        "precision": precision,
        **{name: constants[name] for name in kept if name in constants},
    }
    summaries = [chosen[slot].summary for slot in slots if slot != "solver"]
    plan = f"{recipe.idea} Building blocks: {', '.join(summaries)}."
    return ComposedProgram(code, f"{family.name}: {recipe.name}", plan, recipe.strategy, choices, None)


def admissible_libraries(family: EquationFamily, recipe: SolverRecipe) -> list[Library]:
    """Return the array libraries in which every slot of a recipe has a block."""
    return [
        library
        for library in recipe.libraries
        if all(_blocks(family, slot, names, library) for slot, names in recipe.slots.items())
    ]


def _family(name: str) -> EquationFamily:
    family = family_of(name)
    if family is None:
        raise ValueError(f"there is no library for {name!r}; it knows {', '.join(FAMILIES)}")
    return family


def _blocks(family: EquationFamily, slot: str, names: Sequence[str], library: Library) -> list[CodeBlock]:
    blocks = (family.block(slot, name) for name in names)
    return [block for block in blocks if library in block.libraries]


def _draw_recipe(
    family: EquationFamily,
    strategy: str | None,
    level: Level,
    names: Collection[str] | None,
    rng: random.Random,
) -> SolverRecipe:
    fitting = [
        recipe
        for recipe in family.recipes
        if strategy in (None, recipe.strategy)
        and level in ("any", recipe.level)
        and (names is None or recipe.name in names)
    ]
    if not fitting:
        raise ValueError(
            f"the {family.name} library has no {strategy!r} recipe of level {level!r}"
            f"{'' if names is None else f' among {sorted(names)}'}; it has {', '.join(strategies(family.name))}"
        )
    return rng.choices(fitting, [recipe.weight for recipe in fitting])[0]
