"""Patches as models write them, read into hunks: SEARCH/REPLACE blocks (first choice) and unified diffs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Literal

from sharp.errors import ReplyError
from sharp.llm.replies_text import FencedBlock, normalise, parses, plain_quotes, without_line_numbers

MAX_PATCH = 200_000
"""The longest patch that is read, in characters."""
MAX_HUNKS = 64
"""The most hunks of a patch."""
MAX_DIVIDERS = 4
"""The most lines of equals signs in a SEARCH/REPLACE block: each may be the divider or belong to the code."""

Lines = tuple[str, ...]

# What opens, divides and closes a block. Models also write the markers of other programs: of version control, of
# editors' agents. Those of dashes and plus signs need their word, because such lines underline headings, too.
# Those of angle brackets may have any word.
_OLD = r"(?:SEARCH|ORIGINAL|OLD|BEFORE|FIND|HEAD)"
_NEW = r"(?:REPLACE|UPDATED?|NEW|AFTER|REPLACEMENT)"
_SEARCH = re.compile(
    rf"([ \t]*+)(?:<{{5,9}}+(?! ?{_NEW}\b)(?: ?[^\W\d_]{{2,20}}+)?|(?:-{{5,9}}+|[<>]{{3,9}}+) ?{_OLD})"
    r":?(?:[ (].{0,60}+)?\s*+",
    re.IGNORECASE,
)
_DIVIDER = re.compile(r"([ \t]*+)={4,9}+\s*+")
_REPLACE = re.compile(
    rf"([ \t]*+)(?:>{{5,9}}+(?: ?[A-Za-z][\w./-]*+)?|(?:\+{{5,9}}+|[<>]{{3,9}}+) ?{_NEW}):?(?:[ (].{{0,60}}+)?\s*+",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\s*+(?:```|~~~)[\w+-]*+\s*+")
_HUNK_HEADER = re.compile(r"@@(?: -([0-9]{1,9})(?:,([0-9]{1,9}))? \+[0-9]{1,9}(?:,([0-9]{1,9}))? @@)?.*+")
_NORMAL = re.compile(r"[0-9]++(?:,[0-9]++)?[acd][0-9]++(?:,[0-9]++)?")
_DOTS = re.compile(r"\s*+#? ?(?:\.\.\.|…)\s*+")
_SIGNED = re.compile(r"[ +-]")
_DIFF_BEGINS = ("--- ", "diff --git ", "@@ ", "*** Begin Patch")
_GIT_HEADER = re.compile(
    r"diff --git .*+|index [0-9a-f]++\.\.[0-9a-f]++.*+|(?:new|deleted) file mode [0-9]++"
    r"|\*\*\* (?:Begin Patch|End Patch|Update File: .*+)"
)


@dataclass(frozen=True)
class HunkVariant:
    """One way to read a hunk: the lines to find and the lines to put in their place."""

    old: Lines
    new: Lines

    @property
    def finds_nothing(self) -> bool:
        """Whether all lines to find are blank."""
        return not any(line.strip() for line in self.old)


@dataclass(frozen=True)
class Hunk:
    """One edit: the text as written and its possible readings, the likeliest first.

    `line` is where a diff header says that the old lines begin (counted from 0), which is only a hint;
    `final_newline` says what a diff wants at the end of the file, None where it says nothing; `parts` are a diff's
    changes without the lines around them, for a context that is quoted wrongly.
    """

    text: str
    readings: tuple[HunkVariant, ...]
    line: int | None = None
    final_newline: bool | None = None
    parts: tuple[HunkVariant, ...] = ()

    @property
    def replaced(self) -> Lines:
        """The old lines where the new ones do not hold them all, as an insertion does; else none."""
        reading = self.readings[0]
        return () if set(reading.old) <= set(reading.new) else reading.old

    @property
    def changes_nothing(self) -> bool:
        """Whether old and new lines are the same."""
        return self.final_newline is None and all(reading.old == reading.new for reading in self.readings)


@dataclass(frozen=True)
class BlockSpan:
    """The lines of a SEARCH/REPLACE block: opening marker, possible dividers, closing marker."""

    first: int
    dividers: tuple[int, ...]
    last: int


def read_hunks(kind: Literal["search-replace", "unified-diff"], text: str) -> tuple[Hunk, ...]:
    """Read a patch; raises ReplyError if it is malformed or larger than a patch may be."""
    if len(text) > MAX_PATCH:
        raise ReplyError(f"The patch has {len(text)} characters; at most {MAX_PATCH} are read.")
    text = normalise(text)
    if kind == "search-replace":
        lines = text.split("\n")
        read = (_search_replace_hunk(lines, region) for region in search_replace_regions(lines))
        hunks = tuple(piece for hunk in read for piece in _pieces(hunk))
    else:
        hunks = _diff_hunks(text)
    # A model that repeats a block means it once; what replaces the same lines in another way, as it stands last.
    hunks = tuple({(hunk.replaced or hunk.readings, hunk.line): hunk for hunk in hunks}.values())
    if not hunks:
        raise ReplyError("The patch holds no SEARCH/REPLACE block.")
    if len(hunks) > MAX_HUNKS:
        raise ReplyError(f"The patch has {len(hunks)} blocks; at most {MAX_HUNKS} are applied.")
    return hunks


def search_replace_regions(lines: Sequence[str]) -> tuple[BlockSpan, ...]:
    """Find the SEARCH/REPLACE blocks of a text, inside or outside code fences.

    A marker stands alone on its line, indented like the marker that opened the block, so that the same text
    elsewhere in code does not count. Raises ReplyError for a block without divider or without end.
    """
    regions: list[BlockSpan] = []
    first, indent, dividers = -1, "", list[int]()
    for number, line in enumerate(lines):
        if first < 0:
            if opening := _SEARCH.fullmatch(line):
                first, indent, dividers = number, opening[1], []
        elif _is_marker(_SEARCH, line, indent):
            raise ReplyError(_unclosed(len(regions) + 1, "before the next one begins"))
        elif _is_marker(_DIVIDER, line, indent):
            dividers.append(number)
        elif _is_marker(_REPLACE, line, indent):
            regions.append(_region(len(regions) + 1, first, dividers, number))
            first = -1
        elif dividers and _FENCE.fullmatch(line) and number > dividers[-1] + 1 and _opens_fence(lines, first):
            # The fence around the block ends, so its last marker was forgotten and not cut off.
            regions.append(_region(len(regions) + 1, first, dividers, number))
            first = -1
    if first >= 0:
        raise ReplyError(_unclosed(len(regions) + 1, "before the reply ends"))
    return tuple(regions)


def _opens_fence(lines: Sequence[str], first: int) -> bool:
    """Whether the line before a block opens a fence."""
    return first > 0 and _FENCE.fullmatch(lines[first - 1]) is not None


def looks_like_diff(block: FencedBlock) -> bool:
    """Say whether a fenced block holds a unified diff, by its label or by how its text begins."""
    if block.fence.language in {"diff", "patch", "udiff"}:
        return True
    first = block.body.lstrip().partition("\n")[0]
    return first.startswith(_DIFF_BEGINS) or bool(_NORMAL.fullmatch(first)) or _is_signed(block.body)


def _is_signed(body: str) -> bool:
    """Whether a text is no Python, and every line begins with the sign of a diff."""
    rows = [row for row in body.split("\n") if row.strip()]
    return {"-", "+"} <= {row[0] for row in rows} <= {"-", "+", " "} and not parses(body)


def with_header(body: str) -> str:
    """Return a diff that begins with a header, so that it can stand behind another."""
    return body if body.lstrip().startswith((*_DIFF_BEGINS, "@@")) else f"@@\n{body}"


def _diff_hunks(text: str) -> tuple[Hunk, ...]:
    """Read a normalised unified diff.

    File headers are skipped, the numbers of the hunk headers may be missing or wrong, and a context line may
    have lost its leading space. Raises ReplyError where no line is added or removed.
    """
    drafts: list[_Draft] = []
    draft: _Draft | None = None
    lines = _as_unified(text.split("\n"))
    number = 0
    while number < len(lines):
        length = 0 if draft and draft.is_due else _length_of_file_header(lines, number)
        if length:
            draft = None
        elif header := _HUNK_HEADER.fullmatch(lines[number]):
            drafts.append(draft := _Draft(header))
        elif draft and _DOTS.fullmatch(lines[number]) and not draft.is_due:
            drafts.append(draft := _Draft())
        elif draft:
            draft.add(lines[number])
        elif _SIGNED.match(lines[number]):
            drafts.append(draft := _Draft())
            draft.add(lines[number])
        number += length or 1
    hunks = tuple(draft.hunk() for draft in drafts if draft.rows)
    if all(hunk.changes_nothing for hunk in hunks):
        raise ReplyError("The diff has no line that begins with '+' or '-', so it changes nothing.")
    return hunks


def _as_unified(lines: list[str]) -> list[str]:
    """Return the lines of a diff in `diff`'s normal form (`3c3`, `< old`, `---`, `> new`) as those of a unified one."""
    if not any(_NORMAL.fullmatch(line) for line in lines):
        return lines
    signs = {"< ": "-", "> ": "+"}
    return [
        "@@" if _NORMAL.fullmatch(line) else signs.get(line[:2], "") + line[2 * (line[:2] in signs) :]
        for line in lines
        if line != "---"
    ]


