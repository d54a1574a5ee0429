"""Where a hunk's old lines stand in a program, in four degrees of strictness, and what replaces them.

Two tolerant degrees compare lines that are not blank and write back a three-way merge: lines that the
hunk does not change keep the program's own text, new lines take its indentation.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import pairwise

from sharp.llm.patching_hunks import Hunk, HunkVariant, Lines

SIMILARITY = 0.9
"""The least similarity of a fuzzy match: 2 M / T of its characters, as in difflib."""
MARGIN = 0.05
"""How far the second-best place of a fuzzy match must fall behind the best."""
MAX_PLACES = 20
"""How many places of an ambiguous match are counted."""
MAX_LINE = 200
"""Lines longer than this, in characters, are similar only if they are equal."""


@dataclass(frozen=True)
class SourceLines:
    """A program by lines, without the empty last line that a final newline makes."""

    lines: Lines

    @cached_property
    def solid(self) -> tuple[int, ...]:
        """The numbers of the lines that are not blank."""
        return tuple(number for number, line in enumerate(self.lines) if line.strip())

    @cached_property
    def keys(self) -> Lines:
        """Those lines without white space."""
        return tuple("".join(self.lines[number].split()) for number in self.solid)


@dataclass(frozen=True)
class Match:
    """The lines [first, stop) of a page become `new`."""

    first: int
    stop: int
    new: Lines


@dataclass(frozen=True)
class AmbiguousMatch:
    """The numbers of the lines where the old lines may begin."""

    firsts: tuple[int, ...]


@dataclass
class MatchBudget:
    """How much work the fuzzy search of one patch may still cost, in compared characters."""

    left: int = 3_000_000

    def spend(self, work: int) -> bool:
        """Take work from the budget and say whether there was enough."""
        self.left -= work
        return self.left >= 0


def find_exactly(page: SourceLines, hunk: Hunk, _: MatchBudget) -> Match | AmbiguousMatch | None:
    """Find the old lines character by character; a diff's line number decides between several places."""
    for reading in hunk.readings:
        if hunk.line is None and reading.finds_nothing:
            continue
        firsts = _occurrences(page.lines, reading.old)
        if hunk.line in firsts:
            firsts = (hunk.line,)
        if len(firsts) == 1:
            return Match(firsts[0], firsts[0] + len(reading.old), reading.new)
        if firsts:
            return AmbiguousMatch(firsts)
    return None


def find_loosely(page: SourceLines, hunk: Hunk, _: MatchBudget) -> Match | AmbiguousMatch | None:
    """Find the old lines whatever their white space, indentation and blank lines."""
    for reading in hunk.readings:
        places = _occurrences(page.keys, SourceLines(reading.old).keys)
        if len(places) == 1:
            return _merge(page, reading, places[0])
        if places:
            return AmbiguousMatch(tuple(page.solid[place] for place in places))
    return None


def find_within(page: SourceLines, hunk: Hunk, _: MatchBudget) -> Match | AmbiguousMatch | None:
    """Find the old text as a part of one line, whole words and numbers, and change only that part."""
    for reading in hunk.readings:
        old, new = (" ".join(lines).strip() for lines in (reading.old, reading.new))
        if len(reading.old) != 1 or len(reading.new) > 1 or not old:
            continue
        part = re.compile(rf"(?<![\w.]){re.escape(old)}(?![\w.])")
        found = [(n, place) for n, line in enumerate(page.lines) for place in part.finditer(line)][
            :MAX_PLACES
        ]
        if len(found) == 1:
            ((at, place),) = found
            line = page.lines[at]
            return Match(at, at + 1, (f"{line[: place.start()]}{new}{line[place.end() :]}",))
        if found:
            return AmbiguousMatch(tuple(n for n, _ in found))
    return None


