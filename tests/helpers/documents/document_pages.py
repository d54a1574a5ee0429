"""Reading pages and Markdown strictly enough to see whether anything in them has broken out of its place."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "img", "br", "link", "input", "hr"})


@dataclass
class Page(HTMLParser):
    """A page as read: every tag is closed in its order, or reading fails."""

    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []

    @classmethod
    def read(cls, source: str) -> Page:
        page = cls()
        page.feed(source)
        page.close()
        assert page.open == [], page.open
        return page

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, names)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert "svg" in self.open, tag
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop() == tag, (self.open, tag, self.getpos())

    def handle_data(self, data):
        self.texts.append(data)

    def unknown_decl(self, data):
        raise AssertionError(data)

    def handle_comment(self, data):
        raise AssertionError(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def sections_of(page: Page) -> list[str]:
    """The anchors of the parts: a folded one has its anchor inside, so that a link to it opens it."""
    parts = [*page.all("section"), *page.all("div")]
    return [attributes["id"] for attributes in parts if "id" in attributes]


def drawings_of(source: str) -> list[str]:
    return re.findall(r"<svg.*?</svg>", source, re.DOTALL)


@dataclass(frozen=True)
class Skeleton:
    """What gives a Markdown text its structure; texts are left out."""

    headings: tuple[str, ...]
    fences: int
    tables: tuple[int, ...]


def skeleton(markdown: str) -> Skeleton:
    """Read headings, code blocks and columns of tables; fails where the rows of one differ or a block stays open."""
    headings, tables, fences, fence, columns = [], [], 0, "", None
    for line in markdown.split("\n"):
        run = re.match(r"`{3,}", line)
        if fence:
            fence = "" if run and line.strip() == fence else fence
            continue
        if run:
            fence, fences = run[0], fences + 1
            continue
        assert not re.search(r"(?<!\\)[<`]", line), line
        if line.startswith("#"):
            headings.append(line)
        if not line.startswith("|"):
            columns = None
            continue
        found = len(re.findall(r"(?<!\\)\|", line))
        if columns is None:
            tables.append(found)
        assert columns in (None, found), line
        columns = found
    assert not fence, "a code block is not closed"
    return Skeleton(tuple(headings), fences, tuple(tables))
