"""Marks of errors that are no larger than the data's own: no such error stands in a table without one."""

from __future__ import annotations

from sharp.document import Level, error_text

FLOOR_MARGIN = 0.01
"""An error that differs from the floor by less than this share is that of the true solution itself."""
BELOW, AT = "‡", "†"
LEGEND = (
    f"{BELOW} below the floor: smaller than the data set's own distance from the true solution, which is agreement "
    f"with the data's errors and no greater accuracy. {AT} at the floor: as far from the data set as the true solution."
)
FLOOR = "the data's own distance from the true solution"
_MARKS = {"below": BELOW, "at": AT, "": ""}


def flag_of(error: float | None, floor: float | None) -> str:
    """Return `below` or `at` where an error against a data set is no more than its floor, and `` otherwise."""
    if error is None or floor is None or error > floor * (1 + FLOOR_MARGIN):
        return ""
    return "below" if error < floor * (1 - FLOOR_MARGIN) else "at"


def floor_levels(floor: float | None) -> tuple[Level, ...]:
    """Return the line that a figure of errors has at the floor, if it is known."""
    return () if floor is None else (Level(FLOOR, "floor", floor),)


def marked_error(error: float | None, flag: str) -> str:
    """Return an error as tables show it, with the mark of its flag (`below`, `at` or none)."""
    return error_text(error) + _MARKS[flag]
