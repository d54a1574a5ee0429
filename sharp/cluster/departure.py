"""When whoever steers a campaign leaves before its end."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from hpc.lease import Lease
from hpc.parking import Parking
from hpc.slurm.campaign import Campaign, read_wishes
from sharp.cluster.told import Told

LOOK_S = 5.0

_SETTLE_S = 0.2


async def until_waiting(parking: Parking, lease: Lease) -> tuple[str, ...]:
    """Return once nothing is left to do but to wait, with what for; raises `Fenced` once another steers."""
    waiting = asyncio.ensure_future(parking.until_waiting())
    try:
        while not waiting.done():
            lease.beat()
            await asyncio.wait({waiting}, timeout=LOOK_S)
        return waiting.result()
    finally:
        waiting.cancel()


class Departure:
    """Tells a controller job when to leave: it was told to, people want the campaign to stop, or its time is nearly up.

    For the last of `margin_s` seconds before `ends` (since 1970; None: nobody knows) nothing new begins, and what is in
    flight may come to its end for the first three quarters of them.
    """

    def __init__(
        self, campaign: Campaign, lease: Lease, told: Told, ends: float | None, margin_s: float
    ) -> None:
        self._campaign, self._lease, self._told = campaign, lease, told
        self._ends, self._margin_s = ends, margin_s

    @property
    def due(self) -> bool:
        """Whether it is time to leave."""
        return self._told.yet or self._left_s() <= 0 or read_wishes(self._campaign).stop

    async def within(self, seconds: float) -> bool:
        """Wait for so long at most, and return whether it is time to leave; raises `Fenced` once another steers."""
        until = time.monotonic() + seconds
        while not self.due and (rest := until - time.monotonic()) > 0:
            self._lease.beat()
            await self._told.within(max(min(rest, LOOK_S, self._left_s()), 0.0))
        return self.due

    async def wait(self, parking: Parking) -> tuple[str, ...]:
        """Return when it is time to leave, with what is waited for then; raises `Fenced` once another steers."""
        while not await self.within(LOOK_S):
            pass
        if not self._told.yet:
            parking.close("the next controller job")
            with suppress(TimeoutError):
                async with asyncio.timeout(0.75 * self._margin_s + _SETTLE_S):
                    await parking.until_waiting()
        return parking.reasons

    def _left_s(self) -> float:
        return float("inf") if self._ends is None else self._ends - self._margin_s - time.time()
