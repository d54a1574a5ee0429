"""The library of numerical methods: blocks of solver source for five families of equations, and what joins them.

Families for other equations are made from their descriptions, which serve as their names.
"""

from __future__ import annotations

from collections.abc import Mapping

from sharp.llm.playbook.library.advection import ADVECTION
from sharp.llm.playbook.library.blocks import Block, Family, Recipe, render
from sharp.llm.playbook.library.burgers import BURGERS
from sharp.llm.playbook.library.darcy import DARCY
from sharp.llm.playbook.library.made import made
from sharp.llm.playbook.library.navier_stokes import NAVIER_STOKES
from sharp.llm.playbook.library.reaction_diffusion import REACTION_DIFFUSION

FAMILIES: Mapping[str, Family] = {
    family.name: family for family in (ADVECTION, BURGERS, REACTION_DIFFUSION, NAVIER_STOKES, DARCY)
}

__all__ = ["FAMILIES", "Block", "Family", "Recipe", "family_named", "family_of", "render"]


def family_of(name: str) -> Family | None:
    """Return the family of a name; for a specification in JSON the one that is made from it, None where none can be."""
    return FAMILIES.get(name) or (made(name).family if name.startswith("{") else None)


def family_named(name: str) -> Family:
    """Return the family of a name; raises KeyError where `family_of` knows none."""
    family = family_of(name)
    if family is None:
        raise KeyError(name)
    return family
