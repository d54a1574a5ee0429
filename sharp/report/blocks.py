"""What a report is made of: a document of plain values that is written once and rendered as HTML and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sharp.report.drawings import Drawing


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
class Prose:
    """A text of a model's, as it stands; `author` says who wrote it."""

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
    """A drawing; `instead` says in words what it shows, for readers without pictures."""

    drawing: Drawing
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


Block = Paragraph | Heading | Note | Prose | Bullets | Facts | Table | Code | Diff | Figure | Link | Details


@dataclass(frozen=True)
class Section:
    """A part of the report; `anchor` is unique in it."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Verdict:
    """The outcome in one line; `below_floor` flags an error that is smaller than the data's own."""

    sentence: str
    below_floor: bool


@dataclass(frozen=True)
class Report:
    """The whole document: title, verdict, notes on top, parts."""

    title: str
    verdict: Verdict
    notes: tuple[Note, ...]
    sections: tuple[Section, ...]
