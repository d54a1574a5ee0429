"""Physics-informed neural networks, trained by DeepXDE in a process of their own (the extra `pinn`).

A network is trained until the equations hold at many points and the conditions at others (M. Raissi, P. Perdikaris,
G. Karniadakis, Journal of Computational Physics 378, 2019). What is built into the network is in `ansatz`. In this
process neither torch nor DeepXDE is imported: a trained network is evaluated by numpy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import sympy

from hpc.processes import kill_tree
from sharp.errors import DataError
from sharp.problems import to_yaml
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.grid import Array
from sharp.solvers.method import Deadline, SolverFailed, TimeLimitExceeded
from sharp.solvers.pinn.ansatz import (
    PROBLEM,
    RESULT,
    Ansatz,
    Function,
    PinnConfig,
    TrainedNetwork,
    ansatz_of,
)
from sharp.solvers.sample_points import interior_points
from sharp.solvers.system import SINGULAR_AXIS, FirstOrderSystem, real, symmetry_axis

_LOG = "log.txt"
# What is left of the time limit for writing and reading the result, in seconds.
_RESERVE = 2.0
_POINTS_OF_MEAN = 20_000
# Points inside, for a width of 32, by the number of coordinates; they grow with the square of the width.
_POINTS = {1: 128, 2: 1000, 3: 2000, 4: 3000}
_WORKER = (sys.executable, "-P", "-m", "sharp.solvers.pinn.worker")


@dataclass(frozen=True)
class Pinn:
    """Networks of tanh layers; the resolution is the width of a layer.

    `adam` and `lbfgs` are the most steps of either optimiser. `worker` is the command that trains what a folder holds.
    """

    adam: int = 1000
    lbfgs: int = 4000
    worker: tuple[str, ...] = _WORKER

    name = "pinn"

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """It takes everything but eigenvalue problems, once DeepXDE and torch are there."""
        if find_spec("deepxde") is None or find_spec("torch") is None:
            return "needs DeepXDE, which is not installed: pip install 'pde-sharp[pinn]'"
        if system.eigenvalue_terms:
            return "a network would have to be trained for every eigenvalue"
        if symmetry_axis(system.problem):
            return SINGULAR_AXIS
        if system.mean and not system.steady:
            return "the mean of a field that changes with time is not built into networks"
        return None

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        """Neurons in each hidden layer."""
        del system
        return (16, 32, 48)

    def solve(
        self, system: FirstOrderSystem, resolution: int, accuracy: float, deadline: Deadline
    ) -> DiscreteSolution:
        """Train a network of so many neurons a layer; it is the best that was found until the deadline."""
        points = _POINTS[len(system.space) + (not system.steady)] * resolution**2 // 32**2
        until = time.monotonic() + deadline.remaining_s - _RESERVE
        settings = PinnConfig(resolution, max(points, 64), until, accuracy, self.adam, self.lbfgs)
        with tempfile.TemporaryDirectory(prefix="sharp-pinn-") as name:
            trained = self._trained(system, settings, Path(name), deadline)
        ansatz = ansatz_of(system)
        function = Function(ansatz, trained.network, _shift(ansatz, trained))
        facts = {key: value for key, value in trained.facts.items() if isinstance(value, str | int | float)}
        return DiscreteSolution(self.name, resolution, function, trained.network.size, facts=facts)

    def _trained(
        self, system: FirstOrderSystem, settings: PinnConfig, folder: Path, deadline: Deadline
    ) -> TrainedNetwork:
        (folder / PROBLEM).write_text(to_yaml(system.problem), encoding="utf-8")
        settings.write(folder)
        try:
            _run([*self.worker, str(folder)], folder / _LOG, system.problem.limits.threads, deadline)
        except TimeLimitExceeded:
            # The best network so far is there, unless training has not got so far.
            if not (folder / RESULT).exists():
                raise
        ansatz = ansatz_of(system)
        try:
            return TrainedNetwork.read(folder, len(ansatz.features.outputs), len(system.problem.fields))
        except DataError as error:
            raise SolverFailed(f"the training left no network: {error}") from None


def _run(command: list[str], log: Path, threads: int, deadline: Deadline) -> None:
    """Run a training to its end, whatever it prints into a file; raises `TimeLimitExceeded` and `SolverFailed`."""
    deadline.check()
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=_environment(threads),
            start_new_session=True,
        )
        try:
            process.wait(max(deadline.remaining_s, 0.0))
        except subprocess.TimeoutExpired:
            raise TimeLimitExceeded("the limit of time was reached before a network was trained") from None
        finally:
            if process.poll() is None:
                kill_tree(process.pid)
                process.wait()
    if process.returncode:
        raise SolverFailed(f"the training ended with exit code {process.returncode}: {_last_line(log)}")


def _environment(threads: int) -> Mapping[str, str]:
    """Return the environment of a training: DeepXDE on torch, on processors alone, and outside any MPI program."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OMPI_")}
    return {
        **kept,
        "DDE_BACKEND": "pytorch",
        "MPLBACKEND": "Agg",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": str(threads),
    }


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "it printed nothing")


def _shift(ansatz: Ansatz, trained: TrainedNetwork) -> Array:
    """Return the constants [fields] that give each field its mean, where one is given: equations leave it open."""
    system = ansatz.system
    shift = np.zeros(len(system.problem.fields))
    if system.mean:
        points = interior_points(system.problem, _POINTS_OF_MEAN)
        found = Function(ansatz, trained.network, shift)(points, np.zeros(1)).mean(axis=(1, 2))
        for index, wanted in system.mean.items():
            shift[index] = float(wanted.subs(real(system.time), sympy.Integer(0))) - found[index]
    return shift