def _is_marker(pattern: re.Pattern[str], line: str, indent: str) -> bool:
    match = pattern.fullmatch(line)
    return match is not None and match[1] == indent


def _unclosed(number: int, where: str) -> str:
    return (
        f"SEARCH/REPLACE block {number} is not closed by a line '>>>>>>> REPLACE' {where}. "
        "Each block is '<<<<<<< SEARCH', the old lines, '=======', the new lines, '>>>>>>> REPLACE'."
    )


def _region(number: int, first: int, dividers: list[int], last: int) -> BlockSpan:
    if not dividers:
        raise ReplyError(
            f"SEARCH/REPLACE block {number} has no line '=======' between its old and new lines."
        )
    if len(dividers) > MAX_DIVIDERS:
        raise ReplyError(
            f"SEARCH/REPLACE block {number} has {len(dividers)} lines of equals signs that may divide it; "
            f"at most {MAX_DIVIDERS} are read. Use smaller blocks."
        )
    return BlockSpan(first, tuple(dividers), last)


def _search_replace_hunk(lines: list[str], region: BlockSpan) -> Hunk:
    # Equals signs may also underline a heading in the code: the longest old part that is found wins.
    plain = [
        HunkVariant(tuple(lines[region.first + 1 : divider]), _without_end(lines[divider + 1 : region.last]))
        for divider in reversed(region.dividers)
    ]
    bare = [HunkVariant(_without_fences(reading.old), _without_fences(reading.new)) for reading in plain]
    for mend in (_unnumbered, _plainly_quoted):
        bare += [HunkVariant(mend(reading.old), mend(reading.new)) for reading in bare]
    text = "\n".join(lines[region.first : region.last + 1])
    return Hunk(text, tuple(dict.fromkeys([*plain, *bare])))


