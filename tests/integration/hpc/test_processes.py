"""Finding and killing whole trees of processes."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hpc.processes import (
    ProcessTree,
    ProcessUsage,
    children_listed,
    children_scanned,
    count_user_threads,
    descendants,
    kill_tree,
    signal_own,
    usage,
)
from hpc.sandbox.disk import held_bytes

FAMILY = """
import os, time
if not os.fork():
    os.setsid()
    if not os.fork(): time.sleep(600)
print(flush=True)
time.sleep(600)
"""


@pytest.fixture
def family():
    """A process with a child in another session, which has a child of its own."""
    with subprocess.Popen([sys.executable, "-I", "-c", FAMILY], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        deadline = time.monotonic() + 60
        while len(descendants(parent.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        below = descendants(parent.pid)
        yield parent
        kill_tree(parent.pid)
        for orphan in below:  # of a parent that was killed before
            with suppress(ProcessLookupError):
                os.kill(orphan, signal.SIGKILL)


def test_descendants_are_found_in_other_sessions(family):
    child, grandchild = descendants(family.pid)
    assert descendants(child) == [grandchild]
    assert {child, grandchild} < set(descendants(os.getpid()))


def test_both_ways_to_find_children_agree(family):
    for pid in (os.getpid(), family.pid):
        assert sorted(children_listed(pid)) == sorted(children_scanned()(pid))


def test_kill_tree_kills_all(family):
    members = [family.pid, *descendants(family.pid)]
    kill_tree(family.pid)
    assert family.wait(timeout=300) < 0
    deadline = time.monotonic() + 60
    while usage(members).rss and time.monotonic() < deadline:
        time.sleep(0.01)
    assert usage(members).rss == 0


def test_no_signal_is_sent_to_a_process_that_is_not_below(family):
    signal_own(os.getppid(), signal.SIGKILL)
    signal_own(1, signal.SIGKILL)
    signal_own(family.pid, signal.SIGKILL)
    assert family.wait(timeout=300) == -signal.SIGKILL


def test_tree_is_what_is_below_its_keeper(family):
    with ProcessTree(family.pid) as tree:
        assert tree.members() == descendants(family.pid)
        assert tree.look().processes == 2
        assert tree.peak_rss > 1_000_000
    assert family.poll() is None


def test_what_falls_to_us_from_a_lost_keeper_is_ended_and_nothing_else(family):
    with subprocess.Popen([sys.executable, "-I", "-c", "import time; time.sleep(600)"]) as bystander:
        with ProcessTree(family.pid) as tree:
            orphans = descendants(family.pid)
            family.kill()
            family.wait()
            tree.adopt_orphans()
            assert set(tree.members()) == set(orphans)
        assert usage(orphans).processes == 0
        assert bystander.poll() is None
        bystander.kill()


def test_tasks_of_user_counts_at_least_this_family(family):
    assert count_user_threads() >= 4


def test_processes_that_are_gone_use_nothing():
    assert usage([2**22 + 1]) == ProcessUsage(0, 0, 0.0)
    assert usage([os.getpid()]).rss > 1_000_000
    assert usage([os.getpid()]).cpu_s > 0


def test_a_process_that_ends_while_it_is_looked_at_uses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpc.processes._status", lambda _: ["Z", *["0"] * 40])
    monkeypatch.setattr(Path, "is_dir", lambda _: True)
    assert usage([2**22 + 1]).rss == 0
    assert held_bytes(2**22 + 1) == 0


HEADLESS = """
import ctypes, threading, time
def go_on():
    kept = bytearray(200 << 20)
    file = open("kept", "wb+"); file.write(bytes(5 << 20)); file.flush()
    __import__("os").unlink("kept")
    print("there", flush=True)
    time.sleep(60)
threading.Thread(target=go_on).start()
time.sleep(.2)
ctypes.CDLL(None).syscall(60, 0)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of the call is that of x86-64")
def test_what_a_process_holds_is_seen_after_its_first_thread_has_ended(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-u", "-c", HEADLESS], stdout=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        deadline = time.monotonic() + 20
        while Path(f"/proc/{process.pid}/stat").read_text().split()[2] != "Z" and time.monotonic() < deadline:
            time.sleep(0.02)
        assert usage([process.pid]).rss > 200 << 20
        assert held_bytes(process.pid) >= 5 << 20
        process.kill()


ORPHANS = """
import os, time
for _ in range(3):
    if os.fork():
        os._exit(0)
    until = time.process_time() + .4
    while time.process_time() < until: pass
"""
KEEPER = f"""
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
sys.stdin.readline()
subprocess.Popen([sys.executable, "-c", {ORPHANS!r}])
while True:
    try: os.wait()
    except ChildProcessError: break
print("over", flush=True)
sys.stdin.readline()
"""


def test_processor_time_of_orphans_that_have_ended_is_counted() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as keeper:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        with ProcessTree(keeper.pid) as tree:
            keeper.stdin.write("\n")
            keeper.stdin.flush()
            keeper.stdout.readline()
            assert tree.look().cpu_s > 1
