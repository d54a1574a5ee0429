"""The part of a program that is its mesh: axes by the shape of the data, and the way from the data to it and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sharp.llm.playbook.library import lines
from sharp.llm.playbook.library.blocks import HOST, Block
from sharp.llm.playbook.library.semidiscrete import at, joined
from sharp.problems.problem import Problem

_MOVES = (
    ("to_mesh(values, axes)", "values at the nodes of the mesh, from those at the points of the data"),
    (
        "from_mesh(values, axes, shape)",
        "values at the points of the data, from those at the nodes of the mesh",
    ),
)


@dataclass(frozen=True)
class Meshing:
    """The meshes for the grid of a problem, which repeats along the axes that are periodic."""

    problem: Problem
    periodic: frozenset[str]

    @property
    def kinds(self) -> list[str]:
        """The function that makes each axis."""
        return ["periodic" if axis in self.periodic else "bounded" for axis in self.problem.space]

    @property
    def cells(self) -> bool:
        """Whether the data are at centres of cells, so that a mesh has nodes of its own."""
        return self.problem.grid.kind == "cells"

    def blocks(self) -> Iterator[Block]:
        """Yield the function `mesh`, and what leads from the data to a mesh and back."""
        yield Block("matrix", "mesh", 2, "a mesh in space", self._mesh(), HOST)
        intervals = "count" if self.cells else "(count - 1)"
        if not self.cells:
            yield Block("grid", "given", 4, "the grid of the data", self._as_given(), HOST)
        finer = f"round(GRID_FACTOR * {intervals})"
        told = "GRID_FACTOR times those of the data"
        yield Block("grid", "own", 4, "a grid of its own", self._own(finer, told), HOST)
        yield Block(
            "grid", "nodes", 4, "nodes of its own", self._own("NODES - 1", "one less than NODES"), HOST
        )
        if "bounded" in self.kinds:
            yield from lines.INTERPOLATIONS

    def _mesh(self) -> str:
        ends = zip(self.kinds, self.problem.bounds.values(), strict=True)
        axes = [
            f"{kind}({low!r}, {high!r}, size(shape[{number}]))"
            for number, (kind, (low, high)) in enumerate(ends)
        ]
        return joined(
            "def mesh(shape):",
            '    """Return the axes of the mesh, by the shape of the data."""',
            f"    return [{', '.join(axes)}]",
        )

    def _as_given(self) -> str:
        """Return the moves where the mesh is that of the data: nodes at the end of a period are not in it."""
        there, back = [], []
        dimension = len(self.problem.space)
        for number, axis in enumerate(self.problem.space):
            if axis in self.periodic:
                first, others = at(dimension, number, ":1"), at(dimension, number, ":-1")
                there.append(f"values[{others}]")
                back.append(f"np.concatenate([values, values[{first}]], axis={number - dimension})")
        return _moves("count - 1", "those of the data", there, back)

    def _own(self, size: str, told: str) -> str:
        """Return the moves where the mesh has nodes of its own."""
        there = [step for number in range(len(self.problem.space)) for step in self._there(number)]
        back = [self._back(number) for number in range(len(self.problem.space))]
        used = [lines.AROUND] * ("periodic" in self.kinds)
        centres = "low + (high - low) * (np.arange(count) + 0.5) / count"
        where = centres if self.cells else "np.linspace(low, high, count)"
        points = joined(
            "",
            "def points(low, high, count):",
            '    """Return the points of the data along an axis."""',
            f"    return {where}",
            "",
        )
        return "\n\n".join([*used, points, _moves(size, told, there, back)])

    def _there(self, number: int) -> Iterator[str]:
        dimension, (low, high) = len(self.problem.space), list(self.problem.bounds.values())[number]
        place, nodes = number - dimension, f"axes[{number}][0]"
        points = f"points({low!r}, {high!r}, values.shape[{place}])"
        if self.kinds[number] == "bounded":
            yield f"between(values, {points}, {nodes}, {place})"
            return
        if not self.cells:
            yield f"values[{at(dimension, number, ':-1')}]"
            points = f"points({low!r}, {high!r}, values.shape[{place}] + 1)[:-1]"
        yield f"around(values, {points}, {nodes}, {high - low!r}, {place})"

    def _back(self, number: int) -> str:
        low, high = list(self.problem.bounds.values())[number]
        place, nodes = number - len(self.problem.space), f"axes[{number}][0]"
        points = f"points({low!r}, {high!r}, shape[{number}])"
        if self.kinds[number] == "bounded":
            return f"between(values, {nodes}, {points}, {place})"
        return f"around(values, {nodes}, {points}, {high - low!r}, {place})"


def _moves(size: str, told: str, there: Sequence[str], back: Sequence[str]) -> str:
    rows = [
        "",
        "def size(count):",
        f'    """Return the number of intervals of an axis of the mesh: {told}."""',
        f"    return {size}",
    ]
    for (head, what), steps in zip(_MOVES, (there, back), strict=True):
        rows += ["", "", f"def {head}:", f'    """Return {what}."""']
        rows += [*(f"    values = {step}" for step in steps), "    return values"]
    return joined(*rows, "")