def _without_end(new: list[str]) -> Lines:
    """Return new lines without a second divider that ends them: one below a statement underlines no heading."""
    doubled = len(new) > 1 and new[-1].rstrip() == "=" * 7 and re.search(r"[=(]", new[-2])
    return tuple(new[:-1] if doubled else new)


def _without_fences(lines: Lines) -> Lines:
    """Return the inside of a part that is wrapped in a code fence of its own, any other part as it is."""
    solid = [number for number, line in enumerate(lines) if line.strip()]
    if len(solid) > 1 and all(_FENCE.fullmatch(lines[number]) for number in (solid[0], solid[-1])):
        return lines[solid[0] + 1 : solid[-1]]
    return lines


def _pieces(hunk: Hunk) -> list[Hunk]:
    """Return the parts of a hunk between lines of dots, of which old and new have as many: what they mean stays."""
    reading = hunk.readings[0]
    old, new = _between_dots(reading.old), _between_dots(reading.new)
    if len(hunk.readings) > 1 or len(old) != len(new) or len(old) == 1:
        return [hunk]
    pieces = (HunkVariant(before, after) for before, after in zip(old, new, strict=True))
    return [replace(hunk, readings=(piece,)) for piece in pieces if piece.old != piece.new]


def _between_dots(lines: Lines) -> list[Lines]:
    ends = [-1, *(n for n, line in enumerate(lines) if _DOTS.fullmatch(line)), len(lines)]
    return [lines[first + 1 : stop] for first, stop in pairwise(ends)]


