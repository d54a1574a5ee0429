from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpc import files
from hpc.errors import RunDirectoryError, StorageFull, StorageUnavailable
from hpc.files import AppendFile, remove_leftovers, write_atomic
from hpc.journal import Journal, StateArray
from hpc.journal.journal_file import read_journal

PASSING = (errno.EIO, errno.EROFS, errno.ESTALE, errno.EPERM)
FILL = """
import asyncio, os, sys
from pathlib import Path
import numpy as np
from hpc.journal.checkpoints import StateArray
from hpc.errors import StorageFull
from hpc.journal.journal import Journal

root = Path(sys.argv[1])

async def call():
    return {"noise": os.urandom(20000).hex()}

async def ask(journal, limit):
    for k in range(limit):
        await journal.perform("chat", f"a/{k}", {}, call)

with Journal.open(root / "run") as journal:
    try:
        asyncio.run(ask(journal, 1000))
    except StorageFull as error:
        print(error)
    finished = len(journal.effects)
    before = (root / "run" / "journal.jsonl").read_bytes()
    try:
        journal.checkpoint("full", {"noise": StateArray(np.frombuffer(os.urandom(300000), np.uint8))})
    except StorageFull as error:
        print(error)
    assert not list((root / "run").rglob("*.tmp"))
    (root / "ballast").unlink()
    asyncio.run(ask(journal, finished + 1))
    assert (root / "run" / "journal.jsonl").read_bytes().startswith(before)
with Journal.open(root / "run") as journal:
    assert journal.warnings == [], journal.warnings
    assert len(journal.effects) == finished + 1
    print(finished)
"""


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


async def ask(journal: Journal, path: str, size: int) -> dict[str, Any]:
    async def call() -> dict[str, Any]:
        return {"text": path * size}

    return await journal.perform("chat", path, {}, call)


async def test_a_line_that_does_not_fit_is_taken_back_whole(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        await ask(journal, "a", 100)
        before = (tmp_path / "journal.jsonl").read_bytes()
        with (
            largest_file(len(before) + 50),
            pytest.raises(StorageFull, match=r"journal.jsonl.*File too large.*resume"),
        ):
            await ask(journal, "b", 5000)
        assert (tmp_path / "journal.jsonl").read_bytes() == before

        assert await ask(journal, "b", 5000) == {"text": "b" * 5000}

    log = read_journal(tmp_path / "journal.jsonl")
    assert (list(log.effects), log.torn, log.damaged) == (["a", "b"], 0, ())


async def test_a_checkpoint_that_does_not_fit_leaves_no_trace(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        await ask(journal, "a", 1)
        with largest_file(2000), pytest.raises(StorageFull, match=r"0001-b.zarr.zip could not be written"):
            journal.checkpoint("b", {"x": StateArray(np.random.default_rng(0).random(1000))})
        assert list((tmp_path / "checkpoints").iterdir()) == []

        path = journal.checkpoint("b", {"x": StateArray(np.random.default_rng(0).random(1000))})

    assert path.name == "0001-b.zarr.zip"


def test_a_run_that_fills_its_file_system_keeps_all_it_recorded(tmp_path: Path) -> None:
    script = f"mount -t tmpfs -o size=1m tmpfs {tmp_path} && head -c 150000 /dev/zero > {tmp_path}/ballast"
    script += f' && exec {sys.executable} -c "$FILL" {tmp_path}'
    unshared = shutil.which("unshare") and subprocess.run(["unshare", "-rm", "true"], capture_output=True)
    if not unshared or unshared.returncode:
        pytest.skip("this machine grants no user namespaces to mount a small file system in")
    environment = {**os.environ, "FILL": FILL, "PYTHONPATH": os.pathsep.join(sys.path)}

    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], env=environment, capture_output=True, text=True, timeout=300
    )

    assert done.returncode == 0, done.stderr
    *sentences, finished = done.stdout.splitlines()
    assert len(sentences) == 2
    assert all("No space left on device. Everything recorded before stands" in s for s in sentences)
    assert int(finished) > 10


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, *PASSING])
async def test_a_flush_that_fails_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fsync(fd: int) -> None:
        raise OSError(number, os.strerror(number))

    with Journal.open(tmp_path) as journal:
        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(RunDirectoryError, match=os.strerror(number)) as error:
            await ask(journal, "a", 1)
        monkeypatch.undo()

        assert isinstance(error.value, StorageUnavailable if number in PASSING else StorageFull)
        assert error.value.transient
        assert list(journal.effects) == []
        await ask(journal, "a", 1)

    assert list(read_journal(tmp_path / "journal.jsonl").effects) == ["a"]


def test_a_write_that_the_system_cuts_short_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:7]))

    write_atomic(tmp_path / "file", b"0123456789" * 10)

    assert (tmp_path / "file").read_bytes() == b"0123456789" * 10


def test_a_failed_replacement_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")

    with largest_file(100), pytest.raises(StorageFull):
        write_atomic(path, b"new" * 100)

    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_line_is_not_taken_back_over_a_successors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, successor = AppendFile(tmp_path / "file"), AppendFile(tmp_path / "file")
    fsync = os.fsync

    def fail_after_successor(fd: int) -> None:
        monkeypatch.setattr(os, "fsync", fsync)
        successor.append(b"theirs\n")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail_after_successor)
    with pytest.raises(StorageFull):
        file.append(b"ours\n")

    assert (tmp_path / "file").read_bytes() == b"ours\ntheirs\n"
    file.close()
    successor.close()


@pytest.mark.parametrize(("number", "raises"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_directory_flush_may_be_unknown_but_not_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, raises: bool
) -> None:
    def fsync(fd: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "fsync", fsync)
    if raises:
        with pytest.raises(OSError, match="Input/output"):
            files.sync_directory(tmp_path)
    else:
        files.sync_directory(tmp_path)


def test_only_leftovers_are_removed(tmp_path: Path) -> None:
    for name in (".a.1234.tmp", "b.tmp", ".c"):
        (tmp_path / name).touch()

    remove_leftovers(tmp_path)
    remove_leftovers(tmp_path / "none")

    assert sorted(path.name for path in tmp_path.iterdir()) == [".c", "b.tmp"]
