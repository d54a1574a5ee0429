"""One evaluation for all runs of a sweep that ask the same at the same time: the others find it in the cache."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass

from hpc.parking import Parking
from hpc.records import effect_key
from sharp.evaluation.protocol import Evaluation, EvaluationRequest, Evaluator

_REASON = "an equal evaluation of another run"


class Turns:
    """Whose turn it is to have an evaluation made, by what is asked; of one event loop."""

    def __init__(self, parking: Parking) -> None:
        self._parking = parking
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def evaluator(self, inner: Evaluator) -> Evaluator:
        """Return an evaluator that waits while another run has an equal request evaluated; `inner` asks a cache."""
        return _InTurn(inner, self)

    async def take(self, request: EvaluationRequest) -> asyncio.Lock:
        """Return the lock of a request, held."""
        lock = self._locks[effect_key("evaluate", request.to_json())]
        if lock.locked():
            with self._parking.parked(_REASON):
                await lock.acquire()
        else:
            await lock.acquire()
        return lock


@dataclass(frozen=True)
class _InTurn:
    inner: Evaluator
    turns: Turns

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        lock = await self.turns.take(request)
        try:
            return await self.inner.evaluate(request)
        finally:
            lock.release()
