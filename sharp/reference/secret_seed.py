"""The secret seed of an installation: without it nobody can make its data again, and so look results up.

It is made once, lies in the data folder, and is shown to no program and in no prompt; files made with it bear a
fingerprint in its place.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from sharp.errors import DataError
from sharp.reference.hdf5 import data_home

VARIABLE = "SHARP_SECRET_SEED"
"""Environment variable that holds the seed in place of the file, for installations that share one."""

_BITS, _SHOWN = 128, 8


def secret_seed() -> int:
    """Return the seed, made first if there is none; raises `DataError` if it is unreadable or no whole number."""
    text = os.environ.get(VARIABLE) or _kept(data_home() / "secret-seed")
    if not text.strip().isdecimal():
        raise DataError(
            f"{VARIABLE} or {data_home() / 'secret-seed'}: expected a whole number, found something else"
        )
    return int(text)


def fingerprint(seed: int) -> str:
    """Return a few letters that tell a secret seed from others and do not reveal it."""
    return sha256(f"secret seed {seed}".encode()).hexdigest()[:_SHOWN]


def _kept(path: Path) -> str:
    """Return what a file holds; it appears complete, whoever of several makes it first."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:  # noqa: PTH123
            file.write(f"{secrets.randbits(_BITS)}\n")
        with suppress(FileExistsError):
            os.link(part, path)
        part.unlink()
    try:
        return path.read_text()
    except PermissionError:
        raise DataError(
            f"{path}: only its owner may read it; set {VARIABLE} to one seed for all who share this folder, or "
            "SHARP_DATA to a folder of your own"
        ) from None
