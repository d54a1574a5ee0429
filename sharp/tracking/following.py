"""Following the journal of a run: what is new in it is sent, once, whoever works on the run and wherever.

RUN/tracking/NAME.json says under which name a tracker knows the run, and how many effects it has. It is written after
each effect, so that only one can be sent again, where the process is killed between the two.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc.files import make_directory, write_atomic
from hpc.journal import EffectRecord, journal_path, read_run
from sharp.plugins import load_plugin
from sharp.runs import read_manifest, view
from sharp.tracking.tracker import TrackedRun, Tracker

FORMAT = 1
LOOK_S = 2.0
# How long the end of a run waits for a tracker that does not answer.
PATIENCE_S = 30.0
_LOG = logging.getLogger(__name__)

Warn = Callable[[str], None]


@dataclass
class _Sender:
    """One tracker, and how far it is; given up where it fails, until somebody follows the run again."""

    name: str
    tracker: Tracker
    place: Path
    known: str
    sent: int
    broken: bool = False

    def send(self, effects: Sequence[EffectRecord]) -> None:
        """Send what has not been sent."""
        for effect in effects[self.sent :]:
            self.tracker.send(effect)
            self.sent += 1
            self.keep()

    def keep(self) -> None:
        """Write down how far it is."""
        kept = {"format": FORMAT, "known": self.known, "sent": self.sent}
        write_atomic(self.place, json.dumps(kept).encode())


def make_tracker(name: str) -> Tracker:
    """Return the tracker of a name; raises `ConfigurationError` for one that there is not or that is not installed."""
    made: Tracker = load_plugin("sharp.trackers", name, lambda maker: maker())
    return made


def follow(run: Path, trackers: Mapping[str, Tracker], over: Callable[[float], bool], warn: Warn) -> None:
    """Send the effects of a run to trackers as they are finished, until `over`, which waits so many seconds, says so.

    A tracker that fails is told of by `warn`, and given up.
    """
    senders: list[_Sender] = []
    for name, tracker in trackers.items():
        with _guarded(name, warn):
            senders.append(_begun(run, name, tracker))
    stamp: Any = None
    last = False
    while senders:
        found = _stamp(run)
        if found != stamp:
            stamp = found
            effects = sorted(read_run(run).effects.values(), key=lambda effect: effect.seq)
            for sender in senders:
                with _guarded(sender.name, warn) as failed:
                    sender.send(effects)
                sender.broken = bool(failed)
            senders = [sender for sender in senders if not sender.broken]
        if last:
            break
        last = over(LOOK_S)
    finished = bool(senders) and view(run).finished
    files = [path for name in ("report.html", "solver/solver.py") if (path := run / name).is_file()]
    for sender in senders:
        with _guarded(sender.name, warn):
            sender.tracker.end(files if finished else (), finished=finished)


@contextmanager
def tracked(run: Path, names: Sequence[str], warn: Warn) -> Iterator[None]:
    """Follow a run in a thread while it is worked on here, and wait at its end until all is sent, but not for ever.

    Raises like `make_tracker`, and nothing else: no tracker makes a run fail.
    """
    if not names:
        yield
        return
    trackers = {name: make_tracker(name) for name in names}
    over = threading.Event()
    thread = threading.Thread(target=_quietly, args=(run, trackers, over, warn), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(PATIENCE_S)
        if thread.is_alive():
            warn(
                f"{', '.join(names)}: not everything is sent; send the rest with: sharp track {run} --to NAME"
            )


def _quietly(run: Path, trackers: Mapping[str, Tracker], over: threading.Event, warn: Warn) -> None:
    with _guarded("tracking", warn):
        follow(run, trackers, over.wait, warn)


def _begun(run: Path, name: str, tracker: Tracker) -> _Sender:
    place = run / "tracking" / f"{name}.json"
    kept: Any = (
        json.loads(place.read_bytes()) if place.exists() else {"format": FORMAT, "known": None, "sent": 0}
    )
    if kept["format"] != FORMAT:
        raise ValueError(f"{place} has format {kept['format']}; this version reads {FORMAT}")
    sender = _Sender(name, tracker, place, tracker.begin(_described(run), kept["known"]), kept["sent"])
    make_directory(place.parent)
    sender.keep()
    return sender


def _described(run: Path) -> TrackedRun:
    manifest = read_manifest(run)
    config = dict(_dotted(manifest["config"]))
    models = tuple(manifest["models"])
    return TrackedRun(
        run.resolve().name,
        run.resolve(),
        manifest["problem"]["id"],
        manifest["config"]["method"],
        models,
        config,
    )


def _dotted(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        if isinstance(item, Mapping):
            yield from _dotted(item, f"{before}{name}.")
        elif item is not None:
            yield f"{before}{name}", item


def _stamp(run: Path) -> tuple[int, int]:
    found = journal_path(run).stat()
    return found.st_mtime_ns, found.st_size


@contextmanager
def _guarded(name: str, warn: Warn) -> Iterator[list[Exception]]:
    """Tell of whatever goes wrong in foreign code, and go on; what it was is in the list that is given."""
    failed: list[Exception] = []
    try:
        yield failed
    except Exception as error:  # noqa: BLE001 - trackers are foreign code, and talk to servers that may be anything
        failed.append(error)
        _LOG.debug("tracker %s", name, exc_info=True)
        warn(f"{name}: {type(error).__name__}: {error}; the run goes on without it")
