"""Random faults in campaigns on a real, private Slurm, compared with the undisturbed run.

    python benchmarks/bench_faults.py [--faults 60] [--minutes 30] [--seed 1] [--campaigns 20]

Campaigns of a small tournament run one after the other (rule-based model; two nodes of the private Slurm). In each,
faults of kinds and at moments drawn by the seed are injected until it ends: a worker or a controller is cancelled,
killed (SIGKILL) or stopped (SIGSTOP) for seconds, `slurmd` or `slurmctld` is restarted, a node is lost, the run's or
the campaign's directory cannot be written for seconds (`chattr +i`, as root), a controller is requeued. Printed are,
for each campaign, its faults and whether it ended as the undisturbed run did with nothing paid for twice; and over all
faults the seconds until the next recorded effect. Ends with 1 where a campaign ended otherwise.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median

from measuring import Table, command_line

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.helpers.cli.sharp_command import PROBLEM
from tests.helpers.cluster.campaigns import Place, fast, same_tournament
from tests.helpers.cluster.private_slurm import PrivateSlurm, missing, started

LIMIT_S = 600.0


class Injector:
    """Faults in one campaign; each returns whether it could be done just now."""

    def __init__(self, place: Place, chance: random.Random) -> None:
        self._place, self._cluster, self._chance = place, place.cluster, chance
        self.kinds: dict[str, Callable[[], bool]] = {
            "worker cancelled": lambda: self._cancel("evaluate"),
            "worker killed": lambda: self._signal("evaluate", signal.SIGKILL),
            "worker stopped": lambda: self._pause("evaluate"),
            "controller cancelled": lambda: self._cancel("controller"),
            "controller killed": lambda: self._signal("controller", signal.SIGKILL),
            "controller stopped": lambda: self._pause("controller"),
            "controller requeued": self._requeue,
            "slurmd restarted": self._restart_node,
            "slurmctld restarted": self._restart_controller,
            "node lost": self._lose_node,
            "run not writable": lambda: self._immutable(self._place.run),
            "campaign not writable": lambda: self._immutable(self._place.run / "slurm"),
        }

    def _running(self, role: str) -> list[str]:
        return [job for job, known in self._place.jobs().items() if known == (role, "RUNNING")]

    def _cancel(self, role: str) -> bool:
        jobs = self._running(role)
        if jobs:
            self._cluster.command("scancel", self._chance.choice(jobs))
        return bool(jobs)

    def _requeue(self) -> bool:
        jobs = self._running("controller")
        if jobs:
            self._cluster.command("scontrol", "requeue", jobs[0])
        return bool(jobs)

    def _processes(self, role: str) -> list[int]:
        module = {"evaluate": b"submitit.core", "controller": b"sharp.controller"}[role]
        found = []
        for pid in self._cluster.processes():
            with suppress(OSError):
                if module in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def _signal(self, role: str, number: signal.Signals) -> bool:
        pids = self._processes(role)
        if pids:
            with suppress(ProcessLookupError):
                os.kill(self._chance.choice(pids), number)
        return bool(pids)

    def _pause(self, role: str) -> bool:
        pids = self._processes(role)
        if pids:
            pid = self._chance.choice(pids)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(self._chance.uniform(1, 10))
                os.kill(pid, signal.SIGCONT)
        return bool(pids)

    def _restart_node(self) -> bool:
        node = self._chance.choice(self._cluster.nodes)
        self._cluster.restart_node(node)
        return True

    def _restart_controller(self) -> bool:
        self._cluster.stop_controller()
        time.sleep(self._chance.uniform(0, 8))
        self._cluster.start_controller()
        return True

    def _lose_node(self) -> bool:
        node = self._chance.choice(self._cluster.nodes)
        self._cluster.crash_node(node)
        self._cluster.revive(node)
        return True

    def _immutable(self, folder: Path) -> bool:
        done = subprocess.run(["chattr", "+i", str(folder)], check=False, capture_output=True)
        if done.returncode:
            return False
        try:
            time.sleep(self._chance.uniform(2, 20))
        finally:
            subprocess.run(["chattr", "-i", str(folder)], check=True)
        return True


def main(faults: int = 60, minutes: float = 30.0, seed: int = 1, campaigns: int = 20) -> None:
    """Inject faults, and print what came of them."""
    if reason := missing():
        sys.exit(reason)
    chance, cluster = random.Random(seed), started()
    until, counted, waits, wrong = time.monotonic() + 60 * minutes, Counter[str](), list[float](), 0
    table = Table("campaign", "faults", "ended", "as undisturbed", "seconds:.0f")
    with tempfile.TemporaryDirectory(prefix="faults-", dir="/tmp") as folder:
        shared = {"SHARP_DATA": f"{folder}/data", "SHARP_CACHE": f"{folder}/cache"}
        try:
            undisturbed = _place(cluster, Path(folder) / "undisturbed", shared)
            done = undisturbed.sharp("run", PROBLEM, "--run-dir", undisturbed.run, *fast())
            assert done.returncode == 0, done.stderr
            for number in range(campaigns):
                if _faults(counted) >= faults or time.monotonic() > until:
                    break
                place = _place(cluster, Path(folder) / f"c{number}", shared)
                began, mine = time.monotonic(), Counter[str]()
                _disturb(place, chance, mine, waits, until, faults - _faults(counted))
                counted += mine
                verdict = _verdict(place, undisturbed)
                wrong += verdict != "yes"
                ending = place.ending.state if place.ending else "nothing"
                listed = ", ".join(f"{count} {kind}" for kind, count in mine.items())
                table.row(str(number), listed, ending, verdict, time.monotonic() - began)
                for node in cluster.nodes:
                    cluster.revive(node)
                cluster.clear()
        finally:
            cluster.stop()
    print(f"{_faults(counted)} faults: {dict(counted)}")
    if waits:
        print(
            f"the next effect after a fault: {median(waits):.0f} s in the median, {max(waits):.0f} s at most"
        )
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, seed {seed}")
    if wrong:
        sys.exit(1)


def _place(cluster: PrivateSlurm, folder: Path, shared: dict[str, str]) -> Place:
    folder.mkdir()
    place = Place(cluster, folder, shared)
    place.write_profile()
    return place


def _disturb(
    place: Place, chance: random.Random, counted: Counter[str], waits: list[float], until: float, most: int
) -> None:
    """Run a campaign to its end, with faults while there is time."""
    place.launch(PROBLEM, "--cluster", place.profile, "--run-dir", place.run, *fast())
    injector, limit = Injector(place, chance), time.monotonic() + LIMIT_S
    while place.ending is None and time.monotonic() < limit:
        time.sleep(chance.uniform(1, 6))
        _launch_again(place, counted)
        if place.ending is not None or _faults(counted) >= most or time.monotonic() > until:
            time.sleep(1)
            continue
        kind, before = chance.choice(list(injector.kinds)), place.effects()
        if injector.kinds[kind]():
            counted[kind] += 1
            since = time.monotonic()
            while place.ending is None and place.effects() == before and time.monotonic() < limit:
                time.sleep(0.3)
                _launch_again(place, counted)
            waits.append(time.monotonic() - since)


def _launch_again(place: Place, counted: Counter[str]) -> None:
    """Do what `sharp status` says where no job is left: the first controller was cancelled before it was up."""
    if place.ending is None and not place.jobs():
        counted["- launched again"] += 1
        place.launch(place.run)


def _faults(counted: Counter[str]) -> int:
    return sum(count for kind, count in counted.items() if not kind.startswith("-"))


def _verdict(place: Place, undisturbed: Place) -> str:
    """Return `yes`, or what is not as in the undisturbed run."""
    ending = place.ending
    if ending is None or ending.state != "finished":
        return "no: " + (ending.sentence if ending else "it has not ended")
    try:
        same_tournament(place.run, undisturbed.run)
        twice = [what for what, count in place.paid().items() if count > 1]
    except AssertionError as error:
        return f"no: {str(error)[:200]}"
    return f"no: paid for twice: {twice}" if twice else "yes"


if __name__ == "__main__":
    command_line(main)
