"""Domains from mesh files: the region and its parts, the arcs of quadratic edges, and what is refused."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from sharp.errors import SpecificationError
from sharp.problems import PlaneDomain, Problem, load_problem, parse_problem, to_document, to_yaml
from tests.helpers.problems.mesh_texts import frame, gmsh_text

SQUARE = [(0, 0), (1, 0), (1, 1), (0, 1)]
HALVES = [(0, 1, 2), (0, 2, 3)]
FORMAT_4 = """\
$MeshFormat
4.1 0 8
$EndMeshFormat
$PhysicalNames
2
1 7 "hot side"
2 9 "plate"
$EndPhysicalNames
$Entities
2 1 1 0
1 0 0 0 0
2 1 0 0 0
1 0 0 0 1 0 0 1 7 2 1 -2
1 0 0 0 1 1 0 1 9 1 1
$EndEntities
$Nodes
1 4 1 4
2 1 0 4
1
2
3
4
0 0 0
1 0 0
1 1 0
0 1 0
$EndNodes
$Elements
2 3 1 3
1 1 1 1
1 1 2
2 1 2 2
2 1 2 3
3 1 3 4
$EndElements
"""


def write(folder: Path, mesh: str, domain: str = "type: mesh, file: part.msh") -> Path:
    """Write a mesh, and a specification in the same folder whose domain it is."""
    (folder / "part.msh").write_text(mesh)
    path = folder / "plate.yaml"
    path.write_text(
        "pde_spec: 1\nid: plate\ntitle: plate\ncoordinates: {space: [x, y]}\nfields: [u]\n"
        f"equations: [lap(u) = 1]\ndomain: {{{domain}}}\n"
        "boundary: [{where: all, type: dirichlet, field: u, value: 0}]\n"
    )
    return path


def plane(problem: Problem) -> PlaneDomain:
    assert isinstance(problem.domain, PlaneDomain)
    return problem.domain


def quadratic_disk(width: float, height: float, count: int = 8, turn: float = 2 * math.pi) -> str:
    """Return triangles of second order about the origin, whose edges at an ellipse have nodes on it."""
    whole = turn == 2 * math.pi
    angles = [turn * k / (2 * count) for k in range(2 * count + (0 if whole else 1))]
    rim = [(width * math.cos(angle), height * math.sin(angle)) for angle in angles]
    spokes = [(x / 2, y / 2) for x, y in rim[::2]]
    inner = 1 + len(rim)
    cells, edges = [], []
    for k in range(count):
        a, middle, b = 1 + 2 * k, 2 + 2 * k, 1 + (2 * k + 2) % len(rim)
        after = (k + 1) % len(spokes)
        cells.append((0, a, b, inner + k, middle, inner + after))
        edges.append((a, b, middle))
    return gmsh_text([(0, 0), *rim, *spokes], cells, {"rim": edges})


def test_a_frame_has_its_sides_and_named_parts(tmp_path: Path) -> None:
    domain = plane(load_problem(write(tmp_path, frame())))
    assert domain.area == pytest.approx(8)
    assert [len(loop) for loop in domain.loops] == [4, 4], "neighbouring edges on a line are one segment"
    assert set(domain.parts) == {"inlet", "outlet", "hole", "loop 0"}
    assert domain.on_axis("y", 0.0) == ("inlet",)
    assert {piece.start for piece in domain.loops[1]} == {(1, 1), (2, 1), (2, 2), (1, 2)}


def test_the_problem_holds_the_geometry_and_not_the_file(tmp_path: Path) -> None:
    first = load_problem(write(tmp_path, frame()))
    (tmp_path / "part.msh").unlink()
    again = parse_problem(to_yaml(first), "again.yaml")
    assert plane(again).loops == plane(first).loops
    assert "mesh" not in str(to_document(first)["domain"]["type"])
    other = load_problem(write(tmp_path, gmsh_text(SQUARE, HALVES)))
    assert to_document(other) != to_document(first)


def test_a_path_may_be_absolute_and_a_mesh_part_of_a_union_or_have_holes(tmp_path: Path) -> None:
    mesh = gmsh_text(SQUARE, HALVES)
    absolute = write(tmp_path, mesh, f"type: mesh, file: {tmp_path / 'part.msh'}")
    assert plane(parse_problem(absolute.read_text(), "elsewhere")).area == pytest.approx(1)
    holed = "type: mesh, file: part.msh, holes: [{type: disk, center: [0.5, 0.5], radius: 0.25}]"
    assert plane(load_problem(write(tmp_path, mesh, holed))).area == pytest.approx(1 - math.pi / 16)
    both = "type: union, of: [{type: mesh, file: part.msh}, {type: box, bounds: {x: [0.5, 2], y: [0, 1]}}]"
    assert plane(load_problem(write(tmp_path, mesh, both))).area == pytest.approx(2)


def test_triangles_may_run_either_way_round_and_lie_at_any_height(tmp_path: Path) -> None:
    points = [(x, y, 7.0) for x, y in SQUARE]
    for cells in ([(0, 1, 2), (0, 3, 2)], [(2, 1, 0), (0, 3, 2)], [(0, 3, 2, 1)]):
        domain = plane(load_problem(write(tmp_path, gmsh_text(points, cells))))
        assert domain.area == pytest.approx(1)
        assert domain.parts == ("loop 0",)


def test_quadratic_edges_on_a_circle_become_arcs(tmp_path: Path) -> None:
    domain = plane(load_problem(write(tmp_path, quadratic_disk(2, 2))))
    assert domain.area == pytest.approx(4 * math.pi, rel=1e-12)
    assert len(domain.pieces) == 4
    assert domain.parts == ("rim",)


def test_quadratic_edges_on_other_curves_become_two_segments(tmp_path: Path) -> None:
    domain = plane(load_problem(write(tmp_path, quadratic_disk(2, 1))))
    assert len(domain.pieces) == 16
    assert domain.area == pytest.approx(8 * 2 * math.sin(math.pi / 8))


def test_a_quadratic_sector_has_straight_and_round_sides(tmp_path: Path) -> None:
    domain = plane(load_problem(write(tmp_path, quadratic_disk(1, 1, 4, math.pi / 2))))
    assert [(piece.part, piece.center is None) for piece in domain.pieces] == [
        ("loop 0", True),
        ("rim", False),
        ("loop 0", True),
    ]
    assert domain.area == pytest.approx(math.pi / 4)


def test_a_file_of_the_newer_format_is_read(tmp_path: Path) -> None:
    domain = plane(load_problem(write(tmp_path, FORMAT_4)))
    assert domain.area == pytest.approx(1)
    assert [piece.part for piece in domain.pieces] == ["hot side", "loop 0", "loop 0", "loop 0"]


def test_a_sector_with_straight_edges_stays_a_polygon(tmp_path: Path) -> None:
    rim = [(math.cos(k * math.pi / 12), math.sin(k * math.pi / 12)) for k in range(7)]
    cells = [(0, k, k + 1) for k in range(1, 7)]
    domain = plane(
        load_problem(
            write(tmp_path, gmsh_text([(0, 0), *rim], cells, {"rim": [(k, k + 1) for k in range(1, 7)]}))
        )
    )
    assert len(domain.pieces) == 8
    assert domain.area == pytest.approx(3 * math.sin(math.pi / 12))


APART = [*SQUARE, *((x + 5, y) for x, y in SQUARE)]
TOUCHING = [*SQUARE, (2, 1), (2, 2), (1, 2)]
REFUSED = {
    "not a mesh": ("hello\n", "cannot be read as a mesh; expected a file of Gmsh"),
    "empty": ("", "cannot be read as a mesh"),
    "no triangles": (gmsh_text(SQUARE, [], {"wall": [(0, 1)]}), "expected a mesh with triangles, found none"),
    "apart": (
        gmsh_text(APART, [*HALVES, (4, 5, 6), (4, 6, 7)]),
        "expected a mesh that hangs together, found 2 pieces",
    ),
    "solid": (
        gmsh_text([*SQUARE[:3], (0, 0, 1)], [(0, 1, 2, 3)], dimension=3),
        "expected a mesh of the plane, found tetra cells",
    ),
    "bent": (
        gmsh_text([(0, 0, 0), (1, 0, 0), (1, 1, 1), (0, 1, 1)], HALVES),
        "expected a mesh of the plane, found z that varies from 0 to 1",
    ),
    "three on an edge": (
        gmsh_text([*SQUARE, (2, 0)], [*HALVES, (0, 4, 2)]),
        "found 3 cells at the edge from (0, 0) to (1, 1)",
    ),
    "folded": (gmsh_text([*SQUARE[:3], (2, 0)], [(0, 1, 2), (0, 3, 2)]), "found two cells on the same side"),
    "touching": (
        gmsh_text(TOUCHING, [*HALVES, (2, 4, 5), (2, 5, 6)]),
        "the boundary of the mesh touches itself in (1, 1)",
    ),
    "slit": (
        gmsh_text(
            [(x, y) for y in range(3) for x in range(3)] + [(1, 0)],
            [(0, 1, 4, 3), (9, 2, 5, 4), (3, 4, 7, 6), (4, 5, 8, 7)],
        ),
        "touches or crosses itself at (1, 0)",
    ),
    "named all": (gmsh_text(SQUARE, HALVES, {"all": [(0, 1)]}), "neither 'all' nor with the word 'and'"),
    "named oddly": (gmsh_text(SQUARE, HALVES, {"x = 0": [(3, 0)]}), "found a text 'x = 0'"),
    "too many pieces": (
        gmsh_text(
            [(0, 0), *((math.cos(k * math.pi / 600), math.sin(k * math.pi / 600)) for k in range(1200))],
            [(0, 1 + k, 1 + (k + 1) % 1200) for k in range(1200)],
        ),
        "expected a boundary of at most 1000 segments and arcs",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    mesh, message = REFUSED[name]
    path = write(tmp_path, mesh)
    with pytest.raises(SpecificationError) as refused:
        load_problem(path)
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"{path}:7: domain")
    assert len(str(refused.value).splitlines()) == 1
    assert capfd.readouterr() == ("", ""), "the reader's own messages are not shown"


def test_a_missing_file_and_a_missing_reader_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, frame(), "type: mesh, file: other.msh")
    with pytest.raises(
        SpecificationError, match=r"domain\.file: expected a mesh file.*other\.msh is no file"
    ):
        load_problem(path)
    monkeypatch.setitem(sys.modules, "meshio", None)
    with pytest.raises(SpecificationError, match=r"pip install 'pde-sharp\[mesh\]'"):
        load_problem(path)


@pytest.mark.parametrize(
    ("loops", "message"),
    {
        "[[{start: [0, 0], part: a}, {start: [0, 1], part: a}, {start: [1, 0], part: a}]]": "found 0 counter-clockwise",
        "[[{start: [0, 0], part: a, through: [1, 0]}, {start: [2, 0], part: a, through: [1, 1]}]]": "off the line",
        "[[{start: [0, 0], part: a}, {start: [0, 0], part: a}, {start: [1, 0], part: a}]]": "expected another point",
        "[[{start: [0, 0], part: a}, {start: [2, 2], part: b}, {start: [2, 0], part: b}, {start: [0, 1], part: a}]]": (
            "touches or crosses itself"
        ),
        "[[{start: [0, 0], part: all}, {start: [0, 1], part: a}, {start: [1, 0], part: a}]]": "found a text 'all'",
    }.items(),
)
def test_a_region_that_is_wrong_is_refused(loops: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match=message):
        load_problem(write(tmp_path, "", f"type: region, loops: {loops}"))
