"""Putting blocks together to a program: which blocks, constants and imports a choice needs, and in which order."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from sharp.llm.playbook.library.blocks import (
    IMPORTS,
    Block,
    Family,
    Library,
    defined_names,
    render,
    used_names,
)

_STANDARD = ("import math", "from functools import lru_cache")
_X64 = 'jax.config.update("jax_enable_x64", True)'
_STEPPING_SLOTS = ("step", "solver")


def link(
    family: Family,
    chosen: Mapping[str, Block],
    library: Library,
    precision: str,
    constants: Mapping[str, str],
    strategy: str,
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return a program's code, the slots it really uses and the constants it really reads.

    Starting from `solver`, every name that a block reads is looked up among the functions of the chosen blocks, the
    constants and the imports; blocks and constants that nothing reads are left out. Raises KeyError for a function
    that no chosen block defines (seen as a name of another block of the family).
    """
    own_grid = "grid" in chosen
    sources = {slot: render(family, block, library, own_grid=own_grid) for slot, block in chosen.items()}
    slots = _dependency_order(family, sources)
    body = [sources[slot] for slot in slots]
    read = {name for source in body for name in used_names(source)}
    values = {"DTYPE": f"{'jnp' if library == 'jax' else 'np'}.{precision}", **constants}
    kept = tuple(name for name in sorted(values) if name in read)
    assignments = [f"{name} = {values[name]}" for name in kept]
    read |= {"jnp", "jax"} if library == "jax" and precision == "float64" else set()
    read |= {name for line in assignments for name in used_names(line)}
    header = _docstring(family, [chosen[slot] for slot in slots], library, precision, strategy)
    preamble = [_imports(read)]
    if library == "jax" and precision == "float64":
        preamble.append(_X64)
    preamble.append("\n".join(assignments))
    code = "\n\n".join([header, *filter(None, preamble)]) + "\n\n\n" + "\n\n\n".join(body) + "\n"
    return code, slots, kept


def _dependency_order(family: Family, sources: Mapping[str, str]) -> tuple[str, ...]:
    home = {name: slot for slot, source in sources.items() for name in defined_names(source)}
    slot_of_function = {name: block.slot for block in family.blocks for name in _function_names(block)}
    ordered: list[str] = []

    def visit(slot: str) -> None:
        if slot in ordered:
            return
        for name in used_names(sources[slot]):
            if name in slot_of_function and name not in home:
                raise KeyError(f"slot {slot!r} calls {name!r}, which no chosen block defines")
            if home.get(name, slot) != slot:
                visit(home[name])
        ordered.append(slot)

    visit(home["solver"])
    return tuple(ordered)


def _function_names(block: Block) -> tuple[str, ...]:
    lines = block.source.splitlines()
    return tuple(line[4:].split("(")[0] for line in lines if line.startswith("def "))


def _imports(read: set[str]) -> str:
    lines = [line for name, line in IMPORTS.items() if name in read]
    groups = [[x for x in lines if x in _STANDARD], [x for x in lines if x not in _STANDARD]]
    return "\n\n".join("\n".join(group) for group in groups if group)


def _docstring(family: Family, blocks: list[Block], library: Library, precision: str, strategy: str) -> str:
    scheme = "; ".join(block.summary for block in blocks if block.slot not in _STEPPING_SLOTS)
    stepping = "; ".join(block.summary for block in blocks if block.slot in _STEPPING_SLOTS)
    name = {"numpy": "NumPy", "scipy": "NumPy and SciPy", "jax": "JAX"}[library]
    lines = [
        f"Strategy: {strategy}",
        f"Scheme: {scheme}",
        f"Stepping: {stepping}",
        f"Arrays: {name}, {precision}",
    ]
    body = "\n".join(textwrap.fill(line, 100, subsequent_indent="    ") for line in lines)
    return f'"""{family.title}.\n\n{body}\n"""'
