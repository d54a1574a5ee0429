"""Programs of the library by their choices, and what the rule-based model answers."""

from __future__ import annotations

import random
from collections.abc import Sequence

from sharp.llm.protocol import Message
from sharp.rule_based.answers import answer
from sharp.rule_based.composer import ProgramSpec, compose
from sharp.rule_based.derived_family import family_named
from sharp.rule_based.program_analysis import understand

PROBLEM_OF = {
    "advection": "advection",
    "burgers": "burgers",
    "reaction-diffusion": "reaction-diffusion",
    "navier-stokes-1d": "navier-stokes",
    "darcy-2d": "darcy",
}
PROBLEMS = tuple(PROBLEM_OF.values())
FOREIGN = """import jax.numpy as jnp

CFL = 0.8


def solver(u0_batch, t_coordinate, nu):
    return jnp.stack([u0_batch * CFL for _ in t_coordinate], axis=1)
"""


def said(messages: Sequence[Message], seed: int = 0) -> str:
    return answer(messages, random.Random(seed))


def understood(code: str, family: str = "burgers") -> ProgramSpec:
    choices = understand(code, family)
    assert choices is not None
    return choices


def code_of(choices: ProgramSpec | None) -> str:
    made = choices and choices.compose()
    assert made is not None
    return made.code


def program(recipe: str, family: str = "burgers", **blocks: str) -> str:
    """Return a NumPy program of the library by its recipe and some of its blocks."""
    drawn = (compose(family, seed, fault_rate=0.0) for seed in range(100))
    choices = understood(next(p.code for p in drawn if p.choices["library"] == "numpy"), family)
    moved = choices.with_recipe(next(r for r in family_named(family).recipes if r.name == recipe))
    for slot, name in blocks.items():
        moved = moved and moved.with_block(family_named(family).block(slot, name))
    return code_of(moved)
