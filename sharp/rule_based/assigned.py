"""The method that a prompt asks a program to follow, and which parts of the library come nearest to it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sharp.rule_based import prompt_markers as marks
from sharp.rule_based.library import CodeBlock, EquationFamily, Library, SolverRecipe
from sharp.rule_based.tables import table

_LIBRARIES: tuple[tuple[str, Library], ...] = (("JAX", "jax"), ("SciPy", "scipy"), ("NumPy", "numpy"))


@dataclass(frozen=True)
class AskedMethod:
    """What a program is asked to follow: patterns of its parts, one for each that the library knows, and its arrays."""

    patterns: tuple[str, ...]
    library: Library

    def score(self, family: EquationFamily, recipe: SolverRecipe, libraries: Collection[Library]) -> int:
        """Return how many of the parts asked for a recipe can have."""
        blocks = [family.block(slot, name) for slot, names in recipe.slots.items() for name in names]
        texts = [recipe.name, *map(_text, blocks)]
        met = sum(any(re.search(pattern, text) for text in texts) for pattern in self.patterns)
        return met + (self.library in libraries)

    def preferred(self, blocks: Sequence[CodeBlock]) -> Sequence[CodeBlock]:
        """Return those blocks of a slot that were asked for, or all where none was."""
        asked = [b for b in blocks if any(re.search(pattern, _text(b)) for pattern in self.patterns)]
        return asked or blocks


def asked_method(prompt: str) -> AskedMethod | None:
    """Return the method that a prompt asks for at its end, None if it leaves the choice."""
    _, heading, asked = prompt.rpartition(marks.METHOD_ASKED)
    if not heading:
        return None
    patterns = tuple(pattern for words, pattern in table("words")["methods"] if words in asked)
    return AskedMethod(patterns, next((library for name, library in _LIBRARIES if name in asked), "numpy"))


def _text(block: CodeBlock) -> str:
    return f"{block.name} {block.summary}"
