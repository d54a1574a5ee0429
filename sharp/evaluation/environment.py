"""What programs find where they run: told by a program of ours, run there as a candidate is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from sharp.evaluation.protocol import Evaluation

if TYPE_CHECKING:
    from sharp.problems import Interface

LIBRARIES = ("numpy", "scipy", "jax", "torch", "numba", "cupy", "sympy")
"""Numerical libraries that are looked for, by the names that programs import them under."""


@dataclass(frozen=True)
class Environment:
    """Python's version, the versions of the libraries that can be imported, devices, and the inputs of a solver.

    `device` is the kind of the devices that JAX or PyTorch computes on, `devices` their number. By the names of the
    arrays that a solver is given: `dtypes`, and the `largest` magnitude and the `smallest` value on the samples of the
    short run. What was not told is empty.
    """

    python: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    device: str = "CPU"
    devices: int = 1
    dtypes: Mapping[str, str] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)
    smallest: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that is kept."""
        return asdict(self)

    @classmethod
    def told_by(cls, evaluation: Evaluation) -> Self:
        """Read what the probe printed before its end, among what libraries may print when they are imported."""
        told: dict[str, Any] = {}
        for line in evaluation.stdout.splitlines():
            word, _, found = line.partition(" ")
            if word == _WORD:
                for key, value in json.loads(found).items():
                    told[key] = {**told.get(key, {}), **value} if isinstance(value, dict) else value
        return cls(**told)


def probe_program(interface: Interface) -> str:
    """Return the program that tells on standard output what it finds: one JSON object a line, so that none is lost.

    It never returns a solution. Imports are written out, so that the cache of evaluations knows a program of other
    versions for another.
    """
    imports = "".join(_IMPORT.format(name=name) for name in LIBRARIES)
    arrays = ", ".join(f'"{port.name}": {port.name}' for port in interface.inputs)
    arguments = ", ".join(interface.arguments)
    return _PROBE.format(
        word=_WORD, function=interface.function, arguments=arguments, arrays=arrays, imports=imports
    )


_WORD = "found:"
_IMPORT = """
    try:
        import {name}
        tell(packages={{"{name}": str({name}.__version__)}})
    except Exception:
        pass
"""
_PROBE = '''\
"""Tells what programs find here."""

import json
import platform
import sys


def tell(**found):
    print("{word} " + json.dumps(found) + "\\n", end="", flush=True)


def devices():
    if "jax" in sys.modules:
        found = sys.modules["jax"].devices()
        if found[0].platform != "cpu":
            return found[0].device_kind, len(found)
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_available():
        cuda = sys.modules["torch"].cuda
        return cuda.get_device_name(0), cuda.device_count()
    return "CPU", 1


def {function}({arguments}):
    tell(python=platform.python_version())
{imports}
    device, number = devices()
    tell(device=device, devices=number)
    arrays = {{{arrays}}}
    tell(
        dtypes={{name: str(value.dtype) for name, value in arrays.items()}},
        largest={{name: float(abs(value).max()) for name, value in arrays.items()}},
        smallest={{name: float(value.min()) for name, value in arrays.items()}},
    )
    raise RuntimeError("This is all that was asked.")
'''
