"""The Python template that every solver of a problem fills in."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from sharp.problems.interface_text import (
    TIMES,
    axes_text,
    input_text,
    return_text,
    shape,
    signature,
    sizes_text,
)
from sharp.problems.problem import Problem

_WIDTH = 96


def render_template(problem: Problem) -> str:
    """Return the source of a Python module: the solver's signature and documentation, without a body."""
    title = problem.title.replace("\\", "\\\\").replace('"', '\\"')
    lines = [
        f'"""{title}."""',
        "",
        "import numpy as np",
        "",
        "",
        f"def {signature(problem)}:",
        *(f"    {line}".rstrip() for line in _docstring(problem)),
        "    raise NotImplementedError",
    ]
    return "\n".join(lines) + "\n"


def _docstring(problem: Problem) -> Iterator[str]:
    interface = problem.interface
    yield '"""Solve the problem for a batch of samples at once.'
    yield ""
    for equation in problem.specification.equations:
        yield from _wrapped(equation, "    ", "        ")
    yield ""
    yield "Arguments:"
    for port in interface.inputs:
        yield from _entry(port.name, f"array {shape(port)}, {input_text(problem, port)}.")
    if interface.coordinates:
        yield from _entry(interface.coordinates, f"array [T+1], {TIMES}.")
    for name in interface.parameters:
        yield from _entry(name, "a number, the parameter of the equations.")
    yield ""
    yield "Returns:" if len(interface.returns) == 1 else "Returns a tuple of:"
    for port in interface.returns:
        yield from _entry(port.name, f"array {shape(port)}, {return_text(problem, port)}.")
    yield ""
    yield from _wrapped(axes_text(problem))
    yield from _wrapped(sizes_text(problem))
    yield '"""'


def _entry(name: str, text: str) -> list[str]:
    return _wrapped(f"{name}: {text}", "    ", "        ")


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    """Break text into lines, but for what is marked as code with backticks, which are dropped."""
    kept = re.sub(r"`[^`]*`", lambda code: code.group()[1:-1].replace(" ", "\0"), text)
    lines = textwrap.wrap(kept, _WIDTH, initial_indent=first, subsequent_indent=rest)
    return [line.replace("\0", " ") for line in lines]
