"""What is known of the runs of a folder, kept until their files change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hpc.errors import ExpectedError
from sharp.document import MISSING, plural
from sharp.view.finding import Signature, find_runs, signature

if TYPE_CHECKING:
    from sharp.document import Block, Section
    from sharp.runs import Status

# The first page needs none of what shows a run: that is imported where it is used.

# What a folder's campaign is told of: handed in by whoever may ask for it.
Campaign = Callable[[Path], "tuple[Block, ...]"]
ORDER = ("now", "glance", "jobs", "lineage", "story", "programs", "failures", "reasons", "ledger")


@dataclass(frozen=True)
class Row:
    """One run in the list of runs; empty texts until it has been read."""

    name: str
    problem: str = ""
    method: str = ""
    stage: str = ""
    error: str = ""
    spent: str = ""

    @classmethod
    def of(cls, name: str, seen: Status) -> Row:
        """Return the row of a run that has been looked at."""
        from sharp.runs import known_error

        dollars = "unknown" if seen.dollars is None else f"${seen.dollars:.2f}"
        stage = seen.stage if seen.finished or seen.controller else f"{seen.stage}, no process is running"
        spent = f"{plural(seen.calls, 'call')}, {plural(seen.executions, 'run')}, {dollars}"
        best = known_error(seen.best_nrmse_reference, seen.best_nrmse, seen.best_residual) or MISSING
        return cls(name, seen.problem, seen.method, stage, best, spent)


@dataclass
class Watch:
    """The runs of one folder. All methods may be called from several threads; nothing is ever written."""

    folder: Path
    campaign: Campaign
    runs: dict[str, Path] = field(default_factory=dict)
    _rows: dict[str, tuple[Signature, Row]] = field(default_factory=dict)
    _parts: dict[tuple[str, str], tuple[Signature, dict[str, str]]] = field(default_factory=dict)
    # One part of a kind is made at a time: two threads that build syntax trees of programs break CPython 3.11.
    _locks: dict[str, threading.Lock] = field(
        default_factory=lambda: {"recorded": threading.Lock(), "replayed": threading.Lock()}
    )

    def __post_init__(self) -> None:
        self.find()

    def find(self) -> None:
        """Look which runs there are now; raises `RunDirectoryError`."""
        self.runs = find_runs(self.folder)

    def rows(self) -> list[Row]:
        """Return the list of runs as far as they have been read."""
        return [self._rows.get(name, ((), Row(name)))[1] for name in self.runs]

    def read_rows(self) -> Iterator[str]:
        """Read the runs that have changed one by one, and yield the name of each."""
        from sharp.runs import view

        for name, path in list(self.runs.items()):
            stamp = signature(path)
            if self._rows.get(name, ((), None))[0] == stamp:
                continue
            try:
                row = Row.of(name, view(path))
            except (ExpectedError, KeyError, ValueError) as error:
                row = Row(name, stage=f"cannot be read: {error}")
            self._rows[name] = stamp, row
            yield name

    def quick(self, name: str, prefix: str) -> dict[str, str]:
        """Return the parts of a run that come from its journal alone, as HTML by anchor."""
        return self._kept(name, prefix, "recorded", self._recorded)

    def slow(self, name: str, prefix: str) -> dict[str, str]:
        """Return the parts of a run that need its method's state, as HTML by anchor."""
        from sharp.view.parts import replayed

        return self._kept(name, prefix, "replayed", replayed)

    def _recorded(self, path: Path) -> Iterator[Section]:
        from sharp.document import Section
        from sharp.view.parts import recorded

        yield from recorded(path)
        blocks = self.campaign(path)
        if blocks:
            yield Section("jobs", "Jobs and servers", blocks)

    def _kept(
        self, name: str, prefix: str, kind: str, made: Callable[[Path], Iterator[Section]]
    ) -> dict[str, str]:
        path, key = self.runs[name], (f"{prefix}{name}", kind)
        with self._locks[kind]:
            stamp = signature(path)
            known = self._parts.get(key)
            if known is None or known[0] != stamp or kind == "recorded":
                known = stamp, dict(_rendered(path, prefix, made))
                self._parts[key] = known
            return known[1]


def _rendered(
    path: Path, prefix: str, made: Callable[[Path], Iterator[Section]]
) -> Iterator[tuple[str, str]]:
    from sharp.document import Note, Section, render_part

    try:
        for section in made(path):
            yield section.anchor, render_part(section, prefix)
    except ExpectedError as error:
        failed = Section("now", "State", (Note(str(error), "warning"),))
        yield "now", render_part(failed, prefix)
