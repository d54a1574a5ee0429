"""Drawing functions of one coordinate as lines in one chart."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import numpy as np
from markupsafe import Markup

from sharp.report.drawings import Lines
from sharp.report.scales import Scale, linear_scale
from sharp.report.svg import COLOURS, drawing, label, line, markup, node, path
from sharp.report.text import number_text

SIZE = (640.0, 300.0)
TOP, RIGHT, BOTTOM, LEFT = 26.0, 16.0, 42.0, 66.0


def draw_lines(lines: Lines, description: str) -> Markup:
    """Return the chart with its legend; values that are not finite leave gaps at their places."""
    chart = drawing(lines.anchor, lines.title, description, SIZE, _parts(lines))
    items = [_item(name, index) for index, name in enumerate(lines.curves)]
    return markup(chart, node("ul", *items, class_="legend"))


def _parts(lines: Lines) -> Iterator[Element]:
    right, bottom = SIZE[0] - RIGHT, SIZE[1] - BOTTOM
    x = Scale(float(lines.x.min()), float(lines.x.max()), LEFT, right)
    y = _upwards(lines)
    yield label((LEFT, 15), lines.title, "label name")
    for value in y.ticks(5):
        yield line((LEFT, y(value)), (right, y(value)), "grid")
        yield label((LEFT - 6, y(value) + 4), number_text(value), "label", "end")
    for value in x.ticks(8):
        yield label((x(value), bottom + 16), number_text(value), "label", "middle")
    yield line((LEFT, bottom), (right, bottom), "axis")
    yield label(((LEFT + right) / 2, bottom + 34), lines.across, "label", "middle")
    for index, values in enumerate(lines.curves.values()):
        finite = np.isfinite(values)
        points = [(x(float(a)), y(float(b))) for a, b in zip(lines.x[finite], values[finite], strict=True)]
        if points:
            yield node("g", path(points, "line"), class_=_colour(index))


def _upwards(lines: Lines) -> Scale:
    finite = [float(value) for values in lines.curves.values() for value in values[np.isfinite(values)]]
    return linear_scale(finite or [0.0], SIZE[1] - BOTTOM, TOP)


def _colour(index: int) -> str:
    return f"j{index % COLOURS + 1}"


def _item(name: str, index: int) -> Element:
    key = node("g", line((0, 8), (24, 8), "line"), class_=_colour(index))
    sign = node("svg", key, viewBox="0 0 24 16", width=24, height=16, aria_hidden="true")
    return node("li", sign, node("span", name))
