"""What the command imports before it is asked for anything heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.cli.sharp_command import Sharp

HEAVY = {
    "jax",
    "zarr",
    "openai",
    "matplotlib",
    "torch",
    "scipy",
    "sympy",
    "h5py",
    "numpy",
    "pydantic",
    "httpx",
}
PROBE = """\
import sys
from sharp.cli import main
sys.argv = ["sharp", *sys.argv[1:]]
try:
    main()
finally:
    print("imported:", *sorted(set(sys.modules)), file=sys.stderr)
"""


def imported(sharp: Sharp, *arguments: object) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROBE, *map(str, arguments)],
        env=sharp.environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_imports_next_to_nothing(sharp: Sharp, arguments: list[str]) -> None:
    assert not imported(sharp, *arguments) & {*HEAVY, "yaml", "asyncio"}


def test_status_imports_nothing_heavy(sharp: Sharp, finished: Path) -> None:
    assert not imported(sharp, "status", finished) & HEAVY


def test_listing_problems_and_models_imports_nothing_numerical(sharp: Sharp) -> None:
    for arguments in (["problems", "list"], ["models", "list"]):
        assert not imported(sharp, *arguments) & (HEAVY - {"pydantic"})


def test_resuming_imports_no_model_client_and_no_solver_library(sharp: Sharp, finished: Path) -> None:
    # The report is written again, so matplotlib draws.
    assert not imported(sharp, "resume", finished) & {"jax", "openai", "torch", "scipy", "sympy"}


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        *((package, HEAVY) for package in ("sharp", "hpc", "sharp.cli", "sharp.runs", "sharp.llm")),
        ("sharp.evaluation.worker", HEAVY - {"numpy", "h5py", "pydantic"}),
    ],
)
def test_importing_a_package_or_starting_a_worker_loads_nothing_heavy(module: str, heavy: set[str]) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & heavy
