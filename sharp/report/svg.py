"""Drawings as SVG elements, built as trees so that every text in them is escaped once and all tags are closed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, tostring

from markupsafe import Markup

from sharp.report.text import clean

Point = tuple[float, float]

# Marks that differ in shape as well as in colour, one for each judge in turn.
_CORNERS: tuple[Sequence[Point], ...] = (
    (),
    ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    ((0, -1.3), (1.2, 0.9), (-1.2, 0.9)),
    ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
    ((0, 1.3), (1.2, -0.9), (-1.2, -0.9)),
)
COLOURS = 6


def node(tag: str, *children: Element | str, **attributes: str | float) -> Element:
    """Return an element; `class_` stands for `class` and `_` for `-` in names, and text goes before elements."""
    made = Element(
        tag, {name.rstrip("_").replace("_", "-"): _value(value) for name, value in attributes.items()}
    )
    for child in children:
        if isinstance(child, str):
            made.text = (made.text or "") + clean(child)
        else:
            made.append(child)
    return made


def drawing(
    anchor: str, title: str, description: str, size: Point, parts: Iterable[Element], class_: str = ""
) -> Element:
    """Return a whole drawing with its name and description for those who cannot see it."""
    width, height = size
    return node(
        "svg",
        node("title", title, id=f"{anchor}-title"),
        node("desc", description, id=f"{anchor}-desc"),
        *parts,
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        role="img",
        aria_labelledby=f"{anchor}-title {anchor}-desc",
        class_=class_ or "drawing",
    )


def markup(*elements: Element) -> Markup:
    """Return elements as HTML that must not be escaped again."""
    return Markup("").join(Markup(tostring(element, encoding="unicode")) for element in elements)  # noqa: S704


def line(start: Point, end: Point, class_: str) -> Element:
    """Return a straight line."""
    return node("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], class_=class_)


def label(at: Point, text: str, class_: str = "label", anchor: str = "start") -> Element:
    """Return a text at a point; `anchor` is start, middle or end."""
    return node("text", text, x=at[0], y=at[1], class_=class_, text_anchor=anchor)


def path(points: Sequence[Point], class_: str) -> Element:
    """Return a polygonal line through points."""
    return node("path", d="M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points), class_=class_)


def steps(points: Sequence[Point], end: float, class_: str) -> Element:
    """Return a line that keeps each point's height until the next, the last one until `end`."""
    corners = [points[0]]
    for x, y in points[1:]:
        corners += [(x, corners[-1][1]), (x, y)]
    return path([*corners, (end, corners[-1][1])], class_)


def mark(at: Point, number: int, class_: str, tip: str = "", size: float = 4.5) -> Element:
    """Return the mark of judge `number` (0 for none) at a point; `tip` appears under the pointer."""
    corners = _CORNERS[max(number - 1, 0) % len(_CORNERS)]
    colour = f"j{(number - 1) % COLOURS + 1}" if number else "j0"
    tips = [node("title", tip)] if tip else []
    names = f"{class_} {colour}"
    if not corners:
        return node("circle", *tips, cx=at[0], cy=at[1], r=size, class_=names)
    places = " ".join(f"{at[0] + size * x:.1f},{at[1] + size * y:.1f}" for x, y in corners)
    return node("polygon", *tips, points=places, class_=names)


def cross(at: Point, class_: str, tip: str, size: float = 4.5) -> Element:
    """Return the mark of a failed run."""
    x, y = at
    shape = (
        f"M{x - size:.1f},{y - size:.1f}l{2 * size:g},{2 * size:g}m0,{-2 * size:g}l{-2 * size:g},{2 * size:g}"
    )
    return node("path", node("title", tip), d=shape, class_=class_)


def power_text(value: float) -> str:
    """Return a tick of a logarithmic axis: `10⁻³`, or `2·10⁻³` between powers."""
    digits, _, exponent = f"{value:.0e}".partition("e")
    power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if digits == "1" else f"{digits}·{power}"


def _value(value: str | float) -> str:
    return clean(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
