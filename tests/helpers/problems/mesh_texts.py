"""Meshes as text in Gmsh's format 2.2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# Gmsh's numbers of the kinds of cells, by their count of nodes and dimension.
_KINDS = {(2, 1): 1, (3, 2): 2, (4, 2): 3, (4, 3): 4, (3, 1): 8, (6, 2): 9}


def gmsh_text(
    points: Sequence[Sequence[float]],
    cells: Sequence[Sequence[int]],
    lines: Mapping[str, Sequence[Sequence[int]]] | None = None,
    dimension: int = 2,
) -> str:
    """Return a mesh: nodes counted from 0, cells of one dimension, and the edges of named physical groups."""
    groups = lines or {}
    names = [f'1 {tag} "{name}"' for tag, name in enumerate(groups, 1)]
    nodes = [f"{i} {' '.join(map(repr, (*map(float, p), 0.0, 0.0)[:3]))}" for i, p in enumerate(points, 1)]
    written = [(1, tag, edge) for tag, edges in enumerate(groups.values(), 1) for edge in edges]
    written += [(dimension, 99, cell) for cell in cells]
    elements = [
        f"{number} {_KINDS[len(cell), size]} 2 {tag} {tag} {' '.join(str(node + 1) for node in cell)}"
        for number, (size, tag, cell) in enumerate(written, 1)
    ]
    sections = {"MeshFormat": ["2.2 0 8"]}
    for title, content in (("PhysicalNames", names), ("Nodes", nodes), ("Elements", elements)):
        sections[title] = [str(len(content)), *content]
    return "".join(
        f"${title}\n" + "".join(f"{line}\n" for line in content) + f"$End{title}\n"
        for title, content in sections.items()
    )


def frame() -> str:
    """Return a square of side 3 without the square in its middle, in 16 triangles.

    Its lower side is `inlet`, its upper one `outlet` and the boundary of the hole `hole`; the others have no names.
    """
    points = [(x, y) for y in range(4) for x in range(4)]
    squares = [4 * y + x for y in range(3) for x in range(3) if (x, y) != (1, 1)]
    cells = [cell for a in squares for cell in ((a, a + 1, a + 5), (a, a + 4, a + 5))]
    groups = {
        "inlet": [(0, 1), (1, 2), (2, 3)],
        "outlet": [(12, 13), (13, 14), (14, 15)],
        "hole": [(5, 6), (6, 10), (10, 9), (9, 5)],
    }
    return gmsh_text(points, cells, groups)
