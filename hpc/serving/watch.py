"""Watching a server that has been announced: whether it lives, still generates, is asked for anything."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from hpc.errors import InfrastructureError
from hpc.serving.probe import Probe, ProbeError, Work
from hpc.serving.process import ServerProcess
from hpc.serving.services import BEAT_S, beat

_LOOK_S = 0.5
_FAILURES = 2
SIGNALS_S = 1.0
"""A job that is cancelled gets the signal in all its processes; the server may go before ours is heard."""


class ServerLost(InfrastructureError):
    """A server that had answered died or hangs."""


class Watch:
    """Watches one server. Every `watch_s` seconds it has to generate a token within twice that time.

    One that does not, twice in a row, hangs, unless it gets on with other work meanwhile: a full server may let
    a probe wait for minutes. One that has had no work but these probes for `idle_s` is idle; what
    counts nothing never is.
    """

    def __init__(
        self,
        process: ServerProcess,
        probe: Probe,
        folder: Path,
        worker: str,
        *,
        watch_s: float,
        idle_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._process, self._probe, self._folder, self._worker = process, probe, folder, worker
        self._watch_s, self._idle_s, self._clock = watch_s, idle_s, clock
        self._failures: list[str] = []
        self._work: Work | None = None
        self._probes = self._others = 0
        self._busy_at = self._beaten_at = self._clock()

    @property
    def summary(self) -> str:
        """What the server has done, as far as it counts."""
        if self._work is None:
            return "it does not count its work"
        share = self._work.found / self._work.looked_up if self._work.looked_up else 0.0
        return (
            f"{self._work.finished} requests, {self._work.tokens} tokens; {share:.0%} of the prompts' tokens "
            "were in its prefix cache"
        )

    async def until_over(self, told: asyncio.Event, ends: float) -> str:
        """Return why the server is to end; raise `ServerLost` where it has ended or hangs. `ends` as `time.time`."""
        prober = asyncio.create_task(self._probe_on())
        try:
            while True:
                if self._process.exit_code is not None and not await within(told, SIGNALS_S):
                    raise self._lost(f"the server ended by itself (code {self._process.exit_code})")
                if len(self._failures) >= _FAILURES:
                    raise self._lost(f"the server hangs: {self._failures[-1]}")
                if told.is_set():
                    return "told to stop"
                if time.time() > ends:
                    return "the job's time is nearly up"
                if prober.done():
                    prober.result()
                if self._clock() - self._busy_at > self._idle_s:
                    return f"nobody asked for anything for {self._idle_s:g} s"
                self._beat()
                await within(told, min(_LOOK_S, self._watch_s))
        finally:
            prober.cancel()

    async def drained(self, limit_s: float) -> None:
        """Wait until the server has nothing at hand any more, twice in a row; at most so long.

        Clients may learn a moment later that it is withdrawn. One that counts nothing is not waited for.
        """
        deadline, quiet = self._clock() + limit_s, 0
        while self._clock() < deadline and quiet < 2 and self._process.exit_code is None:
            try:
                work = await asyncio.to_thread(self._probe.work)
            except ProbeError:
                return
            if work is None:
                return
            self._work = work
            quiet = 0 if work.at_hand else quiet + 1
            await asyncio.sleep(_LOOK_S)

    def _lost(self, sentence: str) -> ServerLost:
        return ServerLost(f"{sentence}.{self._process.quoted()}")

    def _beat(self) -> None:
        if not self._failures and self._clock() - self._beaten_at > BEAT_S:
            beat(self._folder, self._worker)
            self._beaten_at = self._clock()

    async def _probe_on(self) -> None:
        while True:
            await self._count()
            await asyncio.sleep(self._watch_s)
            before = self._work
            try:
                await asyncio.to_thread(self._probe.generate, 2 * self._watch_s)
            except ProbeError as error:
                await self._count()
                moved = before is not None and self._work is not None and self._work.tokens > before.tokens
                self._failures = [] if moved else [*self._failures, str(error)]
            else:
                self._probes += 1
                self._failures = []

    async def _count(self) -> None:
        """Look at what the server has done, and whether any of it was asked by others."""
        try:
            work = await asyncio.to_thread(self._probe.work)
        except ProbeError:
            return
        if work is not None:
            # A server may count a probe a little later than it answers it.
            others = max(self._others, work.finished - self._probes)
            busy = work.at_hand > 0 or others > self._others
            self._work, self._others = work, others
        if work is None or busy:
            self._busy_at = self._clock()


async def within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, so long at most; return whether it has come."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
