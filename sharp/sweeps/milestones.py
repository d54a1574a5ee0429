"""How far runs have come, for those that wait for their answers; of one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import get_args

from sharp.sweeps.graph import Share, Stage

STAGES: tuple[Stage, ...] = get_args(Stage)


class Milestones:
    """Which stages the runs of the cells at play have passed. `before` says it of all others."""

    def __init__(self, playing: Iterable[str], before: Callable[[Share], bool]) -> None:
        loop = asyncio.get_running_loop()
        self._before = before
        self._stages = {(cell, stage): loop.create_future() for cell in playing for stage in STAGES}

    def passed(self, cell: str, barrier: str) -> None:
        """Say that a run has come to a barrier; those of other stages than the shared ones do not count."""
        for stage in STAGES:
            if barrier == stage:
                self._settle(cell, stage, passed=True)

    def over(self, cell: str) -> None:
        """Say that nothing more is to be expected of a run."""
        for stage in STAGES:
            self._settle(cell, stage, passed=False)

    async def reached(self, share: Share) -> bool:
        """Wait until a donor has passed a stage, or is over; return whether it has."""
        if (share.donor, share.stage) not in self._stages:
            return self._before(share)
        return await asyncio.shield(self._stages[share.donor, share.stage])

    def _settle(self, cell: str, stage: Stage, *, passed: bool) -> None:
        future = self._stages[cell, stage]
        if not future.done():
            future.set_result(passed)
