"""Measuring what a program keeps on disk."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from hpc.sandbox import DiskUsageMonitor
from hpc.sandbox.disk import held_bytes

MB = 1 << 20


@pytest.fixture
def deep(tmp_path):
    """A folder whose innermost folder has a path longer than the kernel takes, with 2 MB in it."""
    root = tmp_path / "root"
    root.mkdir()
    here = Path.cwd()
    os.chdir(root)
    for _ in range(300):
        Path("d" * 20).mkdir()
        os.chdir("d" * 20)
    Path("file").write_bytes(bytes(2 * MB))
    os.chdir(here)
    return root


def test_files_in_deep_folders_count(deep):
    assert DiskUsageMonitor(deep, MB).exceeds_now([])
    assert not DiskUsageMonitor(deep, 4 * MB).exceeds_now([])


def test_many_folders_are_looked_into_with_few_descriptors(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for n in range(40):
        (tmp_path / f"{n}" / "within").mkdir(parents=True)
        (tmp_path / f"{n}" / "within" / "file").write_bytes(bytes(8192))
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 8, hard))
    try:
        assert not DiskUsageMonitor(tmp_path, 80 * 4096 + 40 * 8192).exceeds_now([])
        assert DiskUsageMonitor(tmp_path, 80 * 4096 + 40 * 8192 - 1).exceeds_now([])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_look_is_not_taken_at_every_call(tmp_path):
    (tmp_path / "file").write_bytes(bytes(2 * MB))
    watch = DiskUsageMonitor(tmp_path, MB)
    assert not watch.limit_exceeded(list)
    watch._next = 0.0
    assert watch.limit_exceeded(list)
    assert watch._next > 0


def test_links_are_not_followed(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_bytes(bytes(2 * MB))
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    assert not DiskUsageMonitor(tmp_path / "root", MB).exceeds_now([])


def test_deleted_files_that_are_held_count(tmp_path):
    before = held_bytes(os.getpid())
    with (tmp_path / "file").open("wb") as held:
        held.write(bytes(2 * MB))
        held.flush()
        assert held_bytes(os.getpid()) == before
        (tmp_path / "file").unlink()
        assert held_bytes(os.getpid()) >= before + 2 * MB
        assert DiskUsageMonitor(tmp_path, MB).exceeds_now([os.getpid()])


def test_a_folder_that_is_gone_holds_nothing(tmp_path):
    assert not DiskUsageMonitor(tmp_path / "gone", 0).exceeds_now([])
