"""Drawing panels with one line for each label: values as dots or bars, shares as stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from xml.etree.ElementTree import Element

from sharp.report.panels import Bar, BarPanel, Cited, StackPanel
from sharp.report.scales import LogScale, Scale, linear_scale, log_scale
from sharp.report.svg import COLOURS, Point, label, line, node, power_text
from sharp.report.text import number_text, share_text

WIDTH = 380.0
TOP, RIGHT, BOTTOM, ROW = 28.0, 20.0, 42.0, 24.0
_LETTER = 6.6  # pixels, about, of one letter of a label
_LONGEST = 24

Axis = Callable[[float], float]


def bars_size(panel: BarPanel | StackPanel) -> Point:
    """Return the width and height of a panel."""
    return WIDTH, TOP + ROW * len(_labels(panel)) + BOTTOM


def value_axis(panels: Sequence[BarPanel], left: float, panel: BarPanel) -> Scale | LogScale:
    """Return the scale of a panel: errors each have their own decades, other figures the same one in all panels."""
    if panel.kind == "error":
        return log_scale([*_values(panel), *([panel.floor] if panel.floor else [])], left, WIDTH - RIGHT)
    values = [value for each in panels for value in _values(each)] or [0.0]
    if panel.kind == "level":
        return linear_scale(values, left, WIDTH - RIGHT)
    return Scale(0.0, 1.08 * max(values) or 1.0, left, WIDTH - RIGHT)


def left_of(panels: Sequence[BarPanel | StackPanel]) -> float:
    """Return the room for labels, the same in all panels of a figure."""
    longest = max((len(_short(name)) for panel in panels for name in _labels(panel)), default=0)
    return 14 + _LETTER * longest


def draw_bars(panel: BarPanel, axis: Scale | LogScale, name: str) -> Iterator[Element]:
    """Yield the parts of a panel of values; `name` stands below its axis."""
    bottom = bars_size(panel)[1] - BOTTOM
    yield label((0, 15), panel.title, "label name")
    for tick in _ticks(axis):
        yield line((axis(tick), TOP - 6), (axis(tick), bottom), "grid")
        text = power_text(tick) if panel.kind == "error" else number_text(tick)
        yield label((axis(tick), bottom + 15), text, "label", "middle")
    if panel.floor is not None:
        yield line((axis(panel.floor), TOP - 6), (axis(panel.floor), bottom), "level floor")
    yield line((axis.start, bottom), (axis.end, bottom), "axis")
    yield label(((axis.start + axis.end) / 2, bottom + 34), name, "label", "middle")
    for index, bar in enumerate(panel.bars):
        at = TOP + ROW * (index + 0.5)
        yield label((axis.start - 8, at + 4), _short(bar.label), "label", "end")
        yield node("g", *_bar(panel, bar, axis, at), class_=colour(index))
        if bar.median is None and bar.remark:
            yield label((axis.start + 8, at + 4), bar.remark, "label remark")


def draw_stacks(panel: StackPanel, names: Mapping[str, int], left: float, name: str) -> Iterator[Element]:
    """Yield the parts of a panel of shares; `names` has the colour of each part."""
    bottom, axis = bars_size(panel)[1] - BOTTOM, Scale(0.0, 1.0, left, WIDTH - RIGHT)
    yield label((0, 15), panel.title, "label name")
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield line((axis(tick), TOP - 6), (axis(tick), bottom), "grid")
        yield label((axis(tick), bottom + 15), share_text(tick), "label", "middle")
    yield label(((axis.start + axis.end) / 2, bottom + 34), name, "label", "middle")
    for index, stack in enumerate(panel.stacks):
        at = TOP + ROW * index
        yield label((left - 8, at + ROW / 2 + 4), _short(stack.label), "label", "end")
        yield from _segments(stack.shares, names, axis, at)
        if stack.remark:
            yield label((left + 6, at + ROW / 2 + 4), stack.remark, "label remark")


def colour(index: int) -> str:
    """Return the class of the colour that the `index`-th of a list has."""
    return f"j{index % COLOURS + 1}"


def diamond(at: Point, tip: str = "", size: float = 5.0) -> Element:
    """Return the mark of a published value."""
    x, y = at
    shape = f"M{x:.1f},{y - size:.1f}l{size:g},{size:g}l{-size:g},{size:g}l{-size:g},{-size:g}z"
    return node("path", *([node("title", tip)] if tip else []), d=shape, class_="cited")


def _ticks(axis: Scale | LogScale) -> list[float]:
    """Return five ticks or so, at least two."""
    ticks = axis.ticks(5)
    return ticks if len(ticks) > 1 else axis.ticks(7)


def _bar(panel: BarPanel, bar: Bar, axis: Axis, at: float) -> Iterator[Element]:
    if bar.median is not None:
        if panel.kind == "count":
            yield node(
                "rect",
                x=axis(0),
                y=at - 7,
                width=max(axis(bar.median) - axis(0), 0.5),
                height=14,
                class_="bar",
            )
        yield line((axis(min(bar.values)), at), (axis(max(bar.values)), at), "span")
        for value in bar.values:
            yield node("circle", cx=axis(value), cy=at, r=2.6, class_="dot")
        yield from _median(panel, bar, axis(bar.median), at)
    yield from _cited(bar.cited, axis, at)


def _median(panel: BarPanel, bar: Bar, x: float, at: float) -> Iterator[Element]:
    tip = node("title", f"{bar.label}: {bar.median:.3g}, {len(bar.values)} values")
    if bar.flagged:
        yield node("circle", cx=x, cy=at, r=8.5, class_="flag")
    if panel.kind != "count":
        yield node("circle", tip, cx=x, cy=at, r=5, class_="filled")


def _cited(cited: Sequence[Cited], axis: Axis, at: float) -> Iterator[Element]:
    for each in cited:
        yield diamond((axis(each.value), at), f"published, {each.name}: {each.value:.3g}")


def _segments(
    shares: Mapping[str, float], names: Mapping[str, int], axis: Axis, at: float
) -> Iterator[Element]:
    before = 0.0
    for name, share in sorted(shares.items(), key=lambda item: names[item[0]]):
        if share > 0:
            tip = node("title", f"{name}: {share_text(share)}")
            width = axis(before + share) - axis(before)
            yield node(
                "rect",
                tip,
                x=axis(before),
                y=at + 3,
                width=width,
                height=ROW - 6,
                class_=f"part {colour(names[name])}",
            )
        before += share


def _values(panel: BarPanel) -> list[float]:
    own = [value for bar in panel.bars for value in bar.values]
    return own + [cited.value for bar in panel.bars for cited in bar.cited]


def _labels(panel: BarPanel | StackPanel) -> list[str]:
    return [each.label for each in (panel.bars if isinstance(panel, BarPanel) else panel.stacks)]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
