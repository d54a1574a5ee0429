"""Drawing a plan as a graph: each step below all that it uses, steps of the same depth side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

from markupsafe import Markup

from sharp.report.drawings import Flow, Task
from sharp.report.svg import Point, drawing, label, markup, node

TITLE = "The steps, and what flows between them"
WIDTH, HEIGHT = 184.0, 42.0
COLUMN, ROW = 200.0, 74.0
MARGIN = 8.0
MOST_COLUMNS = 4
_CLASSES = {"done": "program", "failed": "program failed", "open": "program unrun"}


def draw_flow(flow: Flow, description: str) -> Markup:
    """Return the drawing."""
    rows = _rows(flow)
    columns = max(len(row) for row in rows)
    places = {
        task.id: (MARGIN + COLUMN * (columns / 2 + index - (len(row) - 1) / 2), MARGIN + ROW * (number + 0.4))
        for number, row in enumerate(rows)
        for index, task in enumerate(row)
    }
    size = (COLUMN * columns + 2 * MARGIN, ROW * len(rows) + MARGIN)
    drawn = drawing("flow-drawing", TITLE, description, size, _parts(flow, places), "drawing fixed")
    drawn.set("style", f"min-width:{0.7 * size[0]:.0f}px")
    return markup(node("div", drawn, class_="scroll", tabindex="0"))


def _rows(flow: Flow) -> list[list[Task]]:
    """Return the steps by depth: the longest way from a step that uses nothing. Wide rows are broken."""
    depths: dict[str, int] = {}
    for task in flow.tasks:
        sources = [source for source, target in flow.uses if target == task.id]
        depths[task.id] = max((depths.get(source, -1) + 1 for source in sources), default=0)
    by_depth: dict[int, list[Task]] = defaultdict(list)
    for task in flow.tasks:
        by_depth[depths[task.id]].append(task)
    return [
        row[start : start + MOST_COLUMNS]
        for _, row in sorted(by_depth.items())
        for start in range(0, len(row), MOST_COLUMNS)
    ]


def _parts(flow: Flow, places: Mapping[str, Point]) -> Iterator[Element]:
    for (source, target), what in flow.uses.items():
        tip = node("title", f"{target} uses {what} of {source}")
        yield node("path", tip, d=_curve(places[source], places[target]), class_="edge", fill="none")
    for task in flow.tasks:
        yield _box(task, places[task.id])


def _curve(start: Point, end: Point) -> str:
    top, bottom = start[1] + HEIGHT / 2, end[1] - HEIGHT / 2
    middle = (top + bottom) / 2
    return f"M{start[0]:.1f},{top:.1f}C{start[0]:.1f},{middle:.1f} {end[0]:.1f},{middle:.1f} {end[0]:.1f},{bottom:.1f}"


def _box(task: Task, at: Point) -> Element:
    x, y = at
    return node(
        "g",
        node("title", f"{task.id}: {task.description}"),
        node("rect", x=x - WIDTH / 2, y=y - HEIGHT / 2, width=WIDTH, height=HEIGHT, rx=6),
        label((x, y - 3), task.id, "label name", "middle"),
        label((x, y + 13), task.tool, "label", "middle"),
        class_=_CLASSES[task.state],
    )
