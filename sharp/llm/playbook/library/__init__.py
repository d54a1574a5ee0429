"""The library of numerical methods: blocks of solver source for five families of equations, and what joins them."""

from __future__ import annotations

from collections.abc import Mapping

from sharp.llm.playbook.library.advection import ADVECTION
from sharp.llm.playbook.library.blocks import Block, Family, Recipe, render
from sharp.llm.playbook.library.burgers import BURGERS
from sharp.llm.playbook.library.darcy import DARCY
from sharp.llm.playbook.library.navier_stokes import NAVIER_STOKES
from sharp.llm.playbook.library.reaction_diffusion import REACTION_DIFFUSION

FAMILIES: Mapping[str, Family] = {
    family.name: family for family in (ADVECTION, BURGERS, REACTION_DIFFUSION, NAVIER_STOKES, DARCY)
}

__all__ = ["FAMILIES", "Block", "Family", "Recipe", "render"]