def find_similar(page: SourceLines, hunk: Hunk, budget: MatchBudget) -> Match | AmbiguousMatch | None:
    """Find the one place that is at least 90 % similar to the old lines, line by line, and clearly best."""
    for reading in hunk.readings:
        wanted = SourceLines(reading.old).keys
        ranked = sorted(_similar_places(page.keys, wanted, budget), reverse=True)
        if not ranked or ranked[0][0] < SIMILARITY:
            continue
        rivals = [place for ratio, place in ranked if ratio > ranked[0][0] - MARGIN]
        if len(rivals) == 1:
            return _merge(page, reading, rivals[0])
        return AmbiguousMatch(tuple(page.solid[place] for place in sorted(rivals[:MAX_PLACES])))
    return None


def nearest(page: SourceLines, old: Lines) -> tuple[int, int]:
    """Return the lines [first, stop) of a page that resemble the old lines most."""
    wanted = SourceLines(old).keys[:40]
    if not page.keys or not wanted:
        return 0, 0
    budget, size = MatchBudget(1_000_000), min(len(wanted), len(page.keys))
    likely = heapq.nlargest(8, ((bound, -place) for place, bound in enumerate(_bounds(page.keys, wanted))))
    places = [-place for _, place in likely]
    best = max(places, key=lambda place: _ratio(page.keys[place : place + size], wanted, 0.0, budget))
    return page.solid[best], page.solid[best + size - 1] + 1


def _occurrences(lines: Sequence[str], wanted: Sequence[str]) -> tuple[int, ...]:
    """Return the first numbers of the places where a run of lines stands, at most MAX_PLACES of them."""
    if not wanted or len(wanted) > len(lines):
        return ()
    text, pattern = "\n".join(["", *lines, ""]), "\n".join(["", *wanted, ""])
    firsts: list[int] = []
    at = text.find(pattern)
    while at >= 0 and len(firsts) < MAX_PLACES:
        firsts.append(text.count("\n", 0, at))
        at = text.find(pattern, at + 1)
    return tuple(firsts)


def _similar_places(keys: Lines, wanted: Lines, budget: MatchBudget) -> Iterator[tuple[float, int]]:
    """Yield the similarity and the place of every run of lines that can compete for the best place."""
    if not wanted or len(wanted) > len(keys) or not budget.spend(4 * sum(map(len, keys))):
        return
    best = SIMILARITY
    for bound, place in sorted(((b, p) for p, b in enumerate(_bounds(keys, wanted))), reverse=True):
        if bound < best - MARGIN:
            return
        ratio = _ratio(keys[place : place + len(wanted)], wanted, best - MARGIN, budget)
        best = max(best, ratio)
        yield ratio, place


def _bounds(keys: Lines, wanted: Lines) -> Iterator[float]:
    """Yield an upper bound of the similarity at each place: the characters in common whatever their order."""
    size, goal = min(len(wanted), len(keys)), Counter("".join(wanted))
    window = Counter("".join(keys[:size]))
    common, total = (goal & window).total(), goal.total() + window.total()
    yield 2 * common / total
    for leaving, entering in zip(keys, keys[size:], strict=False):
        for character in leaving:
            common -= window[character] <= goal[character]
            window[character] -= 1
        for character in entering:
            window[character] += 1
            common += window[character] <= goal[character]
        total += len(entering) - len(leaving)
        yield 2 * common / total


def _ratio(keys: Lines, wanted: Lines, minimum: float, budget: MatchBudget) -> float:
    """Return the similarity of two runs of lines compared line by line, 0 where it is below a minimum."""
    total = sum(map(len, keys)) + sum(map(len, wanted))
    differing = sum(map(len, wanted[len(keys) :]))
    for key, want in zip(keys, wanted, strict=False):
        differing += len(key) + len(want) - 2 * _common(key, want, budget)
        if differing > (1 - minimum) * total:
            return 0.0
    return 1 - differing / total


def _common(a: str, b: str, budget: MatchBudget) -> int:
    if a == b:
        return len(a)
    if max(len(a), len(b)) > MAX_LINE or not budget.spend(4 * len(a) * len(b)):
        return 0
    return sum(block.size for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks())


