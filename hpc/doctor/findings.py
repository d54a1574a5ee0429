"""What a check found, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from hpc.errors import HpcError

Level = Literal["ok", "note", "warning", "failure"]


@dataclass(frozen=True)
class Finding:
    """One fact about a machine; `remedy` says what to do unless the level is "ok"."""

    check: str
    level: Level
    found: str
    remedy: str = ""
    where: str = "here"


def good(check: str, found: str) -> Finding:
    """Return a finding that asks for nothing."""
    return Finding(check, "ok", found)


def note(check: str, found: str, remedy: str) -> Finding:
    """Return a finding that is good to know."""
    return Finding(check, "note", found, remedy)


def warning(check: str, found: str, remedy: str) -> Finding:
    """Return a finding that something works, but badly or not safely."""
    return Finding(check, "warning", found, remedy)


def failure(check: str, found: str, remedy: str) -> Finding:
    """Return a finding that something does not work."""
    return Finding(check, "failure", found, remedy)


def carefully(check: str, examine: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield a check's findings; a check that fails itself is one."""
    try:
        yield from examine()
    except (HpcError, OSError) as error:
        yield failure(check, str(error), "Fix what the message names, then check again.")
