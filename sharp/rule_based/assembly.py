"""Putting blocks together to a program: the functions, constants and imports that a choice needs, in order."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping
from functools import cache

from sharp.rule_based.library import CodeBlock, EquationFamily, Library, used_names

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
    "linalg": "from scipy.sparse import linalg",
}
_STANDARD = ("import math", "from functools import lru_cache")
_X64 = 'jax.config.update("jax_enable_x64", True)'
_STEPPING_SLOTS = ("step", "solver")


def render(family: EquationFamily, block: CodeBlock, library: Library, slots: Collection[str] = ()) -> str:
    """Return a block's functions as they are written in a program of the family that has blocks in these slots."""
    return rendered(family, block.source, library, slots)


def rendered(family: EquationFamily, source: str, library: Library, slots: Collection[str] = ()) -> str:
    """Return source as it is written in a program of the family that has blocks in these slots."""
    text = source.replace('"""Return the solution."""', f'"""{family.returns}"""')
    text = _with_lines(text, r"[\w, ]+ = read_inputs\(\*inputs\)", family.read_inputs)
    text = _with_lines(text, r"return write_outputs\(solution\)", family.write_outputs)
    for name, transfer in family.transfers.items():
        call = transfer.call.format(r"\1") if transfer.slot in slots else r"\1"
        text = re.sub(rf"\b{name}\((\w+)\)", call, text)
    text = text.replace("*inputs", family.signature)
    for marker, names in (("*args", family.args), ("*group_args", family.group_args)):
        text = text.replace(f", {marker}", f", {names}" if names else "")
    if library == "scipy":
        text = text.replace("xp.fft.", "fft.")
    return re.sub(r"\bxp\.", "jnp." if library == "jax" else "np.", text)


def _with_lines(text: str, pattern: str, lines: str) -> str:
    """Return source with the lines of a pattern replaced by others, indented as these were."""
    return re.sub(
        rf"^( *){pattern}$",
        lambda found: textwrap.indent(lines.strip(), found[1]),
        text,
        flags=re.MULTILINE,
    )


def link(
    family: EquationFamily,
    chosen: Mapping[str, CodeBlock],
    library: Library,
    precision: str,
    constants: Mapping[str, str],
    strategy: str,
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return a program's code, the slots it really uses and the constants it really reads.

    Starting from `solver`, every name that a function reads is looked up among the functions of the chosen blocks, the
    constants and the imports; functions and constants that nothing reads are left out. Raises KeyError for a function
    that no chosen block defines (seen as a name of another block of the family).
    """
    sources = {slot: functions_of(render(family, block, library, chosen)) for slot, block in chosen.items()}
    home = {name: slot for slot, functions in sources.items() for name in functions}
    helpers = {name: rendered(family, source, library, chosen) for name, source in family.helpers.items()}
    own = {name: text for functions in sources.values() for name, text in functions.items()}
    body = in_order({**helpers, **own}, "solver", _names_of(family.blocks))
    slots = tuple(dict.fromkeys(home[name] for name in body if name in home))
    read = names_read(body.values())
    values = {"DTYPE": f"{'jnp' if library == 'jax' else 'np'}.{precision}", **constants}
    kept = tuple(name for name in sorted(values) if name in read)
    assignments = [f"{name} = {values[name]}" for name in kept]
    read |= {"jnp", "jax"} if library == "jax" and precision == "float64" else set()
    read |= {name for line in assignments for name in used_names(line)}
    header = _docstring(family, [chosen[slot] for slot in slots], library, precision, strategy)
    preamble = [imports(read)]
    if library == "jax" and precision == "float64":
        preamble.append(_X64)
    preamble.append("\n".join(assignments))
    functions = "\n\n\n".join(body.values())
    code = "\n\n".join([header, *filter(None, preamble)]) + f"\n\n\n{functions}\n"
    return code, slots, kept


def in_order(functions: Mapping[str, str], entry: str, elsewhere: Collection[str] = ()) -> dict[str, str]:
    """Return the functions that one of them needs, each after those that it calls.

    Raises KeyError where one calls a function that is `elsewhere` alone.
    """
    ordered: dict[str, str] = {}

    def visit(name: str) -> None:
        for used in used_names(functions[name]):
            if used in functions and used not in ordered:
                visit(used)
            elif used in elsewhere and used not in functions:
                raise KeyError(f"{name!r} calls {used!r}, which no chosen block defines")
        ordered[name] = functions[name]

    visit(entry)
    return ordered


@cache
def _names_of(blocks: tuple[CodeBlock, ...]) -> frozenset[str]:
    return frozenset(re.findall(r"^def (\w+)", "\n".join(block.source for block in blocks), re.MULTILINE))


@cache
def functions_of(source: str) -> dict[str, str]:
    """Return the functions of a piece of source by name, decorators included."""
    lines = source.splitlines()
    nodes = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    first = {
        node.name: min([node.lineno, *(found.lineno for found in node.decorator_list)]) for node in nodes
    }
    return {node.name: "\n".join(lines[first[node.name] - 1 : node.end_lineno]) for node in nodes}


def names_read(functions: Iterable[str]) -> set[str]:
    """Return the names that functions read and do not bind themselves."""
    return {name for text in functions for name in used_names(text)}


def imports(read: Collection[str]) -> str:
    """Return the lines that import what is read, the standard library first."""
    lines = [line for name, line in IMPORTS.items() if name in read]
    groups = [[x for x in lines if x in _STANDARD], [x for x in lines if x not in _STANDARD]]
    return "\n\n".join("\n".join(group) for group in groups if group)


def _docstring(
    family: EquationFamily, blocks: list[CodeBlock], library: Library, precision: str, strategy: str
) -> str:
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
