"""The terminal writer: blocks as text, laid out by rich."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import TYPE_CHECKING

from sharp.document.blocks import (
    Block,
    Bullets,
    Code,
    Columns,
    Details,
    Diff,
    Facts,
    Figure,
    Heading,
    Link,
    ModelText,
    Note,
    Paragraph,
    Table,
    Tiles,
)
from sharp.document.text import clean

if TYPE_CHECKING:
    from rich.console import RenderableType

# Wider than any line: what is no terminal gets every text whole.
_BOUNDLESS = 100_000
_STYLES: dict[type, str] = {Heading: "bold", Note: "yellow"}


def render_terminal(*blocks: Block, width: int | None = None, styled: bool = True) -> str:
    """Return blocks as text.

    With a width, the text is for a terminal with so many columns: long cells are wrapped, and words are emphasised if
    it is `styled`.
    Without one it is plain: each row of a table is as long as its texts, and nothing is wrapped or cut.
    """
    from rich.console import Console

    stream = StringIO()
    terminal = width is not None
    console = Console(
        file=stream,
        width=width or _BOUNDLESS,
        force_terminal=terminal and styled,
        color_system="standard" if terminal and styled else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for block in blocks:
        for renderable in _renderables(block, width):
            console.print(renderable, soft_wrap=not terminal)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def _renderables(block: Block, width: int | None) -> Iterator[RenderableType]:
    from rich.text import Text

    match block:
        case Facts():
            yield _facts(block, wrap=width is not None)
        case Table():
            yield _table(block, width)
        case Bullets(items=items):
            yield from (Text(f"  - {clean(item)}") for item in items)
        case Tiles(tiles=tiles):
            pairs = (
                (tile.name, f"{tile.value} ({tile.remark})" if tile.remark else tile.value) for tile in tiles
            )
            yield _facts(Facts(tuple(pairs)), wrap=width is not None)
        case Columns(blocks=blocks):
            for inner in blocks:
                yield from _renderables(inner, width)
        case Details(summary=summary, blocks=blocks):
            yield Text(f"\n{clean(summary)}", style="bold")
            for inner in blocks:
                yield from _renderables(inner, width)
        case _:
            yield Text(clean(_plain(block)), style=_STYLES.get(type(block), ""))


def _plain(block: Block) -> str:
    match block:
        case Heading(text=text):
            return f"\n{text}"
        case Note(text=text, level=level):
            return f"{level}: {text}"
        case ModelText(text=text, author=author):
            return f"Written by {author}:\n{text}"
        case Figure(instead=instead):
            return instead
        case Link(text=text, target=target):
            return f"{text}: {target}"
        case Paragraph(text=text) | Code(text=text) | Diff(text=text):
            return text
    raise TypeError(f"{type(block).__name__} has no plain text")


def _facts(block: Facts, *, wrap: bool) -> RenderableType:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=not wrap, overflow="fold")
    for name, value in block.pairs:
        grid.add_row(Text(f"  {clean(name)}", style="dim"), Text(clean(value)))
    return grid


def _table(block: Table, width: int | None) -> RenderableType:
    from rich.table import Table as Grid
    from rich.text import Text

    caption = Text(clean(block.caption)) if block.caption else None
    grid = Grid(
        title=caption, title_justify="left", box=None, padding=(0, 2, 0, 0), show_header=any(block.columns)
    )
    whole = _never_wrapped(block, width)
    for index, name in enumerate(block.columns):
        grid.add_column(
            Text(clean(name)),
            justify="right" if name in block.numbers else "left",
            no_wrap=index in whole,
            overflow="fold",
            header_style="bold",
        )
    for number, row in enumerate(block.rows):
        style = "dim" if number in block.muted else ""
        grid.add_row(*(Text(clean(cell)) for cell in row), style=style)
    return grid


def _never_wrapped(block: Table, width: int | None) -> set[int]:
    """Return the columns whose texts stay whole: names first, then the shortest, up to two thirds of the width."""
    widths = {
        index: max(len(clean(text)) for text in (name, *(row[index] for row in block.rows)))
        for index, name in enumerate(block.columns)
    }
    if width is None:
        return {*widths}
    chosen: set[int] = set()
    for index in sorted(widths, key=lambda index: (index > 0, widths[index])):
        if 3 * sum(widths[i] + 2 for i in (*chosen, index)) <= 2 * width:
            chosen.add(index)
    return chosen
