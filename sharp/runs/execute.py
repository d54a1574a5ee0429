"""A run on this machine from wherever it is to its end; and its replay, from the record alone."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import zip_longest

from hpc.errors import ReplayMiss
from hpc.journal import Journal, ReplayJournal
from hpc.parking import Parking
from sharp.methods import play
from sharp.runs.advance import advance, controlling, ignore, session_of
from sharp.runs.directory import Run
from sharp.runs.effects import JournaledEffects, Listener
from sharp.runs.reuse import Nobody
from sharp.runs.site import LocalSite
from sharp.stages.state import Tournament


@dataclass(frozen=True)
class Replay:
    """What replaying the record gave: the state, and how far it agrees with what was recorded.

    `missing` says which effect the record lacks (None if it holds the whole run); `differing` names the first barrier
    whose state is not the recorded one; `digest` is that of the last state.
    """

    state: Tournament
    missing: str | None
    differing: str | None
    digest: str | None

    @property
    def same(self) -> bool:
        """Whether the record gave the whole run again, byte for byte."""
        return self.missing is None and self.differing is None


def execute(
    run: Run,
    *,
    takeover: bool = False,
    listener: Listener = ignore,
    warn: Callable[[str], None] = ignore,
) -> Tournament:
    """Carry a run on until it is finished and return its final state.

    Finished effects answer from the journal; `warn` is told what was found wrong with the record and made good, and
    when a budget is nearly used up. Raises KeyboardInterrupt on Ctrl-C or SIGTERM; the run stays resumable.
    """
    with controlling(run, takeover=takeover, warn=warn) as (current, journal):
        try:
            return asyncio.run(_interruptible(current, journal, listener, warn))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


async def finish(
    run: Run,
    *,
    takeover: bool = False,
    listener: Listener = ignore,
    warn: Callable[[str], None] = ignore,
) -> Tournament:
    """Carry a run on to its end within somebody else's event loop, as `execute` does; signals are theirs."""
    with controlling(run, takeover=takeover, warn=warn) as (current, journal):
        return await _to_the_end(current, journal, listener, warn)


def replay(run: Run) -> Replay:
    """Run the method on the record alone: nothing is paid for, nothing is written."""
    return asyncio.run(replayed(run))


async def replayed(run: Run) -> Replay:
    """Run the method on the record alone within somebody else's event loop."""
    journal = ReplayJournal(run.path)
    effects = JournaledEffects(
        journal,
        {name: Nobody() for name in run.cards},
        Nobody(),
        guard=lambda _: nullcontext(),
        donor=ignore,
        listener=ignore,
        parking=Parking(),
    )
    missing = None
    try:
        state = await play(session_of(run, effects))
    except ReplayMiss as miss:
        missing = str(miss)
        state = effects.state or Tournament(problem=run.problem.label)
    pairs = zip_longest(journal.barriers, journal.record.barriers)
    unequal = (now or then for now, then in pairs if now is None or then is None or now.digest != then.digest)
    differing = next((barrier.name for barrier in unequal if barrier is not None), None)
    digest = journal.barriers[-1].digest if journal.barriers else None
    return Replay(state, missing, differing, digest)


async def _interruptible(
    run: Run, journal: Journal, listener: Listener, warn: Callable[[str], None]
) -> Tournament:
    with sigterm_interrupts():
        return await _to_the_end(run, journal, listener, warn)


async def _to_the_end(
    run: Run, journal: Journal, listener: Listener, warn: Callable[[str], None]
) -> Tournament:
    outcome = await advance(run, journal, LocalSite(), listener=listener, warn=warn)
    assert outcome.state is not None, "nobody has told it to leave"
    return outcome.state


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM stop the run as Ctrl-C does: cleanly, leaving it resumable."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    before = signal.getsignal(signal.SIGTERM)
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, before)
