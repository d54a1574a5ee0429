"""Which calls of a solver one process makes, and how long each took by the events that were seen."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_CHANGE = 1e-4
_WAVES = 12  # at most, of the changes of inputs along an axis


@dataclass(frozen=True)
class SolverCall:
    """One call, `function(*arrays, *parameters)`, and the shape of each array it returns.

    `name` may stand in the name of a file. `varied` names the arrays that repetitions may change a little: not
    coordinates.
    """

    name: str
    arrays: Mapping[str, Array]
    parameters: Mapping[str, float]
    returns: Mapping[str, tuple[int, ...]]
    varied: tuple[str, ...] = ()

    def repetition(self, name: str, chance: np.random.Generator) -> SolverCall:
        """Return a call for other inputs that lie close to these: a share of each sample is that of its neighbour.

        What all samples have in common (bounds, signs, periodicity) stays. The share differs from point to point, so
        that even where the equations are linear the new results are not the same blends of the old ones. Where no array
        may be changed, parameters are, by a share.
        """
        share = float(chance.uniform(_CHANGE / 2, _CHANGE))
        arrays = {port: _blended(self.arrays[port], share, chance) for port in self.varied}
        parameters = (
            self.parameters
            if arrays
            else {key: value * (1 - share) for key, value in self.parameters.items()}
        )
        return replace(self, name=name, arrays={**self.arrays, **arrays}, parameters=parameters)

    def change_from(self, other: SolverCall) -> float:
        """Return the largest relative change of an input against another call's, in the 2-norm."""
        parts = [
            *((array, other.arrays[port]) for port, array in self.arrays.items()),
            *(
                (np.asarray(value), np.asarray(other.parameters[key]))
                for key, value in self.parameters.items()
            ),
        ]
        return max((relative_distance(before, after) for after, before in parts), default=0.0)


@dataclass(frozen=True)
class CallPlan:
    """The calls of one process: the one that decides, repetitions of it to `repeats` in all, then the others.

    Repetitions have inputs of their own, which differ from the first by up to one in ten thousand and are drawn anew
    for each plan: what a program remembers of the first call is no answer to them. Where the first call fails there are
    no others; whatever becomes of those, its result counts. They may take `grace_s` together and, each, five times as
    long as the first; None leaves them to the limit of the process.
    """

    function: str
    calls: tuple[SolverCall, ...]
    repeats: int = 1
    grace_s: float | None = 30.0
    seed: int = field(default_factory=lambda: secrets.randbits(64))

    @cached_property
    def repetitions(self) -> tuple[SolverCall, ...]:
        """The further calls that are like the first."""
        chance = np.random.default_rng(self.seed)
        return tuple(self.calls[0].repetition(f"repeat-{n}", chance) for n in range(1, self.repeats))

    def sequence(self) -> tuple[SolverCall, ...]:
        """Return every call in order."""
        return (self.calls[0], *self.repetitions, *self.calls[1:])

    def interface(self) -> dict[str, Any]:
        """Return what the harness reads first, which is the same for every split: names alone."""
        first = self.calls[0]
        return {
            "function": self.function,
            "first": first.name,
            "arguments": [*first.arrays, *first.parameters],
        }

    def further(self) -> dict[str, Any]:
        """Return what the harness reads once the result of the first call was taken: the names of the others."""
        return {"names": [call.name for call in self.sequence()[1:]], "grace_s": self.grace_s}


def description(call: SolverCall) -> dict[str, Any]:
    """Return the plain form of a call, which the harness reads with its inputs."""
    return {
        "arrays": {port: input_file(call, port) for port in call.arrays},
        "parameters": dict(call.parameters),
        "returns": dict(call.returns),
    }


def description_file(call: SolverCall) -> str:
    """Return the name of the file that describes a call."""
    return f"call-{call.name}.json"


def input_file(call: SolverCall, port: str) -> str:
    """Return the name of the file by which a call is given an array."""
    return f"input-{call.name}-{port}.npy"


def output_file(call: SolverCall, name: str) -> str:
    """Return the name of the file in which a call leaves what it returned, its values in rows and nothing else."""
    return f"output-{call.name}-{name}.bin"


def report_file(call: SolverCall) -> str:
    """Return the name of the file in which the harness says what came of a call."""
    return f"report-{call.name}.json"


def call_times(events: Sequence[tuple[float, str]], work: CallPlan) -> dict[str, float] | None:
    """Return the seconds of each call, by name: from the moment when it got its inputs until its result was taken.

    Both are words of ours. None where the others are not exactly those of the harness, as far as it came: then
    somebody else has had a hand in them.
    """
    names = [call.name for call in work.sequence()]
    words = ("ready", "call", "done", "kept")
    expected = ["load", *(f"{word} {name}" for name in names for word in words)]
    said = [line for _, line in events]
    if said != expected[: len(said)]:
        return None
    moments = {line: moment for moment, line in events}
    return {
        name: moments[f"kept {name}"] - moments[f"call {name}"] for name in names if f"kept {name}" in moments
    }


def load_time(events: Sequence[tuple[float, str]]) -> float:
    """Return the seconds from the first word, at which a module is loaded, to the second, when it has been."""
    return events[1][0] - events[0][0]


def relative_distance(values: Array, other: Array) -> float:
    """Return the distance of an array from another, relative to the first, in the 2-norm."""
    if np.array_equal(values, other, equal_nan=True):
        return 0.0
    norm = float(np.linalg.norm(values.ravel().astype(float)))
    return float(np.linalg.norm((other - values).ravel().astype(float))) / norm if norm else math.inf


def _blended(values: Array, share: float, chance: np.random.Generator) -> Array:
    """Return values [samples, ...] of which at most a share, in waves along the axes, is that of the next sample."""
    if not np.issubdtype(values.dtype, np.floating):
        return values
    neighbours = np.roll(values, 1, axis=0) if len(values) > 1 else np.zeros_like(values)
    phase = chance.uniform(-1, 1, (len(values), *[1] * (values.ndim - 1)))
    for axis, size in enumerate(values.shape[1:], start=2):
        most = max(1, min(_WAVES, size // 4))
        waves = chance.integers((most + 1) // 2, most, endpoint=True)
        phase = phase + (2 * np.pi * waves / size * np.arange(size)).reshape(-1, *[1] * (values.ndim - axis))
    shares = share * (1 + np.cos(phase)) / 2
    return ((1 - shares) * values + shares * neighbours).astype(values.dtype)
