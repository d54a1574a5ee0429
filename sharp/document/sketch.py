"""What charts are drawn with: a drawing in the making, the colours of the style sheet, markers and labels."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sharp.document.text import clean, one_line

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

SERIES = 6  # colours that the style sheet has for series
_MARKERS = "os^Dv"


class Sketch:
    """A drawing in the making, with the classes and tips of its parts; places are in pixels from the upper left."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        # At 72 dots per inch, matplotlib's points are pixels.
        self.figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        self.parts: dict[str, tuple[str, str]] = {}

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Return new axes at a place."""
        bottom = self.height - top - height
        box = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(box)

    def extend(self, room: float) -> None:
        """Make room below what has been drawn."""
        below, self.height = self.height, self.height + room
        self.figure.set_size_inches(self.width / 72, self.height / 72)
        for axes in self.figure.axes:
            left, bottom, width, height = axes.get_position().bounds
            scale = below / self.height
            axes.set_position((left, bottom * scale + room / self.height, width, height * scale))

    def mark(self, artist: Artist, class_: str, tip: str = "") -> None:
        """Give a part a class, and a tip that appears under the pointer."""
        name = f"part-{len(self.parts)}"
        self.parts[name] = class_, tip
        artist.set_gid(name)


@cache
def palette() -> dict[str, str]:
    """Return the colours of a light page by name, as the style sheet defines them."""
    sheet = (Path(__file__).parent / "document.css").read_text(encoding="utf-8")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", sheet[: sheet.index("@media")]))


def series_colour(number: int) -> str:
    """Return the colour of series 1, 2 and so on; of none for 0."""
    return palette()[f"j{(number - 1) % SERIES + 1}" if number else "j0"]


def series_marker(number: int) -> str:
    """Return the marker of a series; markers and colours repeat at different numbers."""
    return _MARKERS[max(number - 1, 0) % len(_MARKERS)]


def label(text: str, longest: int = 200) -> str:
    """Return a text as it stands in a drawing: on one line and not too long."""
    shown = one_line(clean(text))
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
