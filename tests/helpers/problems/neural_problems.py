"""A small problem to train on: advection on 32 points and at six times, in a file of its own."""

from __future__ import annotations

import re
from pathlib import Path

from sharp.neural.settings import TrainingConfig
from sharp.problems import Problem, list_problems, load_problem
from sharp.reference.datasets import DataSet, Splits, make_splits
from sharp.reference.generation import make_dataset

SMALL = TrainingConfig(
    samples=60, epochs=40, batch=10, learning_rate=5e-3, stride=1, modes=9, width=12, layers=2, hidden=16
)
HELD_OUT = 6


def small_file(folder: Path, points: int = 32) -> Path:
    """Write the specification."""
    text = list_problems()["advection"].read_text()
    text = re.sub(r"outputs: .*", f"outputs: {{grid: cells, points: {{x: {points}}}, times: 6}}", text)
    path = folder / "advection.yaml"
    path.write_text(text)
    return path


def small_problem(folder: Path) -> Problem:
    """Load the specification."""
    return load_problem(small_file(folder))


def small_data(problem: Problem, folder: Path, seed: int = 3) -> tuple[DataSet, Splits]:
    """Make six samples to test with and six to validate with."""
    dataset = make_dataset(problem, folder / f"{seed}.hdf5", samples=2 * HELD_OUT, seed=seed, kind="pdebench")
    return dataset, make_splits(dataset.n_samples, HELD_OUT, HELD_OUT)
