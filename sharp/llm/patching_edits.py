"""Edits that models write in other ways than SEARCH/REPLACE blocks: tags, labelled blocks, keys of JSON, bare diffs.

Each is a pair of old and new lines, and is read where nothing else can be meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from textwrap import dedent
from typing import Any

from sharp.llm.replies_text import FencedBlock, fenced_blocks, without_blocks

Edit = tuple[str, str]

_OLD = (
    *("search", "old", "original", "before", "find", "wrong", "incorrect"),
    *("old_code", "old_string", "old_str", "old_text", "current", "existing", "faulty"),
)
_NEW = (
    *("replace", "new", "updated", "after", "replacement", "fixed", "correct", "corrected"),
    *("new_code", "new_string", "new_str", "new_text", "proposed", "should be"),
)
_LABEL = re.compile(
    rf"[\s*_#>:-]*(?:\d+[.)] *)?({'|'.join((*_OLD, *_NEW, 'with', 'from', 'to'))})"
    r"(?: (?:this|the|code|lines?|version|by|with))*[\s*_:-]*",
    re.IGNORECASE,
)
_TAGGED = re.compile(
    rf"<({'|'.join(_OLD)})>(?P<old>(?:(?!</?(?:{'|'.join(_OLD)})>).)*+)</\1>\s*+"
    rf"<({'|'.join(_NEW)})>(?P<new>(?:(?!</?(?:{'|'.join(_NEW)})>).)*+)</\3>",
    re.IGNORECASE | re.DOTALL,
)
_TOLD = re.compile(
    r"(?:\b(?:change|replace|set|turn|update)\b[^`\n]{0,60}`(?P<old>[^`\n]+)`[^`\n]{0,40}"
    r"(?:\b(?:to|with|by|into)\b|→|->)[^`\n]{0,20}"
    r"|`(?P<wrong>[^`\n]+)` (?:(?:should|must|needs to|has to) (?:be|become|read):?|→|->|=>) )`(?P<new>[^`\n]+)`",
    re.IGNORECASE,
)
# Lines set off by four spaces below a label, as Markdown has code without fences.
_INDENTED = re.compile(r"^(\S.*:\**[ \t]*\n\n)((?: {4}.*\n?|[ \t]*\n(?= {4}))+)", re.MULTILINE)
_DIFF_STARTS = re.compile(r"^(?:diff --git .*\n(?:.*\n){0,3}?)?--- \S.*\n\+\+\+ \S.*\n", re.MULTILINE)
_DIFF_LINE = re.compile(r"[ +@\\-]|$")


def as_blocks(edits: Sequence[Edit]) -> str:
    """Return edits as SEARCH/REPLACE blocks."""
    return "\n".join(f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE" for old, new in edits)


def tagged_edits(text: str) -> tuple[list[Edit], str]:
    """Return the edits `<search>…</search><replace>…</replace>` of a text, and the text without them."""
    edits = [(match["old"].strip("\n"), match["new"].strip("\n")) for match in _TAGGED.finditer(text)]
    return edits, _TAGGED.sub("", text)


def labelled_edits(text: str, blocks: Sequence[FencedBlock]) -> tuple[list[Edit], str]:
    """Return the edits of code blocks in pairs with lines such as "Before:" and "After:", and the text without them."""
    if not blocks:
        text = _INDENTED.sub(_fenced, text)
        blocks = fenced_blocks(text)
    lines = text.split("\n")
    labels = [_label_above(lines, block.fence.line) for block in blocks]
    pairs = [
        (old, new)
        for (old, first), (new, second) in pairwise(zip(blocks, labels, strict=True))
        if ((first in _OLD and second in _NEW) or (first, second) in (("replace", "with"), ("from", "to")))
        and old.is_python
        and new.is_python
        and new.closed
    ]
    edits = [(old.body.strip("\n"), new.body.strip("\n")) for old, new in pairs]
    return edits, without_blocks(text, (block for pair in pairs for block in pair))


def _fenced(match: re.Match[str]) -> str:
    return f"{match[1]}```python\n{dedent(match[2])}```\n"


def told_edits(text: str) -> list[Edit]:
    """Return the edits of sentences such as "Change `CFL = 0.8` to `CFL = 0.4`"."""
    return [(match["old"] or match["wrong"], match["new"]) for match in _TOLD.finditer(text)]


def edits_in_json(value: Any) -> Iterator[Edit]:
    """Yield the edits in an object and in the objects within it: keys such as `search` and `replace` with texts."""
    if isinstance(value, Mapping):
        old = next((value[key] for key in _OLD if isinstance(value.get(key), str)), None)
        new = next((value[key] for key in _NEW if isinstance(value.get(key), str)), None)
        if old is not None and new is not None:
            yield old.strip("\n"), new.strip("\n")
        for inner in value.values():
            yield from edits_in_json(inner) if isinstance(inner, list | Mapping) else ()
    elif isinstance(value, list):
        for inner in value:
            yield from edits_in_json(inner) if isinstance(inner, Mapping) else ()


def bare_diff(text: str) -> tuple[str, str]:
    """Return the unified diff of a text that no fence encloses, empty where there is none, and the text without it."""
    start = _DIFF_STARTS.search(text)
    if start is None:
        return "", text
    rows = text[start.end() :].split("\n")
    length = next((n for n, row in enumerate(rows) if not _DIFF_LINE.match(row)), len(rows))
    after = "\n".join(rows[length:])
    return f"{start[0]}{chr(10).join(rows[:length])}\n", f"{text[: start.start()]}\n{after}"


def _label_above(lines: Sequence[str], number: int) -> str:
    above = next((line for line in reversed(lines[max(number - 3, 0) : number]) if line.strip()), "")
    match = _LABEL.fullmatch(above)
    return match[1].lower() if match else ""
