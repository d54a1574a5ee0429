"""What a round of the tournament costs the controller itself: everything but models and evaluations.

    python benchmarks/bench_controller.py [--problem reaction-diffusion] [--repeat 5]

A run is played once with the rule-based model. Then the same run is played again and again with its own answers as
`models.replay_from` and its evaluations from the cache, so that neither models nor programs take time: what is left is
reading replies, applying patches, deciding, the journal and the checkpoints, all flushed to disk. Printed are the
wall and processor seconds of a whole repetition, of a round (the time from barrier to barrier) and of the slowest
round, medians over the repetitions. Everything lies in a temporary folder; data are kept in the data folder.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sharp.runs.configure import load_config
from sharp.runs.creation import create_run
from sharp.runs.effects import ProgressEvent
from sharp.runs.execute import execute

SMALL = (
    "evaluation.validation=8",
    "evaluation.test=8",
    "evaluation.data_seed=7",
    "synthesis.next_cycle=fixed",
    "synthesis.max_cycles=2",
)


@dataclass
class Rounds:
    """Wall seconds between barriers; only those after a round of the tournament count."""

    last: float = field(default_factory=time.perf_counter)
    seconds: list[float] = field(default_factory=list)

    def __call__(self, progress: ProgressEvent) -> None:
        """Note the moment of a barrier."""
        if progress.phase == "barrier":
            now = time.perf_counter()
            if "round" in progress.path:
                self.seconds.append(now - self.last)
            self.last = now


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problem", default="reaction-diffusion")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["SHARP_CACHE"] = str(Path(scratch, "cache"))
        first = Path(scratch, "first")
        paid, _ = play(options.problem, first, ())
        repeated = [
            play(options.problem, Path(scratch, f"again-{n}"), (f"models.replay_from={first}",))
            for n in range(options.repeat)
        ]
    print(f"{'':<34}{'wall s':>9}{'cpu s':>9}")
    print(f"{'first run, models and programs':<34}{paid.wall_s:>9.2f}{paid.cpu_s:>9.2f}")
    print(f"{'again, from its own answers':<34}{_median(repeated, 0):>9.2f}{_median(repeated, 1):>9.2f}")
    rounds = [round_s for _, seconds in repeated for round_s in seconds]
    print(f"rounds a run: {len(rounds) // options.repeat}")
    print(f"{'one round':<34}{statistics.median(rounds):>9.3f}")
    print(f"{'the slowest round':<34}{max(rounds):>9.3f}")


@dataclass(frozen=True)
class Cost:
    """Seconds of a whole run, in this process."""

    wall_s: float
    cpu_s: float


def play(problem: str, path: Path, overrides: Sequence[str]) -> tuple[Cost, list[float]]:
    """Play a run; return what it cost and the seconds of its rounds."""
    run = create_run(load_config(problem, (*SMALL, *overrides)), path)
    rounds, wall, cpu = Rounds(), time.perf_counter(), time.process_time()
    execute(run, listener=rounds)
    return Cost(time.perf_counter() - wall, time.process_time() - cpu), rounds.seconds


def _median(repeated: Sequence[tuple[Cost, list[float]]], which: int) -> float:
    return statistics.median((cost.wall_s, cost.cpu_s)[which] for cost, _ in repeated)


if __name__ == "__main__":
    main()
