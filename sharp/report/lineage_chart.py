"""Drawing the lineage: one row a layer, oldest on top."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from markupsafe import Markup

from sharp.report.drawings import Edge, Layer, Lineage, Node
from sharp.report.scales import spread
from sharp.report.svg import Point, drawing, label, line, mark, markup, node

TITLE = "Lineage of the programs"
WIDTH, HEIGHT = 92.0, 40.0
COLUMN, ROW = 108.0, 84.0
GUTTER, MARGIN = 78.0, 10.0
MOST_COLUMNS = 8
LANE = 4.0


@dataclass(frozen=True)
class _Row:
    name: str
    nodes: tuple[Node, ...]


def draw_lineage(lineage: Lineage, description: str) -> Markup:
    """Return the drawing."""
    rows = tuple(row for layer in lineage.layers for row in _rows(layer))
    places = _places(rows, lineage.edges)
    size = (GUTTER + COLUMN * _columns(rows) + MARGIN, ROW * len(rows) + MARGIN)
    drawn = drawing(
        "lineage-drawing", TITLE, description, size, _parts(rows, lineage.edges, places), "drawing fixed"
    )
    # On a narrow page it shrinks a little before it has to be scrolled.
    drawn.set("style", f"min-width:{0.8 * size[0]:.0f}px")
    return markup(node("div", drawn, class_="scroll", tabindex="0"))


def _rows(layer: Layer) -> Iterator[_Row]:
    """Break a layer that is too wide into several rows."""
    for start in range(0, len(layer.nodes), MOST_COLUMNS):
        yield _Row(layer.name if start == 0 else "", layer.nodes[start : start + MOST_COLUMNS])


def _columns(rows: Sequence[_Row]) -> int:
    return max(len(row.nodes) for row in rows)


def _places(rows: Sequence[_Row], edges: Sequence[Edge]) -> dict[str, Point]:
    """Return the middle of each node, all in common columns: below its base as far as its neighbours let it."""
    bases = {edge.child: edge.parent for edge in edges if not edge.donor}
    last = _columns(rows) - 1
    columns: dict[str, float] = {}
    places: dict[str, Point] = {}
    for index, row in enumerate(rows):
        count = len(row.nodes)
        own = [round(last * (position + 0.5) / count) for position in range(count)]
        wanted = [
            columns.get(bases.get(item.id, ""), even) for item, even in zip(row.nodes, own, strict=True)
        ]
        for item, column in zip(row.nodes, spread(wanted, 1, 0, last), strict=True):
            columns[item.id] = column
            places[item.id] = (GUTTER + COLUMN * (column + 0.5), ROW * (index + 0.5))
    return places


def _parts(rows: Sequence[_Row], edges: Sequence[Edge], places: Mapping[str, Point]) -> Iterator[Element]:
    for index, row in enumerate(rows):
        if row.name and index:
            y = ROW * index
            yield line((0, y), (GUTTER + COLUMN * _columns(rows), y), "grid")
        yield from _row_name(row.name, ROW * (index + 0.5))
    for edge in sorted(edges, key=lambda item: not item.donor):
        yield _edge(places[edge.parent], places[edge.child], edge)
    for row in rows:
        for item in row.nodes:
            yield _box(item, places[item.id])


def _row_name(name: str, y: float) -> Iterator[Element]:
    for index, part in enumerate(name.split(", ")):
        yield label((2, y + 4 + 15 * index), part)


def _edge(start: Point, end: Point, edge: Edge) -> Element:
    words = "takes ideas from" if edge.donor else "was made from"
    tip = node("title", f"{edge.child} {words} {edge.parent}")
    return node("path", tip, d=_curve(start, end), class_="edge donor" if edge.donor else "edge")


def _curve(start: Point, end: Point) -> str:
    """Return the way from below one node to above another; past nodes in between it keeps to a gap of the columns."""
    top, bottom = (start[0], start[1] + HEIGHT / 2), (end[0], end[1] - HEIGHT / 2)
    if end[1] - start[1] < 1.5 * ROW:
        return f"M{top[0]:.1f},{top[1]:.1f}{_bend(top, bottom)}"
    side = -0.5 if start[0] < end[0] else 0.5
    # Neighbouring columns use different lanes of a gap, so that their edges can be told apart.
    gap = end[0] + side * COLUMN + LANE * (start[0] // COLUMN % 3 - 1)
    entry, leave = (gap, start[1] + ROW - HEIGHT / 2), (gap, end[1] - ROW + HEIGHT / 2)
    return (
        f"M{top[0]:.1f},{top[1]:.1f}{_bend(top, entry)}L{leave[0]:.1f},{leave[1]:.1f}{_bend(leave, bottom)}"
    )


def _bend(start: Point, end: Point) -> str:
    middle = (start[1] + end[1]) / 2
    return f"C{start[0]:.1f},{middle:.1f} {end[0]:.1f},{middle:.1f} {end[0]:.1f},{end[1]:.1f}"


def _box(item: Node, at: Point) -> Element:
    x, y = at
    judges = [
        mark((x - WIDTH / 2 + 9 + 11 * n, y - HEIGHT / 2), judge, "filled")
        for n, judge in enumerate(item.judges)
    ]
    name = f"★ {item.id}" if item.state == "winner" else item.id
    return node(
        "g",
        node("title", f"{item.id}: {item.result}; {item.description}"),
        node("rect", x=x - WIDTH / 2, y=y - HEIGHT / 2, width=WIDTH, height=HEIGHT, rx=6),
        label((x, y - 3), name, "label name", "middle"),
        label((x, y + 13), item.result, "label", "middle"),
        *judges,
        class_=f"program {item.state}",
    )
