"""Drawing solutions: curves at several times as small multiples, and maps of values on a plane."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal
from xml.etree.ElementTree import Element

import numpy as np
from markupsafe import Markup

from sharp.report.drawings import Array, Curves, HeatMaps, Panel
from sharp.report.png import DIFFERENCES, VALUES, png
from sharp.report.scales import Scale, linear_scale
from sharp.report.svg import drawing, label, line, markup, node, path
from sharp.report.text import number_text

SIZE = (300.0, 190.0)
TOP, RIGHT, BOTTOM, LEFT = 22.0, 8.0, 22.0, 52.0
CLASSES = {
    "solver": "curve solver",
    "data set": "curve dataset",
    "true solution": "curve truth",
    "solver − data set": "curve dataset",
    "solver − true solution": "curve truth",
}


def draw_curves(curves: Curves, description: str) -> Markup:
    """Return one panel a time for the curves and one for the differences, all on the same scales."""
    rows = [
        node("div", *_row(curves, kind, description), class_="panels") for kind in ("curves", "differences")
    ]
    names = dict.fromkeys(name for panel in curves.panels for name in (*panel.curves, *panel.differences))
    return markup(*rows, node("ul", *map(_item, names), class_="legend"))


def _row(curves: Curves, kind: Literal["curves", "differences"], description: str) -> Iterator[Element]:
    sets: list[Mapping[str, Array]] = [getattr(panel, kind) for panel in curves.panels]
    y = _common_scale(sets)
    for index, (panel, values) in enumerate(zip(curves.panels, sets, strict=True)):
        anchor = f"{curves.field}-{kind}-{index}"
        title = f"{curves.field}, {panel.title}" + (": differences" if kind == "differences" else "")
        yield drawing(anchor, title, description, SIZE, _panel(panel, values, y, title))


def draw_maps(maps: HeatMaps, description: str) -> Markup:
    """Return one map for each kind of values, on one scale, and one for each difference, on another."""
    low, high = _extent(maps.planes.values())
    figures = [
        _map(f"{maps.field}: {name}", values, low, high, VALUES, description)
        for name, values in maps.planes.items()
    ]
    extreme = max(map(abs, _extent(maps.differences.values())))
    figures += [
        _map(f"{maps.field}: {name}", values, -extreme, extreme, DIFFERENCES, description)
        for name, values in maps.differences.items()
    ]
    return markup(node("div", *figures, class_="panels maps"))


def _common_scale(sets: list[Mapping[str, Array]]) -> Scale:
    values = [array for curves in sets for array in curves.values()]
    return linear_scale(_extent(values), SIZE[1] - BOTTOM, TOP)


def _extent(arrays: Iterable[Array]) -> tuple[float, float]:
    finite = [array[np.isfinite(array)] for array in arrays]
    values = np.concatenate(finite) if finite else np.zeros(1)
    return (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)


def _panel(panel: Panel, curves: Mapping[str, Array], y: Scale, title: str) -> Iterator[Element]:
    right, bottom = SIZE[0] - RIGHT, SIZE[1] - BOTTOM
    x = Scale(float(panel.x.min()), float(panel.x.max()), LEFT, right)
    yield label((LEFT, 14), title, "label name")
    for value in y.ticks(4):
        yield line((LEFT, y(value)), (right, y(value)), "grid")
        yield label((LEFT - 6, y(value) + 4), number_text(value), "label", "end")
    yield line((LEFT, bottom), (right, bottom), "axis")
    for value, anchor in ((x.low, "start"), (x.high, "end")):
        yield label((x(value), bottom + 16), number_text(value), "label", anchor)
    # The solver comes last, so that it is seen above what it should agree with.
    for name in sorted(curves, key=lambda name: name == "solver"):
        finite = np.isfinite(curves[name])
        points = [
            (x(float(a)), y(float(b))) for a, b in zip(panel.x[finite], curves[name][finite], strict=True)
        ]
        if points:
            yield path(points, CLASSES[name])


def _item(name: str) -> Element:
    key = line((0, 8), (24, 8), CLASSES[name])
    sign = node("svg", key, viewBox="0 0 24 16", width=24, height=16, aria_hidden="true")
    return node("li", sign, node("span", name))


def _map(title: str, values: Array, low: float, high: float, colours: Array, description: str) -> Element:
    span = high - low or 1.0
    # Rows of an image run downwards; the second coordinate of the plane runs upwards.
    shares = np.flipud((values.T - low) / span)
    source = "data:image/png;base64," + b64encode(png(shares, colours)).decode()
    bar = "data:image/png;base64," + b64encode(png(np.linspace(0, 1, 128)[None, :], colours)).decode()
    scale = node(
        "span",
        node("span", number_text(low)),
        node("img", src=bar, alt="", class_="bar"),
        node("span", number_text(high)),
        class_="scale",
    )
    return node(
        "figure", node("img", src=source, alt=f"{title}. {description}"), node("figcaption", title, scale)
    )
