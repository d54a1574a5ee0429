"""Drawing panels of curves: medians with their range, errors on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor, log2
from xml.etree.ElementTree import Element

from sharp.report.panel_bars import WIDTH, colour
from sharp.report.panels import Curve, CurvePanel
from sharp.report.scales import LogScale, Scale, log_scale
from sharp.report.svg import Point, label, line, mark, node, path, power_text
from sharp.report.text import error_text, number_text

HEIGHT = 250.0
TOP, RIGHT, BOTTOM, LEFT = 28.0, 14.0, 42.0, 54.0
# With more points than these, marks would hide the line.
_MARKED = 12

Axis = Callable[[float], float]


def curves_size() -> Point:
    """Return the width and height of a panel."""
    return WIDTH, HEIGHT


def draw_curve_panel(panel: CurvePanel, names: Sequence[str], across: str) -> Iterator[Element]:
    """Yield the parts of a panel; `names` are those of all curves of the figure, `across` stands below."""
    x, y = _across(panel), _upwards(panel)
    bottom = HEIGHT - BOTTOM
    yield label((0, 15), panel.title, "label name")
    for value in y.ticks(6):
        yield line((LEFT, y(value)), (WIDTH - RIGHT, y(value)), "grid")
        yield label((LEFT - 8, y(value) + 4), power_text(value), "label", "end")
    for value in _ticks(panel, x):
        yield label((_place(panel, x)(value), bottom + 16), number_text(value), "label", "middle")
    yield line((LEFT, bottom), (WIDTH - RIGHT, bottom), "axis")
    yield label(((LEFT + WIDTH - RIGHT) / 2, bottom + 34), across, "label", "middle")
    if panel.floor is not None:
        yield line((LEFT, y(panel.floor)), (WIDTH - RIGHT, y(panel.floor)), "level floor")
    for curve in panel.curves:
        number = list(names).index(curve.name)
        yield node("g", *_curve(curve, _place(panel, x), y, number), class_=colour(number))


def _curve(curve: Curve, x: Axis, y: Axis, number: int) -> Iterator[Element]:
    if not curve.points:
        return
    upper = [(x(point.x), y(point.high)) for point in curve.points]
    lower = [(x(point.x), y(point.low)) for point in curve.points]
    yield path([*upper, *reversed(lower)], "band")
    yield path([(x(point.x), y(point.median)) for point in curve.points], "line")
    if len(curve.points) <= _MARKED:
        for point in curve.points:
            tip = f"{curve.name}, {number_text(point.x)}: {error_text(point.median)}"
            yield mark((x(point.x), y(point.median)), number + 1, "filled", tip)


def _place(panel: CurvePanel, x: Scale) -> Axis:
    return (lambda value: x(log2(value))) if panel.doubling else x


def _across(panel: CurvePanel) -> Scale:
    values = [point.x for curve in panel.curves for point in curve.points] or [1.0]
    if panel.doubling:
        values = [log2(value) for value in values]
    low, high = min(values), max(values)
    room = 0.04 * (high - low) or 0.5
    return Scale(low - room, high + room, LEFT, WIDTH - RIGHT)


def _ticks(panel: CurvePanel, x: Scale) -> list[float]:
    if panel.doubling:
        return [2.0**power for power in range(ceil(x.low), floor(x.high) + 1)]
    return [value for value in x.ticks(6) if value == round(value)]


def _upwards(panel: CurvePanel) -> LogScale:
    values = [value for curve in panel.curves for point in curve.points for value in (point.low, point.high)]
    return log_scale([*values, *([panel.floor] if panel.floor else [])], HEIGHT - BOTTOM, TOP)
