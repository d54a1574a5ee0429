"""Which runs are in a folder, and whether their files have changed: a few calls of stat for each run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hpc.errors import RunDirectoryError

DEPTH = 4  # folders below folders that are looked into
Signature = tuple[tuple[int, int], ...]
_CHANGING = ("journal.jsonl", "run.yaml", "lease", "slurm/submissions.jsonl", "slurm/queue")


def find_runs(folder: Path) -> dict[str, Path]:
    """Return all runs in a folder by their path within it (`.` for itself), those that changed last first.

    Raises `RunDirectoryError` where there is no such folder.
    """
    if not folder.is_dir():
        raise RunDirectoryError(f"{folder} is not a directory; give a run, a sweep, or a folder of runs.")
    found = sorted(_walk(folder, DEPTH), key=lambda run: signature(run)[0], reverse=True)
    return {str(run.relative_to(folder)): run for run in found}


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    if (folder / "run.yaml").is_file():
        yield folder
        return
    if depth:
        with suppress(PermissionError), os.scandir(folder) as entries:
            inner = [
                e.path for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")
            ]
            for path in inner:
                yield from _walk(Path(path), depth - 1)


def signature(run: Path) -> Signature:
    """Return times and sizes of what changes while a run is worked on; equal ones mean that nothing has happened."""
    return tuple(_stamp(run / name) for name in _CHANGING)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
