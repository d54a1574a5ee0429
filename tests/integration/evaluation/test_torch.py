"""Programs that use PyTorch, an extra: in every tier, warm and cold, with their threads, on the right device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from hpc.errors import InfrastructureError
from hpc.sandbox import Interpreter
from sharp.evaluation.calls import CallPlan, SolverCall
from sharp.evaluation.candidate import CandidateRun, run_candidate
from sharp.evaluation.machine import _BACKEND, missed_gpu
from sharp.evaluation.outcome import Environment
from sharp.problems.limits import ResourceLimits
from tests.helpers.sandbox.sandbox_tiers import TIERS
from tests.helpers.sandbox.sandbox_tiers import interpreter as interpreter_of

U0 = np.linspace(0.0, 1.0, 2 * 4096).reshape(2, 4096)
WORK = CallPlan("solver", (SolverCall("scored", {"u0": U0}, {}, {"u": (2, 4096)}),))
LIMITS = ResourceLimits(wall_s=300, memory_mb=2000)
# Large enough for PyTorch to share it among its threads; a pool that a fork has lost would never answer.
SOLVER = """
import torch
def solver(u0):
    u = torch.tensor(u0, requires_grad=True)
    product = torch.ones(400, 400, dtype=torch.float64) @ torch.ones(400, 400, dtype=torch.float64)
    (slope,) = torch.autograd.grad((u**2).sum(), u)
    print(torch.get_num_threads(), product.sum().item(), torch.fft.rfft(u).shape[1])
    return 0.5 * slope + 0 * u
"""
CONJUGATED = """
import torch
def solver(u0):
    return torch.complex(torch.zeros(2, 4096), -torch.tensor(u0).float()).conj().imag
"""

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")


@pytest.fixture(scope="module", params=["warm", "cold"])
def warm(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "warm")


@pytest.fixture(scope="module", params=TIERS)
def interpreter(request: pytest.FixtureRequest, warm: bool) -> Iterator[Interpreter]:
    with interpreter_of(request.param, warm) as made:
        yield made


def ran(code: str, interpreter: Interpreter, folder: Path, limits: ResourceLimits = LIMITS) -> CandidateRun:
    folder.mkdir(parents=True)
    return run_candidate(code, WORK, limits, None, interpreter, folder)


@needs_torch
@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_computes_with_the_threads_it_is_given(
    interpreter: Interpreter, tmp_path: Path, threads: int
) -> None:
    limits = replace(LIMITS, threads=threads)
    for turn in ("first", "again"):
        done = ran(SOLVER, interpreter, tmp_path / "scratch" / turn, limits)
        assert done.first.failure is None, done.first.failure
        assert done.completed.stdout == f"{threads} 64000000.0 2049\n"
        np.testing.assert_allclose(done.first.arrays["u"], U0)
    assert done.environment["device"] == "cpu"
    assert done.environment["torch"].startswith("2.")
    assert done.run_time_s < done.completed.wall_s


@needs_torch
def test_what_a_tensor_is_when_it_comes_back_does_not_matter(
    interpreter: Interpreter, tmp_path: Path
) -> None:
    done = ran(CONJUGATED, interpreter, tmp_path / "scratch" / "one")
    assert done.first.failure is None, done.first.failure
    np.testing.assert_allclose(done.first.arrays["u"], U0, rtol=1e-6)
    assert done.first.dtype == "float32"
    asked = "import torch\ndef solver(u0):\n    return torch.tensor(u0, device='cuda')"
    failure = ran(asked, interpreter, tmp_path / "scratch" / "two").first.failure
    assert failure is not None
    assert failure.kind == "exception"


def environment(**found: object) -> Environment:
    return Environment.model_validate({"python": "3", "numpy": "2", "device": "cpu", **found})


@pytest.mark.parametrize(
    ("found", "missed"),
    [
        ({"torch": "2.0", "torch_finds_gpu": False}, ["PyTorch"]),
        ({"torch": "2.0", "torch_finds_gpu": True}, []),
        ({"torch": "2.0", "torch_finds_gpu": False, "device": "gpu"}, []),
        ({"jax": "0.7"}, ["JAX"]),
        ({"jax": "0.7", "platforms": "cpu"}, []),
        ({"jax": "0.7", "torch": "2.0", "torch_finds_gpu": False}, ["JAX", "PyTorch"]),
        ({}, []),
    ],
)
def test_what_a_library_found_tells_whether_a_gpu_was_missed(
    found: dict[str, object], missed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr("sharp.evaluation.machine.gpu_devices", lambda: ("/dev/nvidia0",))
    assert list(missed_gpu(environment(**found))) == missed
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert list(missed_gpu(environment(**found))) == []


@needs_torch
def test_torch_without_the_gpu_that_was_given_is_the_machines_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr("sharp.evaluation.machine.gpu_devices", lambda: ("/dev/nvidia0",))
    with interpreter_of("rlimits", warm=True) as interpreter:
        with pytest.raises(
            InfrastructureError, match="PyTorch found none and ran on the CPU; install a PyTorch"
        ):
            ran(SOLVER, interpreter, tmp_path / "one")
        monkeypatch.setitem(_BACKEND, "PyTorch", "print('gpu')")
        assert ran(SOLVER, interpreter, tmp_path / "two").first.failure is None
