"""Which calls of a solver one process makes, and how long each took by the events that were seen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

_LEAST_SAVING_S = 2.0
_SLOW_DISK = 20e6  # bytes a second


@dataclass(frozen=True)
class SolverCall:
    """One call, `function(*arrays, *parameters)`, and the shape of each array it returns.

    `name` may stand in the name of a file.
    """

    name: str
    arrays: Mapping[str, Array]
    parameters: Mapping[str, float]
    returns: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class CallPlan:
    """The calls of one process: first the one that decides, `repeats` times, then the others.

    Where the first call fails there are no others; whatever becomes of those, its result counts. They may take
    `grace_s` together and, each, five times as long as the first; None leaves them to the limit of the process.
    """

    function: str
    calls: tuple[SolverCall, ...]
    repeats: int = 1
    grace_s: float | None = 30.0

    @property
    def repetitions(self) -> tuple[str, ...]:
        """The names of the further calls that are equal to the first."""
        return tuple(f"repeat-{number}" for number in range(1, self.repeats))

    def sequence(self) -> Iterator[tuple[str, SolverCall]]:
        """Yield every call in order with its name."""
        first, *others = self.calls
        yield first.name, first
        yield from ((name, first) for name in self.repetitions)
        yield from ((call.name, call) for call in others)

    def description(self) -> dict[str, Any]:
        """Return the plain form that the harness reads."""
        calls = [
            {
                "name": name,
                "arrays": {port: input_file(call, port) for port in call.arrays},
                "parameters": dict(call.parameters),
                "returns": dict(call.returns),
            }
            for name, call in self.sequence()
        ]
        return {"function": self.function, "calls": calls, "grace_s": self.grace_s}


def input_file(call: SolverCall, port: str) -> str:
    """Return the name of the file by which a call is given an array."""
    return f"input-{call.name}-{port}.npy"


def call_times(events: Sequence[tuple[float, str]], work: CallPlan, end_s: float) -> dict[str, float] | None:
    """Return the seconds of each call that returned, by name: from the moment when it got its inputs to its `done`.

    None where the words are not exactly those of the harness and the answers to it, as far as it came, or where more
    time passed after a call, until the next word or the end of the process at `end_s`, than saving its results can
    take: then somebody else has had a hand in them, and no time between them is to be believed.
    """
    names = [name for name, _ in work.sequence()]
    words = ("ready", "call", "done")
    expected = ["load", *(f"{word} {name}" for name in names for word in words)]
    said = [line for _, line in events]
    # A call may also have failed.
    agree = (
        line in (word, word.replace("done ", "failed ", 1))
        for line, word in zip(said, expected, strict=False)
    )
    if len(said) > len(expected) or not all(agree):
        return None
    moments = {line: moment for moment, line in events}
    following = [*(moment for moment, _ in events), end_s][1:]
    calls = dict(work.sequence())
    for (moment, line), after in zip(events, following, strict=True):
        word, _, name = line.partition(" ")
        if word == "done" and after - moment > _saving_s(calls[name]):
            return None
    return {
        name: moments[f"done {name}"] - moments[f"call {name}"] for name in names if f"done {name}" in moments
    }


def load_time(events: Sequence[tuple[float, str]]) -> float:
    """Return the seconds from the first word, at which a module is loaded, to the second, when it has been."""
    return events[1][0] - events[0][0]


def _saving_s(call: SolverCall) -> float:
    """Return the most seconds that saving a call's results takes, in double precision on a slow disk."""
    numbers = sum(math.prod(shape) for shape in call.returns.values())
    return _LEAST_SAVING_S + 8 * numbers / _SLOW_DISK
