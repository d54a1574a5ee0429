"""What a solver program is made of: blocks of source, recipes that name fitting blocks, and families of both.

A block is a few functions written in an array-neutral form; rendering replaces the tokens

    xp.        np. or jnp. (and xp.fft. by scipy's fft. where the program uses SciPy)
    ARGS       the equation's parameters as the inner functions pass them on
    SIGNATURE  the parameters of `solver`;  INITIAL, RESULT  how it reads its input and shapes its output
    FIELD(…)   from the output grid to the solver's own grid;  FRAME(…)  and back

Functions of one slot share their names and parameters across all programs of a family, so any of them can take
the place of any other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

Library = Literal["numpy", "scipy", "jax"]
Level = Literal["any", "simple"]
HOST: tuple[Library, ...] = ("numpy", "scipy")
ANY: tuple[Library, ...] = ("numpy", "scipy", "jax")
JAX: tuple[Library, ...] = ("jax",)

# Every name a program may import, with the line that imports it.
IMPORTS: Mapping[str, str] = {
    "math": "import math",
    "lru_cache": "from functools import lru_cache",
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "np": "import numpy as np",
    "lax": "from jax import lax",
    "fft": "from scipy import fft",
    "sparse": "from scipy import sparse",
    "special": "from scipy import special",
    "solve_ivp": "from scipy.integrate import solve_ivp",
    "CubicSpline": "from scipy.interpolate import CubicSpline",
    "make_interp_spline": "from scipy.interpolate import make_interp_spline",
    "solve_banded": "from scipy.linalg import solve_banded",
    "map_coordinates": "from scipy.ndimage import map_coordinates",
    "linalg": "from scipy.sparse import linalg",
    "expit": "from scipy.special import expit",
    "logit": "from scipy.special import logit",
}

_GRID_SIZES = {"FIELD": "round(GRID_FACTOR * initial.shape[-1])", "FRAME": "initial.shape[-1]"}


@dataclass(frozen=True)
class Block:
    """Interchangeable source of one slot.

    `rank` orders the blocks of a slot by how much an analyst trusts them for accuracy (0 poor, 1 first order,
    2 second order, 3 high order or robust choice, 4 exact or spectral); `summary` is a noun phrase for docstrings.
    """

    slot: str
    name: str
    rank: int
    summary: str
    source: str
    libraries: tuple[Library, ...] = ANY


@dataclass(frozen=True)
class Recipe:
    """One way to solve a family's equation: for each slot the names of the blocks that fit together.

    `constants` holds the admissible values, as source text, where they differ from the family's; `weight` is how
    often the recipe is drawn relative to the others of its family.
    """

    name: str
    strategy: str
    idea: str
    slots: Mapping[str, tuple[str, ...]]
    libraries: tuple[Library, ...] = ANY
    precisions: tuple[str, ...] = ("float64", "float64", "float32")
    constants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    weight: float = 1.0
    level: Level = "any"


@dataclass(frozen=True)
class Family:
    """An equation, the interface of its solver, and everything known about solving it.

    `constants` maps each tunable name to its admissible values, the usual one first.
    """

    name: str
    title: str
    signature: str
    returns: str
    args: str
    initial: str
    result: str
    constants: Mapping[str, tuple[str, ...]]
    blocks: tuple[Block, ...]
    recipes: tuple[Recipe, ...]

    def block(self, slot: str, name: str) -> Block:
        """Return the block called `name` of a slot; KeyError names both if there is none."""
        for block in self.blocks:
            if (block.slot, block.name) == (slot, name):
                return block
        raise KeyError(f"the {self.name} library has no block {name!r} in slot {slot!r}")

    def alternatives(self, slot: str) -> tuple[Block, ...]:
        """Return all blocks of a slot, the best-ranked first."""
        return tuple(sorted((b for b in self.blocks if b.slot == slot), key=lambda b: -b.rank))


def render(family: Family, block: Block, library: Library, *, own_grid: bool = False) -> str:
    """Return a block's functions as they stand in a program of the family.

    With `own_grid` the program solves on a grid of its own: `FIELD` and `FRAME` become calls of `resample`.
    """
    text = block.source.strip("\n")
    for token in ("INITIAL", "RESULT"):
        text = _fill_indented(text, token, getattr(family, token.lower()))
    for token, cells in _GRID_SIZES.items():
        text = re.sub(rf"\b{token}\((\w+)\)", rf"resample(\1, {cells})" if own_grid else r"\1", text)
    text = text.replace("SIGNATURE", family.signature).replace("RETURNS", family.returns)
    text = re.sub(r"\bARGS\b", family.args, text)
    if library == "scipy":
        text = text.replace("xp.fft.", "fft.")
    return re.sub(r"\bxp\.", "jnp." if library == "jax" else "np.", text)


def _fill_indented(text: str, token: str, lines: str) -> str:
    return re.sub(
        rf"^( *){token}$",
        lambda match: "\n".join(match[1] + line for line in lines.strip().splitlines()),
        text,
        flags=re.MULTILINE,
    )


@cache
def defined_names(source: str) -> tuple[str, ...]:
    """Return the functions and constants that a piece of source defines at its top level, in order."""
    names: list[str] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return tuple(names)


@cache
def used_names(source: str) -> tuple[str, ...]:
    """Return the names that a block of functions reads and does not bind itself, in the order of appearance."""
    nodes = list(ast.walk(ast.parse(source)))
    bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    bound |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    loads = [node for node in nodes if isinstance(node, ast.Name) and node.id not in bound]
    ordered = sorted(loads, key=lambda node: (node.lineno, node.col_offset))
    return tuple(dict.fromkeys(node.id for node in ordered))
