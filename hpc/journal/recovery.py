"""Joining the two records of a run, the journal and the newest checkpoint, and repairing the journal.

Every effect before the newest barrier is in both, so either makes good what the other lost.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hpc.errors import RunDirectoryError
from hpc.files import cut, translate_os_errors, write_atomic
from hpc.journal.journal_file import JournalContents, barrier_event, effect_event, encode_event, read_journal
from hpc.journal.records import CheckpointRecord, EffectRecord

if TYPE_CHECKING:
    from hpc.journal.checkpoints import Checkpoint


@dataclass(frozen=True)
class RecoveredRecord:
    """Journal and newest checkpoint together; `lost` numbers the effects (`seq`) known to be in neither."""

    log: JournalContents
    snapshot: Checkpoint | None
    effects: Mapping[str, EffectRecord]
    barriers: Mapping[int, CheckpointRecord]
    lost: tuple[int, ...]
    warnings: tuple[str, ...]

    @property
    def epoch(self) -> int:
        """The newest epoch that wrote anything."""
        return max([self.log.epoch, *(record.epoch for record in self.effects.values())])

    @property
    def next_seq(self) -> int:
        """The number of the next effect."""
        return max([self.log.next_seq, *(record.seq + 1 for record in self.effects.values())])


def journal_path(run_dir: Path) -> Path:
    """Return where a run's journal is."""
    return run_dir / "journal.jsonl"


def checkpoint_directory(run_dir: Path) -> Path:
    """Return where a run's checkpoints are."""
    return run_dir / "checkpoints"


def merge_records(run_dir: Path, *, verify: bool) -> RecoveredRecord:
    """Read the journal; also the newest checkpoint if the journal is not whole, or if told to `verify`."""
    log = read_journal(journal_path(run_dir))
    whole = journal_path(run_dir).exists() and not log.damaged
    snapshot, warnings = (None, []) if whole and not verify else _newest_checkpoint(run_dir)
    kept = snapshot.effects if snapshot else {}
    effects = {**kept, **log.effects}
    in_order = sorted(effects.values(), key=lambda record: (record.epoch, record.seq))
    barriers = {barrier.number: barrier for barrier in snapshot.barriers} if snapshot else {}
    return RecoveredRecord(
        log=log,
        snapshot=snapshot,
        effects={record.path: record for record in in_order},
        barriers={**barriers, **log.barriers},
        lost=tuple(sorted(log.missing - {record.seq for record in kept.values()})) if log.damaged else (),
        warnings=tuple(warnings),
    )


def raise_on_data_loss(run_dir: Path, joined: RecoveredRecord) -> None:
    """Raise `RunDirectoryError` where damaged lines of the journal held what nothing else holds."""
    if joined.lost:
        raise RunDirectoryError(loss_sentence(run_dir, joined))


def loss_sentence(run_dir: Path, joined: RecoveredRecord) -> str:
    """Say what is lost, what is not, and what to do."""
    path = journal_path(run_dir)
    script = ";".join(f"{number}d" for number in joined.log.damaged)
    return (
        f"{path} is damaged: {_lines(joined.log.damaged)} cannot be read, and no checkpoint holds what was "
        f"there: {len(joined.lost)} of {joined.next_seq} effects. Restore a backup of the file. Without one, "
        f"keep a copy and delete these lines (sed -i '{script}' {shlex.quote(str(path))}): what they held is "
        "then asked for again."
    )


def recovery_warnings(run_dir: Path, joined: RecoveredRecord, *, growing: bool = False) -> list[str]:
    """Return a sentence about each thing that is not as it was written, and how it is made good.

    The last line of a `growing` file is incomplete by rights.
    """
    path, log = journal_path(run_dir), joined.log
    found = list(joined.warnings)
    if log.torn and not growing:
        found.append(
            f"{path}: the last line is incomplete ({log.torn} bytes), as a killed process leaves it. It does "
            "not count; the effect that it was to record is asked for again."
        )
    if log.late:
        found.append(f"{path}: {log.late} late lines of a controller that had been taken over do not count.")
    restored = len(joined.effects) - len(log.effects)
    if joined.snapshot and (log.damaged or restored):
        what = f"{_lines(log.damaged)} cannot be read" if log.damaged else "effects are missing"
        found.append(f"{path}: {what}; {restored} effects come from {joined.snapshot.path} instead.")
    return found


def repair(run_dir: Path, joined: RecoveredRecord, epoch: int) -> JournalContents:
    """Make the journal file whole and return what it then holds.

    A torn tail is cut off; a file that lacks anything is rewritten, the damaged one kept beside it.
    """
    path, log = journal_path(run_dir), joined.log
    if log.damaged or len(joined.effects) > len(log.effects):
        # The damaged file gets its second name before it is replaced, so that it is never without one.
        with translate_os_errors(path), suppress(FileNotFoundError, FileExistsError):
            path.with_name(f"journal-damaged-{epoch:06d}.jsonl").hardlink_to(path)
        write_atomic(path, _rewritten(joined))
        return read_journal(path)
    if log.torn:
        cut(path, log.size)
    return log


def _rewritten(joined: RecoveredRecord) -> bytes:
    lines: list[bytes] = []
    written: set[str] = set()
    for record in joined.effects.values():
        event, texts = effect_event(record, written)
        written |= texts
        lines.append(encode_event(event))
    position = {"epoch": joined.epoch, "seq": joined.next_seq}
    for _, barrier in sorted(joined.barriers.items()):
        lines.append(encode_event({**barrier_event(barrier), **position}))
    return b"".join(lines)


def _newest_checkpoint(run_dir: Path) -> tuple[Checkpoint | None, list[str]]:
    directory = checkpoint_directory(run_dir)
    if not any(directory.glob("*.zarr.zip")):
        return None, []
    from hpc.journal.checkpoints import newest_checkpoint

    return newest_checkpoint(directory)


def _lines(numbers: tuple[int, ...]) -> str:
    listed = ", ".join(map(str, numbers[:20])) + (", …" if len(numbers) > 20 else "")
    return f"line {listed}" if len(numbers) == 1 else f"lines {listed}"
