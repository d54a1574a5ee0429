"""From a program that was read to the choices that would compose it, and back: how programs are changed."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache, cached_property

from sharp.rule_based.assembly import render
from sharp.rule_based.composer import ComposedProgram, admissible_libraries, build
from sharp.rule_based.estimates import contributions, merit, seconds
from sharp.rule_based.library import CodeBlock, Library, SolverRecipe, family_named, family_of
from sharp.rule_based.program_analysis import ProgramAnalysis, is_number, read


@dataclass(frozen=True)
class ProgramSpec:
    """Everything that decides a program of the library. Constants are source texts by name."""

    family: str
    recipe: SolverRecipe
    chosen: Mapping[str, CodeBlock]
    library: Library
    precision: str
    constants: Mapping[str, str]

    def compose(self) -> ComposedProgram | None:
        """Return the program of these choices, or None where they do not fit together."""
        family = family_named(self.family)
        if self.library not in admissible_libraries(family, self.recipe):
            return None
        if any(self.library not in block.libraries for block in self.chosen.values()):
            return None
        try:
            return build(
                family, self.recipe, self.chosen, self.library, self.precision, self._all_constants()
            )
        except KeyError:
            return None

    def _all_constants(self) -> dict[str, str]:
        family = family_named(self.family)
        defaults = {name: values[0] for name, values in {**family.constants, **self.recipe.constants}.items()}
        return {**defaults, **self.constants}

    def with_block(self, block: CodeBlock) -> ProgramSpec:
        """Return the choices with another block in its slot."""
        return replace(self, chosen={**self.chosen, block.slot: block})

    def with_constant(self, name: str, value: str) -> ProgramSpec:
        """Return the choices with another value of a constant."""
        return replace(self, constants={**self.constants, name: value})

    def with_recipe(self, recipe: SolverRecipe) -> ProgramSpec | None:
        """Return the choices moved to another recipe, None where it has no complete set of blocks.

        What fits stays, and the best blocks fill the rest; values that the recipe restricts give way to its own.
        """
        libraries = admissible_libraries(family_named(self.family), recipe)
        if not libraries:
            return None
        library = self.library if self.library in libraries else libraries[0]
        kept = {name: text for name, text in self.constants.items() if name not in recipe.constants}
        chosen = _filled(self.family, recipe, self.chosen, library)
        return replace(self, recipe=recipe, library=library, constants=kept, chosen=chosen)

    @cached_property
    def errors(self) -> dict[str, float]:
        """The estimated error of every part of the scheme."""
        return contributions(self.family, self.chosen, self._numbers, single=self.precision == "float32")

    @cached_property
    def _numbers(self) -> dict[str, float]:
        return {name: float(text) for name, text in self._all_constants().items() if is_number(text)}

    @property
    def merit(self) -> float:
        """How many digits the scheme promises."""
        return merit(self.errors)

    @property
    def seconds(self) -> float:
        """About how long the program runs; 0 where that cannot be told."""
        return seconds(self.family, self.chosen, self._numbers, compiled=self.library == "jax")

    def compiled(self) -> ProgramSpec | None:
        """Return the same scheme with its loop over steps compiled by JAX, None where that is so or cannot be."""
        names = [n for n in self.recipe.slots.get("solver", ()) if n.startswith("compiled")]
        others = [block for slot, block in self.chosen.items() if slot != "solver"]
        if self.library == "jax" or not names or any("jax" not in block.libraries for block in others):
            return None
        if "jax" not in admissible_libraries(family_named(self.family), self.recipe):
            return None
        return replace(self.with_block(family_named(self.family).block("solver", names[0])), library="jax")


def understand(code: str, family: str) -> ProgramSpec | None:
    """Return the choices that come closest to a program, or None where nothing in it is recognised.

    A function that is in no catalogue is taken for the one of its name that it resembles most; what is missing
    altogether is filled with the best blocks that fit.
    """
    reading = read(code, family)
    if family_of(family) is None or not reading.blocks:
        return None
    library = _library(reading)
    blocks = {**_resembling(reading, library), **reading.blocks}
    recipe = max(
        family_named(family).recipes, key=lambda recipe: _agreement(recipe, blocks, reading, library)
    )
    return ProgramSpec(
        family=family,
        recipe=recipe,
        chosen=_filled(family, recipe, blocks, library),
        library=library,
        precision="float32" if reading.single else "float64",
        constants=reading.constants,
    )


def _library(reading: ProgramAnalysis) -> Library:
    if reading.uses_jax:
        return "jax"
    return "scipy" if reading.uses_scipy_fft else "numpy"


def _resembling(reading: ProgramAnalysis, library: Library) -> dict[str, CodeBlock]:
    """Return for the functions that are not known the blocks that they resemble most, by slot."""
    best: dict[str, tuple[float, CodeBlock]] = {}
    for block in family_named(reading.family).blocks if reading.unknown else ():
        written = _functions(reading.family, block, library)
        common = sorted(written.keys() & reading.unknown.keys())
        texts = [[source[name] for name in common] for source in (written, reading.unknown)]
        ratio = _similarity(*texts) if common else 0.0
        if common and (block.slot not in best or ratio > best[block.slot][0]):
            best[block.slot] = ratio, block
    return {slot: block for slot, (_, block) in best.items()}


@cache
def _functions(family: str, block: CodeBlock, library: Library) -> dict[str, str]:
    """Return the functions of a block as `ast` writes them, by name."""
    nodes = ast.parse(render(family_named(family), block, library)).body
    return {node.name: ast.unparse(node) for node in nodes if isinstance(node, ast.FunctionDef)}


def _similarity(written: Sequence[str], found: Sequence[str]) -> float:
    """Return the share of lines that two groups of functions have in common, in order."""
    before, after = "\n".join(written).splitlines(), "\n".join(found).splitlines()
    return SequenceMatcher(None, after, before, autojunk=False).ratio()


def _agreement(
    recipe: SolverRecipe, blocks: Mapping[str, CodeBlock], reading: ProgramAnalysis, library: Library
) -> tuple[bool, int, bool, int]:
    """Rank recipes by whether they can be written so, how much of the program they explain, and how little they add."""
    fitting = sum(block.name in recipe.slots.get(slot, ()) for slot, block in blocks.items())
    admissible = library in admissible_libraries(family_named(reading.family), recipe)
    own_grid = ({"grid", "output"} & recipe.slots.keys() != set()) == ("GRID_FACTOR" in reading.constants)
    return admissible, fitting, own_grid, -len(recipe.slots)


def _filled(
    family: str, recipe: SolverRecipe, blocks: Mapping[str, CodeBlock], library: Library
) -> dict[str, CodeBlock]:
    source = family_named(family)
    filled = {}
    for slot, names in recipe.slots.items():
        known = blocks.get(slot)
        if known is not None and known.name in names and library in known.libraries:
            filled[slot] = known
            continue
        fitting = [source.block(slot, name) for name in names]
        fitting = [block for block in fitting if library in block.libraries] or fitting
        filled[slot] = max(fitting, key=lambda block: block.rank)
    return filled
