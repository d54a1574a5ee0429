"""Compares the tournament with running all 32 of the same candidates: evaluations, and the error at the end.

    python benchmarks/bench_methods.py FOLDER [--play] [--problems NAME ...]

With `--play` the sweep is carried out first, or carried on (hours on two cores; it may be interrupted). The table is
made from the journals of the runs that are finished. The two costly problems are solved on coarser grids, with data
made for them. Each problem has two rows: by `errors`, and by the same down to the `floor`, the data's own distance from
the solution, below which an error shows agreement with the data's faults. `needed` are the evaluations until the
tournament had the error that best-of-32 ended with, `ratio` its last error over that one. The rule-based model plays
all models: the figures compare two ways of spending evaluations on its programs, and say nothing of language models.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from pathlib import Path
from statistics import median

from hpc.journal import natural_sort_key, read_run
from sharp.experiments.statistics import evaluations_to_target

PROBLEMS = ("advection", "burgers", "reaction-diffusion", "darcy", "navier-stokes")
SEEDS = 10
CANDIDATES = 32
MOST = 0.4 * CANDIDATES  # evaluations at which at least 60 % are saved
SAMPLES = {"darcy": 4, "navier-stokes": 4}
COARSEN = {"darcy": 2, "navier-stokes": 4}
SWEEP = "sweep"  # a folder of its own beside the file: a new sweep wants an empty one
COLUMNS = {
    "problem": 18,
    "count": 7,
    "seeds": 6,
    "needed": 9,
    "least": 7,
    "most": 6,
    "<= 12": 7,
    "in all": 8,
    "ratio": 9,
    "lowest": 9,
    "highest": 9,
    "not higher": 12,
}
HEAD = """\
name: equal-candidates
description: The tournament, and all of the same 32 candidates run, on five problems with ten seeds.
base:
  problem: advection
  evaluation: {wall_s: 120, timing_repeats: 1, x64_check: false, convergence_check: false}
matrix:
  synthesis.mode: [tournament, best-of-n]
  seed: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
  equation:
"""


@dataclass(frozen=True)
class Course:
    """The best validation error of a run after each evaluation, and the data's own distance from the solution."""

    errors: tuple[float, ...]
    floor: float

    def down_to_floor(self) -> Course:
        """Return the course with no error below the floor, where a smaller one is no greater accuracy."""
        return Course(tuple(max(error, self.floor) for error in self.errors), self.floor)


@dataclass(frozen=True)
class Pair:
    """A tournament and best-of-32 on the same candidates."""

    tournament: Course
    all_run: Course

    @property
    def needed(self) -> float:
        """Evaluations until the tournament had the error that best-of-32 ended with; infinite if it never had."""
        compared = evaluations_to_target(self.tournament.errors, self.all_run.errors)
        assert compared is not None, "nothing of 32 programs ran"
        return inf if compared.needed is None else compared.needed

    @property
    def ratio(self) -> float:
        """The tournament's last error over that of best-of-32."""
        return self.tournament.errors[-1] / self.all_run.errors[-1]

    def down_to_floor(self) -> Pair:
        """Return the pair without what is below the floor."""
        return Pair(self.tournament.down_to_floor(), self.all_run.down_to_floor())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Compare the tournament with best-of-32.")
    parser.add_argument("folder", type=Path, help="where the sweep is, or goes")
    parser.add_argument("--play", action="store_true", help="carry the sweep out first")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=PROBLEMS, help="of these alone")
    arguments = parser.parse_args()
    if arguments.play:
        play(arguments.folder, arguments.problems)
    print("".join(f"{name:>{width}}" for name, width in COLUMNS.items()))
    for problem in arguments.problems:
        pairs = tuple(pairs_of(arguments.folder, problem))
        if pairs:
            show(problem, "errors", pairs)
            show("", "floor", tuple(pair.down_to_floor() for pair in pairs))


def play(folder: Path, problems: Sequence[str]) -> None:
    """Carry the sweep out, or on."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "equal-candidates.yaml"
    rows = (
        f"    {name}: {{problem: {name}, evaluation.validation: {size}, evaluation.test: {size}, "
        f"evaluation.coarsen: {COARSEN.get(name, 1)}}}\n"
        for name in problems
        for size in [SAMPLES.get(name, 8)]
    )
    file.write_text(HEAD + "".join(rows))
    sharp = [sys.executable, "-P", "-m", "sharp.cli"]
    subprocess.run([*sharp, "sweep", str(file), "--dir", str(folder / SWEEP), "--yes"], check=True)


def pairs_of(folder: Path, problem: str) -> Iterator[Pair]:
    """Yield the runs of a problem that are finished in both modes, seed by seed."""
    for seed in range(SEEDS):
        found = [
            path
            for mode in ("tournament", "best-of-n")
            for order in (f"{problem}-{mode}-s{seed}", f"{mode}-s{seed}-{problem}")
            if (path := folder / SWEEP / "runs" / order).is_dir()
        ]
        first, second = map(course, found) if len(found) == 2 else (None, None)
        if first and second:
            yield Pair(first, second)


def course(path: Path) -> Course | None:
    """Return the course of a run, None while it is unfinished."""
    record = read_run(path)
    if not record.barriers or record.barriers[-1].name != "done":
        return None
    runs = (e for e in record.effects.values() if e.kind == "evaluate" and e.request["split"] == "validation")
    tournament = (run for run in runs if not run.path.startswith("finalize"))
    scores = [run.reply["scores"] for run in sorted(tournament, key=lambda run: natural_sort_key(run.path))]
    errors = accumulate((each["nrmse"] if each else inf for each in scores), min)
    return Course(tuple(errors), next(each["data_error"] for each in scores if each))


def show(problem: str, counted: str, pairs: Sequence[Pair]) -> None:
    """Print a row."""
    needed, ratios = [pair.needed for pair in pairs], [pair.ratio for pair in pairs]
    cells = (
        problem,
        counted,
        str(len(pairs)),
        *(f"{of(needed):g}" for of in (median, min, max)),
        f"{sum(count <= MOST for count in needed)}/{len(pairs)}",
        f"{median(len(pair.tournament.errors) for pair in pairs):g}",
        *(f"{of(ratios):.2g}" for of in (median, min, max)),
        f"{sum(ratio <= 1 for ratio in ratios)}/{len(pairs)}",
    )
    print("".join(f"{cell:>{width}}" for cell, width in zip(cells, COLUMNS.values(), strict=True)))


if __name__ == "__main__":
    main()
