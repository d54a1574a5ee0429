"""The file in which a run keeps the digest of an earlier one, so that nothing outside the run is needed later."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from hpc.errors import RunDirectoryError
from hpc.files import write_atomic

NAME = "prior_run.md"


def keep_prior(run: Path, text: str) -> dict[str, Any]:
    """Write the digest into a run's directory, if there is one, and return what `run.yaml` says of it."""
    if not text:
        return {}
    write_atomic(run / NAME, text.encode())
    return {"prior": {"hash": _hash(text.encode())}}


def recorded_prior(run: Path, recorded: str) -> str:
    """Return the digest that a run was begun with; raises RunDirectoryError if it is not there or was changed."""
    try:
        content = (run / NAME).read_bytes()
    except OSError as error:
        raise RunDirectoryError(f"{run / NAME} cannot be read: {error.strerror}; restore it") from error
    if _hash(content) != recorded:
        raise RunDirectoryError(
            f"{run / NAME} was changed after the run began; restore it, or start a new run"
        )
    return content.decode()


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()
