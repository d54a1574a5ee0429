"""Waiting for what happens elsewhere, up to a limit that only a hang reaches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(look: Callable[[], T], what: str = "it is so", *, seconds: float = 600, step_s: float = 0.05) -> T:
    """Return what a look gives as soon as it gives something."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"it did not come so far that {what}"
        time.sleep(step_s)
    return found


async def until_seen(
    look: Callable[[], T], what: str = "it is so", *, seconds: float = 600, step_s: float = 0.01
) -> T:
    """Do the same while other tasks of the event loop go on."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"it did not come so far that {what}"
        await asyncio.sleep(step_s)
    return found
