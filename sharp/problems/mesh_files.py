"""Meshes from files as regions of the plane: what their cells cover, and the named parts of its boundary.

The cells themselves are not kept: a region is meshed again, to the accuracy that is asked for.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.errors import SpecificationError
from sharp.problems.curves import arc
from sharp.problems.domains import Vertex
from sharp.problems.spec import MOST_PIECES, Region, part_name

Array = NDArray[np.float64]
Indices = NDArray[np.int_]

# Corners of the cells; nodes in the middles of their edges follow in the same order, where there are any.
_CORNERS = {"triangle": 3, "triangle6": 3, "quad": 4, "quad8": 4, "quad9": 4}
_LINES = ("line", "line3")
_SOLID = ("tetra", "hexahedron", "wedge", "pyramid")
# Nearer than this share of the size of the mesh, nodes count as lying on a line or circle.
_ROUNDING = 1e-9
# Arcs are joined up to somewhat more than a quarter of a circle, as circles are drawn elsewhere.
_LONGEST_ARC = 1.6


@dataclass(frozen=True)
class _Stretch:
    """A part of the boundary: a segment with two nodes, or an arc through three or more."""

    nodes: tuple[Vertex, ...]
    part: str
    curved: bool


def read_region(path: Path) -> Region:
    """Return the region that the cells of a mesh file cover.

    Parts of its boundary have the names of Gmsh's physical lines, others `loop 0` around it and `loop 1` and so on
    around openings. Neighbouring edges of one part on a line are one segment, edges of second order on a circle arcs;
    other edges of second order are two segments. Raises `SpecificationError` for what is no connected plane mesh.
    """
    mesh = _read(path)
    edges = _directed_edges(path, mesh)
    points = _plane_points(path, mesh, edges)
    loops = _ordered(path, list(_loops(path, _boundary(path, edges, points), points)), points)
    names = _part_names(path, mesh)
    slack = _ROUNDING * float(np.ptp(points[edges[:, 0]], axis=0).max())
    written = []
    for number, loop in enumerate(loops):
        stretches = _stretches(loop, points, names, f"loop {number}", slack)
        written.append([_piece(stretch) for stretch in _joined(stretches, slack)])
    if (count := sum(map(len, written))) > MOST_PIECES:
        raise SpecificationError(
            f"{path}: expected a boundary of at most {MOST_PIECES} segments and arcs after straight and circular "
            f"ones are joined, found {count}"
        )
    return Region.model_validate({"type": "region", "loops": written})


def _read(path: Path) -> Any:
    """Return the mesh of a file."""
    try:
        import meshio
    except ImportError:
        raise SpecificationError(
            "reading a mesh needs meshio, which is not installed: pip install 'pde-sharp[mesh]'"
        ) from None
    if not path.is_file():
        raise SpecificationError(f"expected a mesh file, relative to the specification; {path} is no file")
    silence = io.StringIO()
    try:
        # The reader prints what it tried, leaves the program, and lets errors of its parsers through.
        with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
            return meshio.read(path)
    except (Exception, SystemExit):  # noqa: BLE001
        raise SpecificationError(
            f"{path} cannot be read as a mesh; expected a file of Gmsh (.msh) or of another format of meshio"
        ) from None


def _directed_edges(path: Path, mesh: Any) -> Indices:
    """Return the edges [n, 3] of all cells: first node, last node, that in the middle or -1; one cell after another."""
    found = []
    for block in mesh.cells:
        if block.type.startswith(_SOLID):
            raise SpecificationError(f"{path}: expected a mesh of the plane, found {block.type} cells")
        if block.type in _CORNERS:
            count, cells = _CORNERS[block.type], np.asarray(block.data, dtype=int)
            corners, middles = cells[:, :count], cells[:, count : 2 * count]
            if not middles.size:
                middles = np.full_like(corners, -1)
            edges = np.stack([corners, np.roll(corners, -1, axis=1), middles], axis=2)
            # Cells may run either way round in a file; here all run counter-clockwise.
            x, y = np.moveaxis(np.asarray(mesh.points, dtype=float)[corners, :2], 2, 0)
            area = np.sum(x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1), axis=1)
            edges[area < 0] = edges[area < 0][:, :, [1, 0, 2]]
            found.append(edges.reshape(-1, 3))
        elif block.type not in (*_LINES, "vertex"):
            raise SpecificationError(
                f"{path}: expected triangles or quadrilaterals of first or second order, found {block.type} cells"
            )
    if not found or not sum(map(len, found)):
        raise SpecificationError(f"{path}: expected a mesh with triangles, found none")
    return np.vstack(found)


def _plane_points(path: Path, mesh: Any, edges: Indices) -> Array:
    """Return the nodes [n, 2] of a mesh whose cells lie in a plane z = constant."""
    points = np.asarray(mesh.points, dtype=float)
    used = points[np.unique(edges[edges >= 0])]
    if not np.isfinite(used).all():
        raise SpecificationError(f"{path}: expected finite coordinates of all nodes")
    spread = np.ptp(used, axis=0)
    if len(spread) > 2 and spread[2] > _ROUNDING * max(spread[:2]):
        low, high = used[:, 2].min(), used[:, 2].max()
        raise SpecificationError(
            f"{path}: expected a mesh of the plane, found z that varies from {low:g} to {high:g}"
        )
    return np.asarray(points[:, :2])


def _boundary(path: Path, edges: Indices, points: Array) -> Indices:
    """Return the edges [n, 3] that belong to one cell, which lies on their left."""
    ends = np.sort(edges[:, :2], axis=1)
    _, first, inverse, counts = np.unique(
        ends, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    forwards = np.bincount(inverse.ravel(), weights=edges[:, 0] < edges[:, 1])
    # Two cells on an edge lie on its two sides, where they do not overlap.
    wrong = np.flatnonzero((counts > 2) | ((counts == 2) & (forwards != 1)))
    if len(wrong):
        index = wrong[0]
        (a, b), (c, d) = points[ends[first[index]]]
        how = f"{counts[index]} cells" if counts[index] > 2 else "two cells on the same side"
        raise SpecificationError(
            f"{path}: expected cells that do not overlap, found {how} at the edge from ({a:g}, {b:g}) to ({c:g}, {d:g})"
        )
    return np.asarray(edges[np.sort(first[counts == 1])])


def _loops(path: Path, boundary: Indices, points: Array) -> Iterator[list[Indices]]:
    """Yield closed loops of edges."""
    following: dict[int, Indices] = {}
    for edge in boundary:
        if int(edge[0]) in following:
            x, y = points[edge[0]]
            raise SpecificationError(f"{path}: the boundary of the mesh touches itself in ({x:g}, {y:g})")
        following[int(edge[0])] = edge
    for start in sorted(following):
        loop: list[Indices] = []
        while (node := int(loop[-1][1]) if loop else start) in following:
            loop.append(following.pop(node))
        if loop:
            yield loop


def _ordered(path: Path, loops: list[list[Indices]], points: Array) -> list[list[Indices]]:
    """Return the loops with the one around the mesh first."""

    def area(loop: list[Indices]) -> float:
        x, y = points[[edge[0] for edge in loop]].T
        return float(x @ np.roll(y, -1) - y @ np.roll(x, -1))

    around = [loop for loop in loops if area(loop) > 0]
    if len(around) != 1:
        raise SpecificationError(
            f"{path}: expected a mesh that hangs together, found {len(around)} pieces that share no nodes"
        )
    return around + [loop for loop in loops if loop is not around[0]]


def _part_names(path: Path, mesh: Any) -> dict[tuple[int, int], str]:
    """Return the names of edges, by their two nodes in ascending order: those of physical lines."""
    groups = {int(tag): name for name, (tag, dimension) in mesh.field_data.items() if dimension == 1}
    tags = mesh.cell_data.get("gmsh:physical", [np.zeros(0)] * len(mesh.cells))
    found = {}
    for block, numbers in zip(mesh.cells, tags, strict=True):
        if block.type in _LINES:
            for nodes, tag in zip(block.data, numbers, strict=False):
                if tag > 0:
                    low, high = sorted(map(int, nodes[:2]))
                    found[low, high] = groups.get(int(tag), f"group {int(tag)}")
    for name in dict.fromkeys(found.values()):
        try:
            part_name(name)
        except ValueError as error:
            raise SpecificationError(f"{path}: of a physical group: {error}") from None
    return found


def _stretches(
    loop: list[Indices], points: Array, names: dict[tuple[int, int], str], other: str, slack: float
) -> list[_Stretch]:
    """Return the edges of a loop as segments, and as arcs where they and a neighbour lie on one circle."""
    found = []
    for first, last, middle in loop:
        part = names.get((int(min(first, last)), int(max(first, last))), other)
        nodes = [_vertex(points[node]) for node in (first, middle, last) if node >= 0]
        curved = len(nodes) == 3 and not _on_line(nodes, slack)
        found.append(_Stretch(tuple(nodes) if curved else (nodes[0], nodes[-1]), part, curved))
    result = []
    for index, stretch in enumerate(found):
        before, after = found[index - 1], found[(index + 1) % len(found)]
        # Three points lie on some circle; five do where the curve is one.
        if stretch.curved and not any(_is_one(pair, slack) for pair in ((before, stretch), (stretch, after))):
            start, middle, end = stretch.nodes
            result += [
                _Stretch((start, middle), stretch.part, False),
                _Stretch((middle, end), stretch.part, False),
            ]
        else:
            result.append(stretch)
    return result


def _joined(stretches: list[_Stretch], slack: float) -> list[_Stretch]:
    """Return the stretches of a loop, neighbours joined that are one segment or arc."""
    corner = next(
        (i for i, each in enumerate(stretches) if not _is_one((stretches[i - 1], each), slack)),
        0,
    )
    result: list[_Stretch] = []
    for stretch in (*stretches[corner:], *stretches[:corner]):
        if result and _is_one((result[-1], stretch), slack):
            stretch = _one(result.pop(), stretch)
        result.append(stretch)
    return result


def _one(first: _Stretch, second: _Stretch) -> _Stretch:
    return _Stretch((*first.nodes, *second.nodes[1:]), first.part, first.curved)


def _is_one(pair: tuple[_Stretch, _Stretch], slack: float) -> bool:
    """Whether a stretch and the next are one segment, or one arc that is not too long."""
    first, second = pair
    if first is second or (first.part, first.curved) != (second.part, second.curved):
        return False
    nodes = _one(first, second).nodes
    if not first.curved:
        return _on_line(nodes, slack)
    try:
        whole = arc(nodes[0], nodes[len(nodes) // 2], nodes[-1], first.part)
    except ValueError:
        return False
    return abs(whole.sweep) <= _LONGEST_ARC and bool((whole.distance(np.array(nodes)) <= slack).all())


def _on_line(nodes: Sequence[Vertex], slack: float) -> bool:
    """Whether nodes follow each other on the segment between the first and the last."""
    offsets = np.subtract(nodes, nodes[0])
    length = float(np.hypot(*offsets[-1]))
    if length <= slack:
        return False
    x, y = offsets[-1] / length
    along, across = offsets @ (x, y), offsets @ (-y, x)
    return bool((np.abs(across) <= slack).all() and (np.diff(along) > 0).all())


def _piece(stretch: _Stretch) -> dict[str, Any]:
    """Return a stretch as it is written in a specification."""
    written: dict[str, Any] = {"start": stretch.nodes[0], "part": stretch.part}
    if stretch.curved:
        written["through"] = stretch.nodes[len(stretch.nodes) // 2]
    return written


def _vertex(point: Array) -> Vertex:
    return float(point[0]), float(point[1])
