"""Drawing panels of single runs: error against what it took to reach it, both on logarithmic scales."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from sharp.report.panel_bars import WIDTH
from sharp.report.panels import ScatterPanel, Spot
from sharp.report.scales import LogScale, log_scale, spread
from sharp.report.svg import Point, label, line, mark, node, power_text
from sharp.report.text import error_text, number_text

HEIGHT = 290.0
TOP, RIGHT, BOTTOM, LEFT = 30.0, 34.0, 42.0, 54.0
_LINE = 12.0


def scatter_size() -> Point:
    """Return the width and height of a panel."""
    return WIDTH, HEIGHT


def draw_scatter(panel: ScatterPanel, names: Sequence[str], across: str, upwards: str) -> Iterator[Element]:
    """Yield the parts of a panel; `names` are those of all spots of the figure, the others those of its axes."""
    x, y = _scales(panel)
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    yield label((0, 15), panel.title, "label name")
    yield label((right, 15), upwards, "label", "end")
    for value in y.ticks(6):
        yield line((LEFT, y(value)), (right, y(value)), "grid")
        yield label((LEFT - 8, y(value) + 4), power_text(value), "label", "end")
    for value in x.ticks(5):
        yield line((x(value), TOP), (x(value), bottom), "grid")
        yield label((x(value), bottom + 16), _tick(value), "label", "middle")
    yield line((LEFT, bottom), (right, bottom), "axis")
    yield label(((LEFT + right) / 2, bottom + 34), across, "label", "middle")
    if panel.floor is not None:
        yield line((LEFT, y(panel.floor)), (right, y(panel.floor)), "level floor")
    places = _labels(panel, x, y)
    for spot, place in zip(panel.spots, places, strict=True):
        yield from _spot(spot, (x(spot.x), y(spot.error)), list(names).index(spot.name) + 1, y)
        yield label(place, spot.label)


def _scales(panel: ScatterPanel) -> tuple[LogScale, LogScale]:
    errors = [value for spot in panel.spots for value in (spot.error, spot.truth) if value is not None]
    floor = [] if panel.floor is None else [panel.floor]
    x = log_scale([spot.x for spot in panel.spots], LEFT, WIDTH - RIGHT)
    return x, log_scale([*errors, *floor], HEIGHT - BOTTOM, TOP)


def _spot(spot: Spot, at: Point, number: int, y: LogScale) -> Iterator[Element]:
    tip = f"{spot.tip}: {number_text(spot.x)}"
    if spot.truth is not None:
        yield line(at, (at[0], y(spot.truth)), "grid")
        words = f"{tip}, error {error_text(spot.truth)} against the true solution"
        yield mark((at[0], y(spot.truth)), number, "hollow", words)
    if spot.flagged:
        yield node("circle", cx=at[0], cy=at[1], r=8.5, class_="flag")
    yield mark(at, number, "filled", f"{tip}, error {error_text(spot.error)} against the data set")


def _labels(panel: ScatterPanel, x: LogScale, y: LogScale) -> list[Point]:
    """Return places beside the marks, those of marks near each other one below the other."""
    rows = [y(spot.error) + 4 for spot in panel.spots]
    lanes = [round(x(spot.x) / 24) for spot in panel.spots]
    for lane in set(lanes):
        inside = [index for index, known in enumerate(lanes) if known == lane]
        apart = spread([rows[index] for index in inside], _LINE, TOP, HEIGHT - BOTTOM)
        for index, row in zip(inside, apart, strict=True):
            rows[index] = row
    return [(x(spot.x) + 10, row) for spot, row in zip(panel.spots, rows, strict=True)]


def _tick(value: float) -> str:
    return number_text(value) if 1e-3 <= value < 1e4 else power_text(value)
