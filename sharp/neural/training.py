"""Training an operator: Adam on the relative error of each sample, by the extra `neural` (optax)."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from hpc.files import write_atomic
from sharp.errors import ConfigurationError, DataError
from sharp.neural.operator import Parameters, TrainingConfig, apply, initial_parameters
from sharp.neural.training_data import Array, TrainingSet
from sharp.reference import Progress

CHECKPOINT = "checkpoint.npz"
CHECKPOINT_EVERY = 10
PREDICTED_AT_A_TIME = 10

Validate = Callable[["NeuralOperator"], float]


@dataclass(frozen=True)
class Epoch:
    """The mean error of the training samples in an epoch, and that of the validation samples after it."""

    epoch: int
    training: float
    validation: float


@dataclass(frozen=True)
class TrainingListener:
    """Who is told about data that are made, how many epochs are over, and what came of one."""

    on_data: Progress | None = None
    on_training: Progress = lambda *_: None
    on_epoch: Callable[[Epoch], None] = lambda _: None


@dataclass(frozen=True)
class NeuralOperator:
    """An operator with the mean and the spread of each field [fields, 1], by which its numbers are scaled."""

    parameters: Parameters
    mean: Array
    spread: Array

    @classmethod
    def untrained(cls, data: TrainingSet, settings: TrainingConfig) -> NeuralOperator:
        """Return the operator that training begins with."""
        mean, spread = (f(data.initial, axis=(0, 2))[:, None] for f in (np.mean, np.std))
        channels = data.initial.shape[1], data.later.shape[1]
        return cls(initial_parameters(settings, *channels), mean, spread)

    def predict(self, initial: Array) -> Array:
        """Return the later states of many samples on any grid, a few samples at a time."""
        later, known = _compiled_later(), (self.parameters, self.mean, self.spread)
        starts = range(0, len(initial), PREDICTED_AT_A_TIME)
        parts = (initial[start : start + PREDICTED_AT_A_TIME] for start in starts)
        return np.concatenate([np.asarray(later(*known, part)) for part in parts])


@dataclass(frozen=True)
class TrainingState:
    """Where a training stands: the operator, the optimiser's state, the epochs so far, and the seconds they took."""

    model: NeuralOperator
    optimiser: Any
    epochs: int = 0
    history: tuple[Epoch, ...] = ()
    seconds: float = 0.0


def load_optax() -> ModuleType:
    """Return the library of optimisers; raises `ConfigurationError` where the extra is not installed."""
    try:
        import optax
    except ImportError:
        raise ConfigurationError(
            "training a neural baseline needs optax, which is not installed: pip install 'pde-sharp[neural]'"
        ) from None
    return optax  # type: ignore[no-any-return]


