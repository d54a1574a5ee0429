"""Drawing errors against evaluations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from xml.etree.ElementTree import Element

from markupsafe import Markup

from sharp.report.drawings import Dot, ErrorChart
from sharp.report.scales import LogScale, Scale, log_scale, spread
from sharp.report.svg import cross, drawing, label, line, mark, markup, node, power_text, steps
from sharp.report.text import error_text

TITLE = "Error against evaluations"
# Widths for wide and for narrow pages; the style sheet shows one of them.
WIDE, NARROW = 900.0, 420.0
HEIGHT = 360.0
TOP, RIGHT, BOTTOM, LEFT = 26.0, 66.0, 44.0, 58.0


@dataclass(frozen=True)
class _Frame:
    x: Scale
    y: LogScale
    width: float


def draw_errors(chart: ErrorChart, description: str) -> Markup:
    """Return the chart for wide and for narrow pages, with one legend for both."""
    charts = [
        drawing(
            f"errors-{name}", TITLE, description, (width, HEIGHT), _parts(chart, width), f"drawing {name}"
        )
        for name, width in (("wide", WIDE), ("narrow", NARROW))
    ]
    return markup(*charts, node("ul", *_legend(chart), class_="legend"))


def _parts(chart: ErrorChart, width: float) -> Iterator[Element]:
    frame = _frame(chart, width)
    yield from _axes(frame)
    yield from _levels(chart, frame)
    yield from _leading(chart, frame)
    for dot in chart.dots:
        yield from _marks(frame, dot)


def _frame(chart: ErrorChart, width: float) -> _Frame:
    values = [level.value for level in chart.levels]
    values += [value for dot in chart.dots for value in (dot.error, dot.truth) if value is not None]
    x = Scale(0.5, len(chart.dots) + 0.5, LEFT, width - RIGHT)
    return _Frame(x, log_scale(values, HEIGHT - BOTTOM, TOP), width)


def _axes(frame: _Frame) -> Iterator[Element]:
    left, right, bottom = LEFT, frame.width - RIGHT, HEIGHT - BOTTOM
    for value in frame.y.ticks():
        yield line((left, frame.y(value)), (right, frame.y(value)), "grid")
        yield label((left - 8, frame.y(value) + 4), power_text(value), "label", "end")
    most = int((right - left) / 40)
    for number in range(1, int(frame.x.high) + 1, ceil(frame.x.high / most)):
        yield label((frame.x(number), bottom + 18), str(number), "label", "middle")
    yield line((left, bottom), (right, bottom), "axis")
    yield label(((left + right) / 2, HEIGHT - 8), "evaluation (run on validation data)", "label", "middle")
    yield label((6, 14), "error (nRMSE)")


def _levels(chart: ErrorChart, frame: _Frame) -> Iterator[Element]:
    right = frame.width - RIGHT
    places = [frame.y(level.value) for level in chart.levels]
    for level, at, place in zip(chart.levels, places, spread(places, 15, TOP, HEIGHT - BOTTOM), strict=True):
        yield line((LEFT, at), (right, at), f"level {level.short}")
        yield label((right + 5, place + 4), level.short)


def _leading(chart: ErrorChart, frame: _Frame) -> Iterator[Element]:
    leaders = [(number, dot) for number, dot in enumerate(chart.leaders, start=1) if dot is not None]
    for get, class_ in ((_truth, "leader truth"), (_error, "leader")):
        points = [
            (frame.x(number), frame.y(value)) for number, dot in leaders if (value := get(dot)) is not None
        ]
        if points:
            yield steps(points, frame.width - RIGHT, class_)


def _error(dot: Dot) -> float | None:
    return dot.error


def _truth(dot: Dot) -> float | None:
    return dot.truth


def _marks(frame: _Frame, dot: Dot) -> Iterator[Element]:
    x, judge = frame.x(dot.number), dot.judges[0] if dot.judges else 0
    who = f" (judge {', '.join(map(str, dot.judges))})" if dot.judges else ""
    tip = f"{dot.candidate}{who}"
    if dot.error is None:
        yield cross((x, TOP - 12), "failed", f"{tip}: failed")
        return
    if dot.truth is not None:
        yield mark(
            (x, frame.y(dot.truth)),
            judge,
            "hollow",
            f"{tip}: {error_text(dot.truth)} against the true solution",
        )
    if dot.won:
        yield node("circle", cx=x, cy=frame.y(dot.error), r=10, class_="crown")
    yield mark(
        (x, frame.y(dot.error)), judge, "filled", f"{tip}: {error_text(dot.error)} against the data set"
    )


def _legend(chart: ErrorChart) -> Iterator[Element]:
    present = sorted({dot.judges[0] for dot in chart.dots if dot.judges})
    for judge in present:
        yield _item(mark((12, 8), judge, "filled"), f"judge {judge} ({chart.judges.get(judge, '')})")
    if any(not dot.judges for dot in chart.dots):
        yield _item(mark((12, 8), 0, "filled"), "program that no judge chose" if present else "program")
    if any(dot.truth is not None for dot in chart.dots):
        yield _item(
            mark((12, 8), present[0] if present else 0, "hollow"), "hollow: against the true solution"
        )
        yield _item(line((0, 8), (24, 8), "leader truth"), "best so far, against the true solution")
    yield _item(line((0, 8), (24, 8), "leader"), "best so far, against the data set")
    if chart.winner is not None:
        yield _item(node("circle", cx=12, cy=8, r=7, class_="crown"), f"winner ({chart.winner})")
    if any(dot.error is None for dot in chart.dots):
        yield _item(cross((12, 8), "failed", "failed run"), "failed run")
    for level in chart.levels:
        key = line((0, 8), (24, 8), f"level {level.short}")
        yield _item(key, f"{level.short}: {level.name}, {error_text(level.value)}")


def _item(key: Element, text: str) -> Element:
    sign = node("svg", key, viewBox="0 0 24 16", width=24, height=16, aria_hidden="true")
    return node("li", sign, node("span", text))
