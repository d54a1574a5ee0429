"""What a small neural operator costs beside a solver: processor seconds of an epoch, of a prediction, and its error.

An operator is trained for a few epochs on generated data, scored on the validation samples of a small data set, and
timed. Seconds are processor seconds of all threads, so that other work on the machine counts less. Run with
`python benchmarks/bench_neural.py --help`; it needs the extra `neural`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from measuring import Table, command_line, cost_of, scratch

from sharp.neural import (
    CHECKPOINT,
    Scorer,
    TrainingConfig,
    count_parameters,
    initial_states,
    train,
    training_set,
)
from sharp.problems import Problem, load_problem
from sharp.reference import ensure_dataset, make_splits


def main(
    problems: Sequence[str] = ["advection"], samples: int = 100, held_out: int = 10, epochs: int = 20
) -> None:
    """Print the table."""
    print(f"{samples} samples to train on; processor seconds")
    table = Table(
        "problem",
        "parameters:,",
        "compilation:.1f",
        "a sample, an epoch:.5f",
        "a prediction:.4f",
        "checkpoint, MB:.1f",
        "error on validation:.1e",
    )
    for name in problems:
        table.row(name, *figures(load_problem(name), samples, held_out, epochs))


def figures(problem: Problem, samples: int, held_out: int, epochs: int) -> Iterator[float]:
    """Train twice, for ten epochs and for more, whose difference has no compilation; yield a row of the table."""
    settings = TrainingConfig(samples=samples, epochs=epochs)
    dataset = ensure_dataset(problem, 2 * held_out, seed=2022, kind="pdebench")
    data = training_set(problem, settings)
    scorer = Scorer(problem, dataset, make_splits(dataset.n_samples, held_out, held_out).validation)

    def trained(count: int) -> tuple[Any, int]:
        with scratch() as folder:
            chosen = TrainingConfig(samples=samples, epochs=count)
            state = train(data, chosen, folder, lambda _: 0.0, lambda _: None)
            return state, (folder / CHECKPOINT).stat().st_size

    short = cost_of(partial(trained, 10))
    long = cost_of(partial(trained, 10 + epochs))
    state, size = long.result
    each = (long.cpu_s - short.cpu_s) / (epochs * samples)
    initial = initial_states(problem, scorer.inputs.arrays)
    state.model.predict(initial)
    yield count_parameters(state.model.parameters)
    yield short.cpu_s - 10 * samples * each
    yield each
    yield cost_of(lambda: state.model.predict(initial)).cpu_s / held_out
    yield size / 1e6
    yield scorer.score(state.model).nrmse


if __name__ == "__main__":
    command_line(main)
