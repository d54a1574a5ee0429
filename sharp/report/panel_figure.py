"""Figures of several panels: in a page, side by side as there is room, and as a file of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from xml.etree.ElementTree import Element, tostring

from markupsafe import Markup

from sharp.report.panel_bars import (
    bars_size,
    colour,
    diamond,
    draw_bars,
    draw_stacks,
    left_of,
    value_axis,
)
from sharp.report.panel_curves import curves_size, draw_curve_panel
from sharp.report.panel_scatter import draw_scatter, scatter_size
from sharp.report.panels import BarPanel, CurvePanel, Kind, Panel, Panels, ScatterPanel, StackPanel
from sharp.report.svg import Point, drawing, label, line, mark, markup, node

Key = tuple[Element, str]
_ACROSS = 3  # panels in a row of a file
_GAP = 18.0
_LEGEND = 20.0
_LETTER = 6.6


def draw_panels(figure: Panels, description: str) -> Markup:
    """Return the panels for a page, with one legend for all."""
    drawn = [
        drawing(f"{figure.anchor}-{index}", panel.title or figure.title, description, size(panel), parts)
        for index, panel in enumerate(figure.panels)
        for parts in [_parts(figure, panel)]
    ]
    items = [node("li", _sign(key), node("span", text)) for key, text in _legend(figure)]
    return markup(node("div", *drawn, class_="plates"), node("ul", *items, class_="legend"))


def svg_file(figure: Panels, description: str) -> bytes:
    """Return the figure as an SVG file that needs nothing else, light on any background."""
    sizes = [size(panel) for panel in figure.panels]
    rows = [sizes[start : start + _ACROSS] for start in range(0, len(sizes), _ACROSS)]
    tops = [0.0, *accumulate(max(height for _, height in row) + _GAP for row in rows)]
    width = max(len(row) for row in rows) * (sizes[0][0] + _GAP) + _GAP
    placed = [
        _nested(figure, panel, (_GAP + index % _ACROSS * (sizes[0][0] + _GAP), _GAP + tops[index // _ACROSS]))
        for index, panel in enumerate(figure.panels)
    ]
    legend, bottom = _legend_lines(figure, width, _GAP + tops[-1])
    back = node("rect", x=0, y=0, width=width, height=bottom, class_="back")
    whole = drawing(figure.anchor, figure.title, description, (width, bottom), [back, *placed, *legend])
    whole.insert(0, node("style", _style()))
    whole.set("xmlns", "http://www.w3.org/2000/svg")
    text: bytes = tostring(whole, encoding="utf-8", xml_declaration=True)
    return text


def size(panel: Panel) -> Point:
    """Return the width and height of a panel."""
    if isinstance(panel, ScatterPanel):
        return scatter_size()
    return curves_size() if isinstance(panel, CurvePanel) else bars_size(panel)


def _parts(figure: Panels, panel: Panel) -> Iterator[Element]:
    match panel:
        case BarPanel():
            bars = [each for each in figure.panels if isinstance(each, BarPanel)]
            return draw_bars(panel, value_axis(bars, left_of(bars), panel), figure.axis)
        case StackPanel():
            stacks = [each for each in figure.panels if isinstance(each, StackPanel)]
            names = {name: index for index, name in enumerate(_names(figure))}
            return draw_stacks(panel, names, left_of(stacks), figure.axis)
        case CurvePanel():
            return draw_curve_panel(panel, _names(figure), figure.across)
        case ScatterPanel():
            return draw_scatter(panel, _names(figure), figure.across, figure.axis)


def _names(figure: Panels) -> Sequence[str]:
    """Return the names of curves, of spots, or of the parts of stacks, each once."""
    return tuple(dict.fromkeys(name for panel in figure.panels for name in _named(panel)))


def _named(panel: Panel) -> Sequence[str]:
    match panel:
        case CurvePanel():
            return [curve.name for curve in panel.curves]
        case StackPanel():
            return [part for stack in panel.stacks for part in stack.shares]
        case ScatterPanel():
            return [spot.name for spot in panel.spots]
        case BarPanel():
            return []


def _legend(figure: Panels) -> Iterator[Key]:
    first = figure.panels[0]
    if isinstance(first, BarPanel):
        yield from _legend_of_bars(figure, first.kind)
    for index, name in enumerate(_names(figure)):
        yield _key_of(first, index), name
    if isinstance(first, CurvePanel):
        yield node("rect", x=0, y=3, width=24, height=10, class_="band j0"), "from the least to the most"
    yield from _legend_of_spots(figure)
    if any(getattr(panel, "floor", None) is not None for panel in figure.panels):
        yield line((0, 8), (24, 8), "level floor"), "the data's own distance from the true solution"


def _legend_of_bars(figure: Panels, kind: Kind) -> Iterator[Key]:
    bars = [bar for panel in figure.panels if isinstance(panel, BarPanel) for bar in panel.bars]
    if kind == "count":
        yield node("rect", x=2, y=3, width=20, height=10, class_="bar j1"), figure.middle
    else:
        yield node("circle", cx=12, cy=8, r=5, class_="filled j1"), figure.middle
    if any(len(bar.values) > 1 for bar in bars):
        key = node(
            "g", line((0, 8), (24, 8), "span"), node("circle", cx=12, cy=8, r=2.6, class_="dot"), class_="j1"
        )
        yield key, "single runs"
    if any(bar.cited for bar in bars):
        yield diamond((12, 8)), "published (other samples, other hardware)"
    if any(bar.flagged for bar in bars):
        yield node("circle", cx=12, cy=8, r=7, class_="flag"), "below the data's own floor"


def _legend_of_spots(figure: Panels) -> Iterator[Key]:
    spots = [spot for panel in figure.panels if isinstance(panel, ScatterPanel) for spot in panel.spots]
    if any(spot.truth is not None for spot in spots):
        yield mark((12, 8), 0, "hollow"), "hollow: against the true solution"
    if any(spot.flagged for spot in spots):
        yield node("circle", cx=12, cy=8, r=7, class_="flag"), "below the data's own floor"


def _key_of(panel: Panel, index: int) -> Element:
    if isinstance(panel, ScatterPanel):
        return mark((12, 8), index + 1, "filled")
    if isinstance(panel, StackPanel):
        return node("rect", x=2, y=2, width=20, height=12, class_=f"part {colour(index)}")
    parts = (line((0, 8), (24, 8), "line"), mark((12, 8), index + 1, "filled"))
    return node("g", *parts, class_=colour(index))


def _sign(key: Element) -> Element:
    return node("svg", key, viewBox="0 0 24 16", width=24, height=16, aria_hidden="true")


def _nested(figure: Panels, panel: Panel, at: Point) -> Element:
    width, height = size(panel)
    return node("svg", *_parts(figure, panel), x=at[0], y=at[1], width=width, height=height)


def _legend_lines(figure: Panels, width: float, top: float) -> tuple[list[Element], float]:
    """Return the legend of a file, broken into lines, and where it ends."""
    placed, x, y = [], _GAP, top
    for key, text in _legend(figure):
        wide = 34 + _LETTER * len(text) + 16
        if x > _GAP and x + wide > width:
            x, y = _GAP, y + _LEGEND
        words = label((x + 30, y + 12), text)
        placed += [node("svg", key, x=x, y=y, width=24, height=16), words]
        x += wide
    return placed, y + _LEGEND + _GAP / 2


@cache
def _style() -> str:
    """Return the page's rules for drawings with their colours put in: few programs know variables."""
    sheet = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")
    colours = dict(re.findall(r"--(\w[\w-]*): ([^;]+);", sheet[: sheet.index("@media")]))
    of_drawings = ("svg text", "svg .", "svg line", "svg path", ".j")
    rules = [rule for rule in sheet.splitlines() if rule.startswith(of_drawings)]
    text = "\n".join([*rules, "svg .back { fill: var(--page); }"])
    return re.sub(r"var\(--([\w-]+)\)", lambda match: colours[match[1]], text)
