"""A small data set of travelling waves, and solvers for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np

from hpc.sandbox import SandboxPolicy
from sharp.evaluation.protocol import EvaluationRequest
from sharp.evaluation.task_folder import EvaluationTask, file_state
from sharp.problems import load_problem
from sharp.problems.limits import ResourceLimits
from sharp.reference.datasets import DataSet, make_splits, open_dataset

PROBLEM = load_problem("advection")
SPLITS = make_splits(8, n_test=3, n_validation=4)
# Without smoke samples no run is followed by the calls of a smoke run, which tests that count runs would count too.
ALONE = replace(SPLITS, smoke=range(0))
LIMITS = ResourceLimits(wall_s=300, memory_mb=2000)
RLIMITS = SandboxPolicy("rlimits")

DEF = "import numpy as np\ndef solver(u0_batch, t_coordinate, beta):\n    "
SHIFT = """
import numpy as np
def solver(u0_batch, t_coordinate, beta):
    n = u0_batch.shape[1]
    wave = np.exp(-2j * np.pi * np.fft.rfftfreq(n, 1 / n) * beta * t_coordinate[:, None])
    print("samples", u0_batch.argmax(axis=1).tolist(), "times", len(t_coordinate), "dt=5e-2, n_steps: 40")
    return np.fft.irfft(np.fft.rfft(u0_batch.astype(float))[:, None] * wave, n)
"""
"""The exact solution; it prints where the samples have their maxima."""

HOLD = DEF + "return np.repeat(u0_batch[:, None], len(t_coordinate), axis=1)"
"""The initial condition at all times."""


def write_waves(path: Path, times: int = 41) -> Path:
    """Write eight samples of a travelling wave; sample i has its maximum at point 8 i at the start."""
    t, x = np.linspace(0, 2, times), (np.arange(64) + 0.5) / 64
    shift = (np.arange(8) + 1 / 16)[:, None, None] / 8 + 0.1 * t[:, None]
    u = 1.5 + np.cos(2 * np.pi * (x - shift))
    with h5py.File(path, "w") as file:
        file.update(
            {"tensor": u.astype("f4"), "t-coordinate": t.astype("f4"), "x-coordinate": x.astype("f4")}
        )
        file.attrs["beta"] = 0.1
    return path


def waves(folder: Path, times: int = 41) -> DataSet:
    """Write and open the data set."""
    return open_dataset(write_waves(folder / "wave.hdf5", times), PROBLEM)


def request(data: DataSet, code: str = SHIFT, **options: object) -> EvaluationRequest:
    """Return a request on the validation samples."""
    fields = {"split": "validation", "limits": LIMITS} | options
    return EvaluationRequest(problem=PROBLEM.label, data=data.label, code=code, **fields)


def task(data: DataSet, code: str = SHIFT, **options: object) -> EvaluationTask:
    """Return the task of a request."""
    asked = request(data, code, **options)
    samples = getattr(SPLITS, asked.split)
    return EvaluationTask(
        request=asked,
        specification=PROBLEM.specification.model_dump(mode="json", exclude_defaults=True),
        dataset=data,
        file_state=file_state(data.path),
        samples=(samples.start, samples.stop),
        smoke=len(SPLITS.smoke),
    )
