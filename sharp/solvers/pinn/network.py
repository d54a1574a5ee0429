"""Networks as files and as functions: what a training is told, what it leaves, and its evaluation by numpy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from hpc.files import write_atomic
from sharp.errors import DataError
from sharp.solvers.pinn.ansatz import Ansatz
from sharp.solvers.pinn.points import with_times

Array = NDArray[np.float64]

PROBLEM, SETTINGS, RESULT = "problem.yaml", "settings.json", "result.npz"


@dataclass(frozen=True)
class PinnConfig:
    """How a network is trained: hidden layers, points inside, steps of Adam and of L-BFGS, seed.

    Training ends when the machine's monotonic clock says `until`, or the relative error may be below `accuracy`. In the
    loss, conditions have a `weight` where equations have 1.
    """

    width: int
    points: int
    until: float
    accuracy: float
    adam: int
    lbfgs: int
    depth: int = 3
    learning_rate: float = 2e-3
    weight: float = 30.0
    seed: int = 0

    def write(self, folder: Path) -> None:
        """Write them into the folder of a training."""
        write_atomic(folder / SETTINGS, json.dumps(asdict(self), indent=1).encode())

    @classmethod
    def read(cls, folder: Path) -> PinnConfig:
        """Read them from the folder of a training."""
        return cls(**json.loads((folder / SETTINGS).read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Network:
    """Layers `weight [out, in]`, `bias [out]` with tanh between them."""

    layers: tuple[tuple[Array, Array], ...]

    @property
    def size(self) -> int:
        """The number of its parameters."""
        return sum(weight.size + bias.size for weight, bias in self.layers)

    def __call__(self, features: Array) -> Array:
        """Return the outputs [m, outputs] for features [m, inputs]."""
        hidden, (weight, bias) = self.layers[:-1], self.layers[-1]
        for inner, shift in hidden:
            features = np.tanh(features @ inner.T + shift)
        return features @ weight.T + bias


@dataclass(frozen=True)
class TrainedNetwork:
    """A network, the course of its training (rows of step, loss), and facts: settings, steps, seconds, versions."""

    network: Network
    history: Array
    facts: Mapping[str, Any]

    def write(self, folder: Path) -> None:
        """Write all of it as one file of arrays."""
        arrays: dict[str, Any] = {"history": self.history, "facts": np.array(json.dumps(dict(self.facts)))}
        for number, (weight, bias) in enumerate(self.network.layers):
            arrays |= {f"weight {number}": weight, f"bias {number}": bias}
        buffer = BytesIO()
        np.savez(buffer, **arrays)
        write_atomic(folder / RESULT, buffer.getvalue())

    @classmethod
    def read(cls, folder: Path, inputs: int, outputs: int) -> TrainedNetwork:
        """Read what a training has left; raises `DataError` for anything but a network from inputs to outputs."""
        path = folder / RESULT
        try:
            with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            network = _network(arrays)
            trained = cls(network, arrays["history"], dict(json.loads(str(arrays["facts"]))))
        except (OSError, ValueError, KeyError, EOFError, TypeError, RuntimeError, BadZipFile) as error:
            raise DataError(f"{path}: is no result of a training: {error}") from None
        _check(path, network, inputs, outputs)
        return trained


def _network(arrays: Mapping[str, Array]) -> Network:
    count = sum(name.startswith("weight ") for name in arrays)
    layers = ((arrays[f"weight {number}"], arrays[f"bias {number}"]) for number in range(count))
    return Network(tuple((weight.astype(np.float64), bias.astype(np.float64)) for weight, bias in layers))


def _check(path: Path, network: Network, inputs: int, outputs: int) -> None:
    """Raise `DataError` unless layers follow on each other from inputs to outputs, and all weights are finite."""
    width = inputs
    for weight, bias in network.layers:
        if weight.ndim != 2 or weight.shape != (*bias.shape, width):
            raise DataError(
                f"{path}: expected a layer of {width} inputs, found {weight.shape} and {bias.shape}"
            )
        if not (np.all(np.isfinite(weight)) and np.all(np.isfinite(bias))):
            raise DataError(f"{path}: holds weights that are not finite")
        width = len(bias)
    if not network.layers or width != outputs:
        raise DataError(f"{path}: expected a network with {outputs} outputs, found {width}")


@dataclass(frozen=True)
class Function:
    """The fields that a network stands for, with constants [fields] added to them."""

    ansatz: Ansatz
    network: Network
    shift: Array

    def __call__(self, points: Array, times: Array) -> Array:
        """Return the values [fields, k, m] at points [m, d] and times [k]."""
        where = points if self.ansatz.system.steady else with_times(points, times)
        features = _columns(self.ansatz.features(*where.T), len(where)).T
        fields = self.ansatz.fields(*where.T, *self.network(features).T)
        found = (_columns(fields, len(where)) + self.shift[:, None]).reshape(len(fields), -1, len(points))
        return np.broadcast_to(found, (len(fields), len(times), len(points)))


def _columns(found: tuple[Any, ...], count: int) -> Array:
    return np.array([np.broadcast_to(np.asarray(value, dtype=float), count) for value in found])
