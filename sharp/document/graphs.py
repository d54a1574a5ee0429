"""Drawing graphs: one row below the other, edges past other nodes through the gaps between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sharp.document.charts import Graph, GraphEdge, GraphNode, GraphRow
from sharp.document.sketch import Sketch, label, palette, series_colour, series_marker

Point = tuple[float, float]

WIDEST = 960.0
HEIGHT, ROW = 40.0, 84.0  # of a box, and of a row of boxes
GAP = 18.0  # between the boxes of a row
NARROW, BROAD = 92.0, 190.0  # the least and the largest width of a box
LETTER = 7.4
LANE = 4.0
MARGIN = 8.0


def draw_graph(graph: Graph) -> Sketch:
    """Return the drawing of a graph."""
    layout = _layout(graph)
    width = layout.gutter + layout.column * layout.columns + MARGIN
    sketch = Sketch(width, ROW * len(layout.rows) + MARGIN)
    axes = sketch.axes(0, 0, sketch.width, sketch.height)
    axes.set(xlim=(0, sketch.width), ylim=(sketch.height, 0))
    axes.set_axis_off()
    for index, row in enumerate(layout.rows):
        if row.name and index:
            axes.axhline(ROW * index, color=palette()["grid"], linewidth=0.8)
        for line, part in enumerate(row.name.split(", ")):
            axes.text(2, ROW * (index + 0.5) + 15 * line, label(part, 14), va="center")
    for edge in sorted(graph.edges, key=lambda item: not item.minor):
        _draw_edge(sketch, layout, edge)
    for row in layout.rows:
        for node in row.nodes:
            _draw_node(sketch, layout, node)
    return sketch


@dataclass(frozen=True)
class _Layout:
    """Where boxes are: `places` has the middle of each; `column` is the width of one."""

    rows: Sequence[GraphRow]
    places: Mapping[str, Point]
    box: float
    columns: int
    gutter: float

    @property
    def column(self) -> float:
        return self.box + GAP


def _layout(graph: Graph) -> _Layout:
    texts = [text for row in graph.rows for node in row.nodes for text in (node.id, node.detail)]
    box = min(max([NARROW, *(LETTER * len(text) + 12 for text in texts)]), BROAD)
    gutter = 84.0 if any(row.name for row in graph.rows) else MARGIN
    most = int((WIDEST - gutter) / (box + GAP))
    rows = tuple(part for row in graph.rows for part in _broken(row, most))
    columns = max(len(row.nodes) for row in rows)
    return _Layout(rows, _places(rows, graph.edges, columns, box + GAP, gutter), box, columns, gutter)


def _broken(row: GraphRow, most: int) -> Iterator[GraphRow]:
    """Break a row that is too wide into several."""
    for start in range(0, len(row.nodes), most):
        yield GraphRow(row.name if start == 0 else "", row.nodes[start : start + most])


def _places(
    rows: Sequence[GraphRow], edges: Sequence[GraphEdge], columns: int, column: float, gutter: float
) -> dict[str, Point]:
    """Return the middle of each node, all in common columns: below its sources as far as its neighbours let it."""
    sources: dict[str, list[str]] = {}
    for edge in edges:
        if not edge.minor:
            sources.setdefault(edge.target, []).append(edge.source)
    found: dict[str, int] = {}
    for row in rows:
        free = list(range(columns))
        for position, node in enumerate(row.nodes):
            above = [found[name] for name in sources.get(node.id, ()) if name in found]
            even = (columns - 1) * (position + 0.5) / len(row.nodes)
            wanted = sum(above) / len(above) if above else even
            found[node.id] = min(free, key=lambda place: (abs(place - wanted), place))
            free.remove(found[node.id])
    return {
        node.id: (gutter + column * (found[node.id] + 0.5), ROW * (index + 0.5))
        for index, row in enumerate(rows)
        for node in row.nodes
    }


def _draw_edge(sketch: Sketch, layout: _Layout, edge: GraphEdge) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    points = _way(layout, layout.places[edge.source], layout.places[edge.target])
    codes = [Path.MOVETO, *[Path.CURVE4] * 3]
    if len(points) > 4:
        codes += [Path.LINETO, *[Path.CURVE4] * 3]
    colour = palette()["j4" if edge.minor else "muted"]
    drawn = PathPatch(
        Path(points, codes),
        fill=False,
        edgecolor=colour,
        linewidth=1.3 if edge.minor else 1.7,
        linestyle=(0, (3, 3)) if edge.minor else "-",
    )
    sketch.figure.axes[0].add_patch(drawn)
    sketch.mark(drawn, "edge minor" if edge.minor else "edge", edge.tip)


def _way(layout: _Layout, start: Point, end: Point) -> list[Point]:
    """Return the way from below one node to above another; past nodes in between it keeps to a gap of the columns."""
    top, bottom = (start[0], start[1] + HEIGHT / 2), (end[0], end[1] - HEIGHT / 2)
    if end[1] - start[1] < 1.5 * ROW:
        return _bend(top, bottom)
    side = -0.5 if start[0] < end[0] else 0.5
    # Neighbouring columns use different lanes of a gap, so that their edges can be told apart.
    gap = end[0] + side * layout.column + LANE * (start[0] // layout.column % 3 - 1)
    return [
        *_bend(top, (gap, start[1] + ROW - HEIGHT / 2)),
        *_bend((gap, end[1] - ROW + HEIGHT / 2), bottom),
    ]


def _bend(start: Point, end: Point) -> list[Point]:
    middle = (start[1] + end[1]) / 2
    return [start, (start[0], middle), (end[0], middle), end]


def _draw_node(sketch: Sketch, layout: _Layout, node: GraphNode) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes, colours = sketch.figure.axes[0], palette()
    (x, y), width = layout.places[node.id], layout.box
    edge = {"best": "accent", "failed": "bad"}.get(node.state, "muted")
    box = FancyBboxPatch(
        (x - width / 2, y - HEIGHT / 2),
        width,
        HEIGHT,
        boxstyle="round,pad=0,rounding_size=6",
        facecolor=colours["page"],
        edgecolor=colours[edge],
        linewidth=2.6 if node.state == "best" else 1.2,
        linestyle=(0, (3, 3)) if node.state == "open" else "-",
        zorder=3,
    )
    axes.add_patch(box)
    sketch.mark(box, f"node {node.state}", f"{node.id}: {node.detail}; {node.tip}")
    letters = int(width / LETTER)
    name = f"★ {node.id}" if node.state == "best" else node.id
    texts = (
        (name, y - 8, "ink", "bold"),
        (node.detail, y + 9, "bad" if edge == "bad" else "muted", "normal"),
    )
    for text, height, colour, weight in texts:
        axes.text(
            x,
            height,
            label(text, letters),
            color=colours[colour],
            fontweight=weight,
            ha="center",
            va="center",
            zorder=4,
        )
    for place, number in enumerate(node.marks):
        at = (x - width / 2 + 9 + 11 * place, y - HEIGHT / 2)
        axes.plot(*at, series_marker(number), color=series_colour(number), markersize=7, zorder=5)
