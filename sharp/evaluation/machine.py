"""What a run needs of the machine; where it is missing, that is never a candidate's fault."""

from __future__ import annotations

import math
import os
import resource
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from hpc.errors import InfrastructureError
from hpc.sandbox import DiskUsageMonitor, PipeResponder, SandboxLimits, SandboxResult, gpu_devices, no_answer
from sharp.evaluation.calls import CallPlan
from sharp.evaluation.outcome import Environment
from sharp.evaluation.scratch import scratch_folder

_MB = 1 << 20
_BACKEND = "import jax; print(jax.default_backend())"
_PROBE = SandboxLimits(wall_s=300, memory_mb=8000)
_LEAST_MB = 256


class Runner(Protocol):
    """What runs scripts as an `Interpreter` does."""

    def run(
        self,
        script: Path,
        *,
        scratch: Path,
        bounds: SandboxLimits,
        environment: Mapping[str, str],
        preload: Sequence[str] = (),
        answer: PipeResponder = no_answer,
    ) -> SandboxResult:
        """Run a script; see `Interpreter.run`."""
        ...


def file_mb(work: CallPlan) -> int:
    """Return the largest file allowed: twice the largest array in double precision, at least 256 MB."""
    return max(_LEAST_MB, 2 * _largest_mb(work))


def needed_mb(work: CallPlan) -> int:
    """Return the space for all that a good candidate leaves, in double precision, at least 256 MB."""
    arrays = (shape for _, call in work.sequence() for shape in call.returns.values())
    return max(_LEAST_MB, sum(map(_double_mb, arrays)))


def check_space(scratch: Path, work: CallPlan) -> None:
    """Raise `InfrastructureError` where disk or file sizes would not admit a good candidate's results."""
    if (free := _free_mb(scratch)) < needed_mb(work):
        raise InfrastructureError(
            f"{scratch} has {free} MB free; a run needs {needed_mb(work)} MB (see TMPDIR)."
        )
    _, ceiling = resource.getrlimit(resource.RLIMIT_FSIZE)
    if ceiling != resource.RLIM_INFINITY and ceiling // _MB < _largest_mb(work):
        raise InfrastructureError(
            f"Files may have {ceiling // _MB} MB here (ulimit -f); a solution may need {_largest_mb(work)} MB."
        )


def check_still_space(scratch: Path, work: CallPlan, message: str) -> None:
    """Raise `InfrastructureError` where a result could not be saved and not the candidate has used up the space."""
    fair = DiskUsageMonitor(scratch, (needed_mb(work) + _LEAST_MB) * _MB)
    if _free_mb(scratch) < needed_mb(work) and not fair.exceeds_now(()):
        raise InfrastructureError(f"The disk of {scratch} has filled up during a run: {message}")


def has_missed_gpu(environment: Environment) -> bool:
    """Tell whether a GPU was given and JAX, by what a candidate's process left, has silently done without."""
    if environment.jax is None or environment.device != "cpu" or "cpu" in (environment.platforms or ""):
        return False
    return _given_gpus() not in ("", "-1") and bool(gpu_devices())


def check_gpu(interpreter: Runner, home: Path) -> None:
    """Raise `InfrastructureError` where JAX finds no GPU in a program of ours either, run in a folder below `home`.

    A candidate's own word is not enough: it could provoke this fault on every node, and so end a run.
    """
    with scratch_folder("backend-", home) as folder:
        script = folder / "backend.py"
        script.write_text(_BACKEND)
        done = interpreter.run(script, scratch=folder, bounds=_PROBE, environment={}, preload=())
    if done.stdout.strip() in ("", "cpu"):
        raise InfrastructureError(
            f"A GPU was given (CUDA_VISIBLE_DEVICES={_given_gpus()}), but JAX found none and ran on the CPU; install "
            "jax[cuda12], or set JAX_PLATFORMS=cpu to have it so."
        )


def _given_gpus() -> str:
    return os.environ.get("CUDA_VISIBLE_DEVICES", "").strip()


def _largest_mb(work: CallPlan) -> int:
    return max(_double_mb(shape) for call in work.calls for shape in call.returns.values())


def _double_mb(shape: Sequence[int]) -> int:
    return 8 * math.prod(shape) // _MB + 1


def _free_mb(scratch: Path) -> int:
    return shutil.disk_usage(scratch).free // _MB