def _merge(page: SourceLines, reading: HunkVariant, place: int) -> Match:
    """Return the hunk's new lines with the program's own text wherever the hunk changes nothing."""
    old = [line for line in reading.old if line.strip()]
    # Blank lines that surround both parts are no part of the change.
    head = min(_margin(reading.old), _margin(reading.new))
    tail = min(_margin(reading.old[::-1]), _margin(reading.new[::-1]))
    new = reading.new[head : len(reading.new) - tail]
    found = page.solid[place : place + len(old)]
    kept = _unchanged(old, new)
    indentation = _Indentation(page, old, found, new)
    merged: list[str] = []
    blank: list[str] = []
    last, adjacent = 0, False
    for number, line in enumerate(new):
        own = kept.get(number)
        if not line.strip():
            blank.append(line)
        elif own is None:
            merged += [*blank, indentation.of(line, last)]
            blank, adjacent = [], False
        else:
            between = page.lines[found[last] + 1 : found[own]]
            merged += [*(between if adjacent and own == last + 1 else blank), page.lines[found[own]]]
            blank, adjacent, last = [], True, own
    return Match(found[0], found[-1] + 1, (*merged, *blank))


def _margin(lines: Lines) -> int:
    return next((number for number, line in enumerate(lines) if line.strip()), len(lines))


def _unchanged(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Pair new lines with equal old ones in order: the next in turn, or one that occurs once in both."""
    before, after = Counter(old), Counter(new)
    unique = {line: number for number, line in enumerate(old) if before[line] == after[line] == 1}
    pairs: dict[int, int] = {}
    turn = 0
    for number, line in enumerate(new):
        own = turn if turn < len(old) and old[turn] == line else unique.get(line, -1)
        if own >= turn:
            pairs[number] = own
            turn = own + 1
    return pairs


class _Indentation:
    """How the indentation of a hunk translates into the program's, learned from the lines they share."""

    def __init__(
        self, page: SourceLines, old: Sequence[str], found: Sequence[int], new: Sequence[str]
    ) -> None:
        pairs = [(line, page.lines[number]) for line, number in zip(old, found, strict=True)]
        learned = [(_indent(a), _indent(b)) for a, b in pairs if a.split() == b.split()]
        self.known: dict[str, set[str]] = {}
        for mine, theirs in learned:
            self.known.setdefault(mine, set()).add(theirs)
        # A line that is quoted wrongly teaches nothing: the one before it stands in.
        last = learned[0] if learned else (_indent(pairs[0][0]), _indent(pairs[0][1]))
        self.near: list[tuple[str, str]] = []
        for a, b in pairs:
            last = (_indent(a), _indent(b)) if a.split() == b.split() else last
            self.near.append(last)
        same = any(mine and mine == theirs for mine, theirs in learned)
        self.step = "" if same else _step(old) or _step(new)
        self.page_step = _step([page.lines[number] for number in page.solid])

    def of(self, line: str, anchor: int) -> str:
        """Return a new line re-indented; `anchor` numbers the shared line before it."""
        indent = _indent(line)
        known = self.known.get(indent, set())
        target = next(iter(known)) if len(known) == 1 else self._relative(indent, *self.near[anchor])
        return target + line[len(indent) :]

    def _relative(self, indent: str, mine: str, theirs: str) -> str:
        if indent.startswith(mine):
            return theirs + self._translate(indent[len(mine) :])
        return theirs[: max(len(theirs) - len(self._translate(mine[len(indent) :])), 0)]

    def _translate(self, extra: str) -> str:
        count = len(extra) // len(self.step) if self.step else 0
        return self.page_step * count if self.page_step and extra == self.step * count else extra


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _step(lines: Sequence[str]) -> str:
    """Return one level of indentation as most lines show it after a colon, or an empty string."""
    steps: Counter[str] = Counter()
    for above, below in pairwise(lines):
        outer, inner = _indent(above), _indent(below)
        if above.rstrip().endswith(":") and inner.startswith(outer):
            steps[inner[len(outer) :]] += 1
    return max(steps, key=lambda step: steps[step], default="")
