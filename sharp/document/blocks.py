"""What a document is made of: plain values, composed once and rendered as HTML, as Markdown and for terminals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sharp.document.charts import Chart


@dataclass(frozen=True)
class Paragraph:
    """Our own words, which may hold single names and sentences that a model wrote."""

    text: str


@dataclass(frozen=True)
class Heading:
    """The name of what follows within a section."""

    text: str


@dataclass(frozen=True)
class Note:
    """A sentence that must not be overlooked."""

    text: str
    level: Literal["info", "warning"] = "info"


@dataclass(frozen=True)
class ModelText:
    """A text of a language model, as it stands; `author` says which."""

    text: str
    author: str


@dataclass(frozen=True)
class Bullets:
    """Short items."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """Rows of texts; `numbers` names the columns that hold numbers, `muted` has the places of rows that stand back."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[str, ...] = ()
    caption: str = ""
    muted: tuple[int, ...] = ()


@dataclass(frozen=True)
class Code:
    """A program or another text whose lines matter; `wrap` breaks lines that are too long."""

    text: str
    language: str = "python"
    wrap: bool = False


@dataclass(frozen=True)
class Diff:
    """A unified diff."""

    text: str


@dataclass(frozen=True)
class Figure:
    """A chart; `instead` says in words what it shows, for readers without pictures."""

    chart: Chart
    caption: str
    instead: str


@dataclass(frozen=True)
class Link:
    """Words that lead to another file, by its path from the report's folder."""

    text: str
    target: str


@dataclass(frozen=True)
class Details:
    """Blocks that are folded away under a summary."""

    summary: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Tile:
    """One figure that a reader came for: what it is, its value, and what must be said beside it.

    `tone` says whether the value is good, or must not be taken for more than the remark says.
    """

    name: str
    value: str
    remark: str = ""
    tone: Literal["plain", "good", "warning"] = "plain"


@dataclass(frozen=True)
class Tiles:
    """The few figures that matter most, side by side."""

    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class Columns:
    """Blocks side by side where there is room, else one below the other."""

    blocks: tuple[Block, ...]


Block = (
    Paragraph
    | Heading
    | Note
    | ModelText
    | Bullets
    | Facts
    | Table
    | Code
    | Diff
    | Figure
    | Link
    | Details
    | Tiles
    | Columns
)


@dataclass(frozen=True)
class Section:
    """A part of the report; `anchor` is unique in it. A `folded` one is evidence, which readers open if they doubt."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]
    folded: bool = False


@dataclass(frozen=True)
class Headline:
    """The outcome in one line; `flagged` where it must not be taken for more than it says."""

    sentence: str
    flagged: bool = False


@dataclass(frozen=True)
class Report:
    """The whole document: title, headline, notes on top, the first screen (`glance`), parts."""

    title: str
    headline: Headline
    notes: tuple[Note, ...]
    sections: tuple[Section, ...]
    glance: tuple[Block, ...] = ()
