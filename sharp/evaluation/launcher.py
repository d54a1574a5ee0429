"""Commands that start MPI ranks (`mpiexec -n {shards}`, `srun -n {shards}`): how they are written, what they need."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path

RANKS = "sharp.evaluation.ranks"
_SETTINGS = (
    *("FI_", "HYDRA_", "I_MPI_", "MPICH_", "MPIR_CVAR_", "OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_", "UCX_"),
    *("SLURM_", "SRUN_"),
)
_SECRETS = frozenset({"SLURM_JWT"})
_TOLD = 3


def checked_launcher(text: str) -> str:
    """Return a launcher's command as it is; raises `ValueError` where it cannot be used."""
    launcher_command(text, 2)
    return text


def launcher_command(text: str, shards: int) -> list[str]:
    """Return the words of a launcher's command; raises `ValueError` where it is none or has another placeholder."""
    try:
        words = [word.format(shards=shards) for word in shlex.split(text)]
    except (ValueError, LookupError, AttributeError):
        words = []
    if not words:
        raise ValueError(
            "expected a command with no placeholder but {shards}, such as 'mpiexec -n {shards}', "
            f"found {text!r}"
        )
    return words


def found(program: str, python: str) -> str:
    """Return where a program is: on PATH, else beside Python (an environment need not be activated)."""
    return shutil.which(program) or shutil.which(program, path=str(Path(python).parent)) or program


def launcher_settings() -> dict[str, str]:
    """Return the variables that MPI and Slurm are set up by, but for tokens: candidates may see them."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_SETTINGS) and name not in _SECRETS
    }


def reason(said: Iterable[str]) -> str:
    """Return what a rank said of its end, else what the launcher said last."""
    lines = [line.strip() for line in said if line.strip()]
    own = [text for line in lines for _, marked, text in (line.partition(f"{RANKS}: "),) if marked]
    return own[-1] if own else " ".join(lines[-_TOLD:]) or "no output"
