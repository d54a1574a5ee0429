"""Which programs each judge has read, from the requests that a run's journal holds: no method has to be run for it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hpc.journal import EffectRecord

_PLACE = re.compile(r"cycle-(?P<cycle>\d+)/select/judge-(?P<judge>\d+)(?:/sitting-\d+)?")
# The headings of prompts/synthesis/select.md; a test holds them to what judges are recorded to have read.
_HEADING = re.compile(
    r"^### Candidate (?P<name>\S+) \(.*?\)(?P<summary>, a summary in place of its code)?$", re.MULTILINE
)
_UNREAD = re.compile(r"^Left out here for want of room are (?P<names>.+?);", re.MULTILINE)
_DROPPED = re.compile(r"^\[(?P<name>\S+) is left out here: ", re.MULTILINE)


@dataclass
class _Read:
    full: set[str] = field(default_factory=set)
    summarised: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)


def readings(effects: Mapping[str, EffectRecord], judges_wanted: int) -> Iterator[str]:
    """Yield who has read how many of the programs of each cycle: a line once all judges have, or one for each."""
    cycles: defaultdict[int, dict[int, _Read]] = defaultdict(dict)
    for path, effect in effects.items():
        if effect.kind == "chat" and (place := _PLACE.fullmatch(path)):
            read = cycles[int(place["cycle"])].setdefault(int(place["judge"]), _Read())
            _add(read, effect.request["messages"][-1]["content"])
    for cycle, judges in sorted(cycles.items()):
        ordered = [judges[number] for number in sorted(judges)]
        yield from _lines(cycle, ordered, sorted(judges), all_asked=len(judges) >= judges_wanted)


def _add(read: _Read, prompt: str) -> None:
    for found in _HEADING.finditer(prompt):
        (read.summarised if found["summary"] else read.full).add(found["name"])
    for found in _UNREAD.finditer(prompt):
        read.unread.update(found["names"].split(", "))
    read.unread.update(found["name"] for found in _DROPPED.finditer(prompt))


def _lines(cycle: int, judges: Sequence[_Read], numbers: Iterable[int], *, all_asked: bool) -> Iterator[str]:
    pool = set[str]().union(*(each.full | each.summarised | each.unread for each in judges))
    if all_asked and all(each.full == pool for each in judges):
        yield f"cycle {cycle}: every judge has read all {len(pool)} programs in full"
        return
    for number, each in zip(numbers, judges, strict=True):
        summary = f", a summary of {len(each.summarised)}" if each.summarised else ""
        nothing = len(pool) - len(each.full | each.summarised)
        without = f", nothing of {nothing}" if nothing else ""
        yield f"cycle {cycle}, judge {number}: read {len(each.full)} of {len(pool)} programs in full{summary}{without}"
