from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from threading import Barrier, Thread

import pytest

from hpc.errors import LeaseLost, RunLocked
from hpc.journal import Lease, LeaseHolder, read_holder
from hpc.journal.lease import HEARTBEAT_S

HOLD = """
import sys
from pathlib import Path
from hpc.journal.lease import Lease
lease = Lease.acquire(Path(sys.argv[1]), steal_lease="--steal-lease" in sys.argv)
print(lease.epoch, flush=True)
sys.stdin.read()
"""


def holding(run_dir: Path, *options: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run_dir), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline().strip().isdecimal()
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def claim_and_release(run_dir: Path) -> int:
    lease = Lease.acquire(run_dir)
    lease.release()
    return lease.epoch


def elsewhere(run_dir: Path, age: float) -> Path:
    """Pretend that a process on another machine holds the run and beat so many seconds ago."""
    holder = replace(LeaseHolder.this_process(4), host="node07", machine="another boot", pid=1, job="4711")
    path = run_dir / "lease" / "000004.json"
    path.parent.mkdir()
    path.write_text(json.dumps(asdict(holder)))
    os.utime(path, (time.time() - age, time.time() - age))
    return path


def test_a_living_process_is_named_and_not_disturbed(tmp_path: Path) -> None:
    process = holding(tmp_path)
    try:
        with pytest.raises(
            RunLocked, match=rf"in use by process {process.pid} on .* since 20.*--steal-lease"
        ):
            Lease.acquire(tmp_path)
        holder = read_holder(tmp_path)
        assert holder.pid == process.pid
    finally:
        kill(process)


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    kill(holding(tmp_path))

    assert read_holder(tmp_path) is None
    assert claim_and_release(tmp_path) == 2


def test_a_dead_process_that_is_not_yet_reaped_holds_nothing(tmp_path: Path) -> None:
    process = holding(tmp_path)
    process.kill()
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)

    assert claim_and_release(tmp_path) == 2
    process.communicate()


def test_another_process_with_the_same_number_is_not_the_holder(tmp_path: Path) -> None:
    claim_and_release(tmp_path)
    stale = replace(LeaseHolder.this_process(5), process_start="1")
    (tmp_path / "lease" / "000005.json").write_text(json.dumps(asdict(stale)))

    assert claim_and_release(tmp_path) == 6


def test_a_takeover_fences_the_holder(tmp_path: Path) -> None:
    lease = Lease.acquire(tmp_path)
    lease.renew()
    process = holding(tmp_path, "--steal-lease")
    try:
        with pytest.raises(LeaseLost, match=f"taken over by process {process.pid} on .*epoch 1"):
            lease.renew()
        lease.release()
        assert [path.name for path in (tmp_path / "lease").iterdir()] == ["000002.json"]
    finally:
        kill(process)


def test_a_heart_that_beats_on_another_machine_keeps_the_run(tmp_path: Path) -> None:
    elsewhere(tmp_path, age=HEARTBEAT_S - 20)

    with pytest.raises(RunLocked, match=r"process 1 on node07 \(Slurm job 4711\)"):
        Lease.acquire(tmp_path)


def test_a_heart_that_stopped_on_another_machine_gives_the_run_up(tmp_path: Path) -> None:
    elsewhere(tmp_path, age=HEARTBEAT_S + 20)

    assert claim_and_release(tmp_path) == 5


def test_beating_renews_the_claim(tmp_path: Path) -> None:
    lease = Lease.acquire(tmp_path)
    path = tmp_path / "lease" / "000001.json"
    os.utime(path, (0, 0))

    lease.renew()

    assert time.time() - path.stat().st_mtime < 300
    lease.release()


def test_releases_leave_one_file_and_growing_epochs(tmp_path: Path) -> None:
    assert [claim_and_release(tmp_path) for _ in range(5)] == [1, 2, 3, 4, 5]

    assert [path.name for path in (tmp_path / "lease").iterdir()] == ["000005.released"]


def test_an_unreadable_claim_is_no_holder_once_its_lock_is_gone(tmp_path: Path) -> None:
    (tmp_path / "lease").mkdir()
    path = tmp_path / "lease" / "000003.json"
    path.write_text("half a cl")

    with pytest.raises(RunLocked, match="an unknown host"):
        Lease.acquire(tmp_path)
    os.utime(path, (0, 0))

    assert claim_and_release(tmp_path) == 4


def test_of_many_that_claim_at_once_one_wins(tmp_path: Path) -> None:
    start, won, lost = Barrier(8), list[Lease](), list[RunLocked]()

    def claim() -> None:
        start.wait()
        try:
            won.append(Lease.acquire(tmp_path))
        except RunLocked as error:
            lost.append(error)

    threads = [Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(won), len(lost)) == (1, 7)
    won[0].renew()
    assert [path.name for path in (tmp_path / "lease").iterdir()] == [f"{won[0].epoch:06d}.json"]
    won[0].release()


def test_a_claimant_that_comes_too_late_withdraws(tmp_path: Path) -> None:
    winner = Lease.acquire(tmp_path, above=4)

    assert winner.epoch == 5
    assert Lease._claim(tmp_path / "lease", 3) is None  # it had listed the epochs before the winner came
    winner.renew()
    assert [path.name for path in (tmp_path / "lease").iterdir()] == ["000005.json"]
    winner.release()
