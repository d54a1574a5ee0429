"""Campaigns on a real Slurm in which everything goes wrong: they end as if nothing had, and pay for nothing twice."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.helpers.cli.sharp_command import PROBLEM
from tests.helpers.cluster.campaigns import Place, fast, same_tournament
from tests.helpers.cluster.private_slurm import PrivateSlurm

PERMIT_S = 30.0

# Loses the answer to every third submission that is made, after Slurm has taken it.
FORGETFUL = """\
#!/bin/sh
real={real}; folder={folder}
case "$*" in *--parsable*) ;; *) exec "$real" "$@";; esac
count() {{ echo x >> "$folder/calls"; wc -l < "$folder/calls"; }}
exec 9> "$folder/lock"; flock 9; number=$(count); exec 9>&-
if [ $((number % 3)) -eq 1 ]; then
    "$real" "$@" > /dev/null || exit
    echo x >> "$folder/lost"
    echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
    exit 1
fi
exec "$real" "$@"
"""


def forgetful_sbatch(cluster: PrivateSlurm, folder: Path) -> Path:
    """Make a folder with an sbatch that loses answers."""
    real = shutil.which("sbatch", path=cluster.environment["PATH"])
    folder.mkdir()
    (folder / "sbatch").write_text(FORGETFUL.format(real=real, folder=folder))
    (folder / "sbatch").chmod(0o755)
    return folder


@pytest.fixture
def place(cluster: PrivateSlurm, tmp_path: Path, campaign_variables: dict[str, str]) -> Iterator[Place]:
    sbatch = forgetful_sbatch(cluster, tmp_path / "bin")
    changed = {"PATH": f"{sbatch}:{cluster.environment['PATH']}"}
    place = Place(cluster, tmp_path, {**campaign_variables, **changed})
    place.close_gate()
    yield place
    place.open_gate()
    place.stop()
    for node in cluster.nodes:
        cluster.revive(node)


def controllers(place: Place, state: str) -> list[str]:
    return [i for i, job in place.jobs().items() if job == ("controller", state)]


def working(place: Place) -> str | None:
    """The running controller, once it has a successor and an evaluation is being made."""
    claimed = list(place.campaign.queue.glob("claimed/*"))
    running = controllers(place, "RUNNING")
    return running[0] if running and claimed and controllers(place, "PENDING") else None


def at_work(place: Place) -> str:
    found: str = place.until(lambda: place.ending or working(place), "a controller at work")
    assert place.ending is None, f"it ended before all faults were made\n{place.story()}"
    return found


def recovered(place: Place, before: int) -> None:
    """Wait for the next effect: one evaluation may go on, and another where the fault has killed that one."""
    again = 0.0

    def permitted() -> bool:
        nonlocal again
        if time.monotonic() >= again:
            place.permit_one()
            again = time.monotonic() + PERMIT_S
        return place.ending is not None or place.effects() > before

    place.until(permitted, "the next effect")
    (place.gate / "permit").unlink(missing_ok=True)


def cancel_controller(place: Place) -> None:
    place.cluster.command("scancel", at_work(place))


def requeue_controller(place: Place) -> None:
    place.cluster.command("scontrol", "requeue", at_work(place))


def stop_slurmctld(place: Place) -> None:
    at_work(place)
    place.cluster.stop_controller()
    time.sleep(5)
    place.cluster.start_controller()


def crash(place: Place) -> None:
    job = at_work(place)
    node = place.cluster.command("squeue", "-h", "-j", job, "-o", "%N").strip()
    place.cluster.crash_node(node)
    place.cluster.revive(node)


def take_all_nodes(place: Place) -> None:
    """Preempt everything, and leave no room for a while."""
    at_work(place)
    nodes = f"--nodes={len(place.cluster.nodes)}"
    options = ("--partition=high", "--exclusive", nodes, "--mem=50", "--output=/dev/null", "--wrap=sleep 5")
    job = place.cluster.command("sbatch", "--parsable", *options).strip()
    place.until(lambda: job not in place.cluster.command("squeue", "-h", "-o", "%i"), "the nodes are free")


def together(place: Place, orders: Sequence[Sequence[object]]) -> None:
    """Call `sharp` several times at once: one does it, the others are told who does."""
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda order: place.sharp(*order), orders))
    assert {each.returncode for each in done} <= {0, 5, 75}, [each.stderr for each in done]


def launch_and_advance_again(place: Place) -> None:
    at_work(place)
    together(place, [("launch", place.run), ("advance", place.run), ("launch", place.run)])


FAULTS = (
    cancel_controller,
    stop_slurmctld,
    requeue_controller,
    launch_and_advance_again,
    take_all_nodes,
    crash,
)


def test_a_tournament_survives_everything(place: Place, local_tournament: Path) -> None:
    place.write_profile()
    order = ("launch", PROBLEM, "--cluster", place.profile, "--run-dir", place.run, *fast())
    together(place, [order, order])
    assert [s.purpose for s in place.submission_log.of_role("controller")].count("launch") == 1
    for fault in FAULTS:
        before = place.effects()
        fault(place)
        recovered(place, before)
    place.open_gate()
    ending = place.until_ended()
    assert ending.state == "finished", place.story()
    same_tournament(place.run, local_tournament)
    place.assert_paid_once()
    assert len((place.folder / "bin" / "lost").read_text().split()) >= 2