def _plainly_quoted(lines: Lines) -> Lines:
    return tuple(plain_quotes(line) for line in lines)


def _unnumbered(lines: Lines) -> Lines:
    """Return lines without the numbers of the listing that they were copied from."""
    return tuple(without_line_numbers("\n".join(lines)).split("\n")) if lines else lines


class _Draft:
    """A diff hunk while it is read: its rows with their signs and how many its header still announces."""

    def __init__(self, header: re.Match[str] | None = None) -> None:
        self.header = header
        self.rows: list[str] = []
        self.open_ends: set[str] = set()
        start, *counts = header.groups() if header else (None, None, None)
        self.start = None if start is None else int(start)
        # A header that gives no count announces one line.
        usual = int(start is not None)
        self.due = {
            sign: usual if count is None else int(count) for sign, count in zip("-+", counts, strict=True)
        }

    @property
    def is_due(self) -> bool:
        """Whether the header announces more lines than were read."""
        return any(count > 0 for count in self.due.values())

    def add(self, line: str) -> None:
        """Add a line as it stands in the diff."""
        if line.startswith("\\"):
            self.open_ends |= self._sides(self.rows[-1]) if self.rows else set()
            return
        row = line if not line or _SIGNED.match(line) else f" {line}"
        self.rows.append(row)
        for side in self._sides(row):
            self.due[side] -= 1

    def hunk(self) -> Hunk:
        """Return the finished hunk; empty lines at its end belong to the reply's layout."""
        while self.rows and not self.rows[-1]:
            self.rows.pop()
        old = tuple(row[1:] for row in self.rows if not row.startswith("+"))
        new = tuple(row[1:] for row in self.rows if not row.startswith("-"))
        end = "+" not in self.open_ends if self.open_ends else None
        line = None if self.start is None else max(self.start - 1, 0)
        text = "\n".join([self.header[0], *self.rows] if self.header else self.rows)
        return Hunk(text, (HunkVariant(old, new),), line, end, tuple(self._parts()))

    def _parts(self) -> Iterator[HunkVariant]:
        """Yield each change alone; one that only adds lines keeps the line before it."""
        above: Lines = ()
        for kept, rows in groupby(self.rows, lambda row: not row.startswith(("+", "-"))):
            run = list(rows)
            old = tuple(row[1:] for row in run if row.startswith("-"))
            new = tuple(row[1:] for row in run if row.startswith("+"))
            if kept:
                above = (run[-1][1:],)
            else:
                yield HunkVariant(old, new) if old else HunkVariant(above, (*above, *new))

    @staticmethod
    def _sides(row: str) -> set[str]:
        return {row[0]} if row.startswith(("-", "+")) else {"-", "+"}


def _length_of_file_header(lines: list[str], number: int) -> int:
    """Return how many lines of a file header begin here, 0 for none."""
    if _GIT_HEADER.fullmatch(lines[number]):
        return 1
    names = lines[number].startswith("--- ") and "".join(lines[number + 1 : number + 2]).startswith("+++ ")
    after = "".join(lines[number + 2 : number + 3])
    return 2 if names and (not after or after.startswith(("@@", " ", "+", "-"))) else 0