def train(
    data: TrainingSet,
    settings: TrainingConfig,
    folder: Path,
    validate: Validate,
    listener: TrainingListener,
) -> TrainingState:
    """Train, or go on from the folder's checkpoint; every tenth epoch is kept there before it is told."""
    optax = load_optax()
    steps = settings.epochs * (settings.samples // settings.batch)
    rule = optax.adam(optax.cosine_decay_schedule(settings.learning_rate, steps))
    model = NeuralOperator.untrained(data, settings)
    state = _resumed(TrainingState(model, rule.init(model.parameters)), folder / CHECKPOINT)
    one_epoch = _compiled(model, rule, optax, data)
    listener.on_training(state.epochs, settings.epochs, "training")
    while state.epochs < settings.epochs:
        state = _more_epochs(state, one_epoch, settings, validate)
        _save(state, folder / CHECKPOINT)
        listener.on_epoch(state.history[-1])
        listener.on_training(state.epochs, settings.epochs, "training")
    return state


def later(parameters: Parameters, mean: Any, spread: Any, initial: Any) -> Any:
    """Return the later states [n, fields * (T - 1), N] for initial states [n, fields, N]."""
    import jax.numpy as jnp

    out = apply(parameters, (initial - mean) / spread)
    frames = out.shape[1] // len(mean)
    return out * jnp.repeat(spread, frames, axis=0) + jnp.repeat(mean, frames, axis=0)


def relative_error(found: Any, wanted: Any) -> Any:
    """Return the mean over samples [n, …] of the relative 2-norm error, for JAX to differentiate."""
    import jax.numpy as jnp

    axes = tuple(range(1, wanted.ndim))
    return jnp.mean(jnp.sqrt(jnp.sum((found - wanted) ** 2, axes) / jnp.sum(wanted**2, axes)))


@cache
def _compiled_later() -> Callable[..., Any]:
    import jax

    return jax.jit(later)


def _compiled(model: NeuralOperator, rule: Any, optax: ModuleType, data: TrainingSet) -> Callable[..., Any]:
    """Return the epoch `(parameters, optimiser, rows [steps, batch]) -> parameters, optimiser, error`."""
    import jax
    import jax.numpy as jnp

    initial, wanted = jnp.asarray(data.initial), jnp.asarray(data.later)

    def loss(parameters: Parameters, rows: Any) -> Any:
        return relative_error(later(parameters, model.mean, model.spread, initial[rows]), wanted[rows])

    def step(state: Any, rows: Any) -> Any:
        parameters, optimiser = state
        error, gradient = jax.value_and_grad(loss)(parameters, rows)
        updates, optimiser = rule.update(gradient, optimiser)
        return (optax.apply_updates(parameters, updates), optimiser), error

    def epoch(parameters: Parameters, optimiser: Any, order: Any) -> Any:
        (parameters, optimiser), errors = jax.lax.scan(step, (parameters, optimiser), order)
        return parameters, optimiser, errors.mean()

    return jax.jit(epoch)


def _more_epochs(
    state: TrainingState, one_epoch: Callable[..., Any], settings: TrainingConfig, validate: Validate
) -> TrainingState:
    """Train up to the next checkpoint; the order of samples depends on the epoch alone."""
    began, error = time.perf_counter(), 0.0
    parameters, optimiser = state.model.parameters, state.optimiser
    end = min(state.epochs + CHECKPOINT_EVERY, settings.epochs)
    for epoch in range(state.epochs, end):
        parameters, optimiser, found = one_epoch(parameters, optimiser, _order(settings, epoch))
        error = float(found)
    model = replace(state.model, parameters=parameters)
    seconds = state.seconds + time.perf_counter() - began
    history = (*state.history, Epoch(end, error, validate(model)))
    return TrainingState(model, optimiser, end, history, seconds)


def _order(settings: TrainingConfig, epoch: int) -> Any:
    drawn = np.random.default_rng([settings.seed, epoch]).permutation(settings.samples)
    steps = settings.samples // settings.batch
    return drawn[: steps * settings.batch].reshape(steps, settings.batch)


def _save(state: TrainingState, path: Path) -> None:
    history = [[item.epoch, item.training, item.validation] for item in state.history]
    facts = {"epochs": state.epochs, "seconds": state.seconds, "history": history}
    save_tree(path, (state.model.parameters, state.optimiser), facts)


def _resumed(state: TrainingState, path: Path) -> TrainingState:
    if not path.exists():
        return state
    (parameters, optimiser), facts = load_tree(path, (state.model.parameters, state.optimiser))
    history = tuple(Epoch(*item) for item in facts["history"])
    model = replace(state.model, parameters=parameters)
    return TrainingState(model, optimiser, facts["epochs"], history, facts["seconds"])


Tree = TypeVar("Tree")
_FACTS = "facts"


def save_tree(path: Path, tree: Any, facts: dict[str, Any]) -> None:
    """Write all arrays of a tree and some facts, as plain JSON, in place of what the file held before."""
    import jax

    arrays: dict[str, Any] = {_FACTS: np.array(json.dumps(facts))}
    arrays |= {f"leaf-{number:04}": np.asarray(leaf) for number, leaf in enumerate(jax.tree.leaves(tree))}
    data = io.BytesIO()
    np.savez(data, **arrays)
    write_atomic(path, data.getvalue())


def load_tree(path: Path, like: Tree) -> tuple[Tree, dict[str, Any]]:
    """Read what `save_tree` wrote into the form of a tree; raises `DataError` for a file that is not of this form."""
    import jax
    import jax.numpy as jnp

    wanted, form = jax.tree.flatten(like)
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            facts = json.loads(str(file[_FACTS]))
            leaves = [file[name] for name in sorted(file.files) if name != _FACTS]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path}: expected a checkpoint, found a file that cannot be read ({error})"
        ) from None
    shapes = [np.shape(leaf) for leaf in leaves]
    if shapes != [np.shape(leaf) for leaf in wanted]:
        raise DataError(f"{path}: expected the arrays of this training, found others: {shapes[:4]}")
    return jax.tree.unflatten(form, map(jnp.asarray, leaves)), dict(facts)
