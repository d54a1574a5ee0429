"""What a small neural operator costs beside a solver: processor seconds of an epoch, of a prediction, and its error.

An operator is trained for a few epochs on generated data, scored on the validation samples of a small data set, and
timed. Seconds are processor seconds of all threads, so that other work on the machine counts less. Run with
`python benchmarks/bench_neural.py --help`; it needs the extra `neural`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sharp.neural.baseline import Scorer
from sharp.neural.operator import TrainingConfig, count_parameters
from sharp.neural.training import CHECKPOINT, train
from sharp.neural.training_data import initial_states, training_set
from sharp.problems import Problem, load_problem
from sharp.reference.datasets import make_splits
from sharp.reference.generation import ensure_dataset


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", nargs="+", default=("advection",))
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--held-out", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    print(f"{options.samples} samples to train on; processor seconds")
    print(f"{'problem':<20}{'parameters':>12}{'compile':>9}{'a sample and epoch':>20}{'a prediction':>14}"
          f"{'checkpoint':>12}{'error':>10}")  # fmt: skip
    for name in options.problems:
        print(measure(load_problem(name), options.samples, options.held_out, options.epochs), flush=True)


def measure(problem: Problem, samples: int, held_out: int, epochs: int) -> str:
    """Train twice, for ten epochs and for more, whose difference has no compilation; return a line of the table."""
    settings = TrainingConfig(samples=samples, epochs=epochs)
    dataset = ensure_dataset(problem, 2 * held_out, seed=2022, kind="pdebench")
    data = training_set(problem, settings)
    scorer = Scorer(problem, dataset, make_splits(dataset.n_samples, held_out, held_out).validation)

    def trained(count: int) -> Any:
        chosen = TrainingConfig(samples=samples, epochs=count)
        with tempfile.TemporaryDirectory() as folder:
            state = train(data, chosen, Path(folder), lambda _: 0.0, lambda _: None)
            return state, (Path(folder) / CHECKPOINT).stat().st_size

    _, short = timed(lambda: trained(10))
    (state, size), long = timed(lambda: trained(10 + epochs))
    each = (long - short) / (epochs * samples)
    initial = initial_states(problem, scorer.inputs.arrays)
    state.model.predict(initial)
    _, predicted = timed(lambda: state.model.predict(initial))
    return (
        f"{problem.id:<20}{count_parameters(state.model.parameters):>12,}{short - 10 * samples * each:>9.1f}"
        f"{each:>20.5f}{predicted / held_out:>14.4f}{size / 1e6:>9.1f} MB{scorer.score(state.model).nrmse:>10.1e}"
    )


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result and the processor seconds it took."""
    began = time.process_time()
    return work(), time.process_time() - began


if __name__ == "__main__":
    main()
