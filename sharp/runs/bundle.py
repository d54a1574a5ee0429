"""A run as one file, which can be kept, cited, and replayed on another machine.

    bundle.json     format, what made the run and the bundle, the data set's label, the hash of every file
    run/            the run's record, checkpoints, report and solver, without inputs and outputs of evaluations
    source/         the software: its code, prompts, model cards and problems

The data themselves stay where they are: their label holds their hash, and a replay needs none.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import get_args

from hpc.errors import RunDirectoryError
from hpc.files import translate_os_errors, write_atomic
from sharp.reference import ProgressCallback
from sharp.resources import Kind, resource_dirs
from sharp.runs.directory import PRIOR, RunDirectory
from sharp.runs.provenance import SOURCE, provenance

FORMAT = 1
_CONTENTS = "bundle.json"
_OF_A_RUN = (
    "run.yaml",
    "problem.yaml",
    PRIOR,
    "journal*.jsonl",
    "checkpoints/**/*",
    "report.*",
    "solver/**/*",
)
_OF_A_CHECKOUT = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE")


def write_bundle(run: RunDirectory, file: Path, progress: ProgressCallback = lambda *_: None) -> Path:
    """Write a run's bundle (`.tar.gz`) and return its path; raises RunDirectoryError where it cannot be written.

    `progress` is told how many of all kilobytes are packed.
    """
    with translate_os_errors(file):
        contents = {name: path.read_bytes() for name, path in _files(run)}
    packed_kb, total_kb = 0.0, sum(map(len, contents.values())) / 1000
    facts = {
        "format": FORMAT,
        "run": run.path.resolve().name,
        "data": run.manifest["data"],
        "made_by": run.manifest.get("provenance"),
        "bundled_by": provenance(),
        "files": {name: sha256(data).hexdigest() for name, data in contents.items()},
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        _add(archive, _CONTENTS, json.dumps(facts, indent=1).encode())
        for name, data in contents.items():
            progress(round(packed_kb), round(total_kb), f"packing {run.path}, kB")
            _add(archive, name, data)
            packed_kb += len(data) / 1000
    write_atomic(file, packed.getvalue())
    return file


def open_bundle(file: Path, folder: Path) -> Path:
    """Unpack a bundle into an existing folder and return its run directory.

    Raises RunDirectoryError for what is no bundle, or one whose files are not those that it was made of.
    """
    try:
        with tarfile.open(file, "r:gz") as archive:
            archive.extractall(folder, filter="data")
        facts = json.loads((folder / _CONTENTS).read_bytes())
    except (OSError, EOFError, tarfile.TarError, ValueError) as error:
        raise RunDirectoryError(f"{file} is no bundle of a run, or it is damaged: {error}") from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise RunDirectoryError(f"{file}: expected a bundle of format {FORMAT}")
    damaged = [name for name, digest in facts["files"].items() if _hash(folder / name) != digest]
    if damaged:
        raise RunDirectoryError(f"{file}: not as it was bundled: {', '.join(damaged[:5])}")
    return folder / "run"


def _files(run: RunDirectory) -> Iterator[tuple[str, Path]]:
    """Yield every file of a bundle with its name there."""
    for pattern in _OF_A_RUN:
        for path in sorted(run.path.glob(pattern)):
            if path.is_file():
                yield f"run/{path.relative_to(run.path).as_posix()}", path
    for room in ("hpc", "sharp"):
        yield from _tree(SOURCE / room, f"source/{room}")
    for kind in get_args(Kind):
        # The last folder is the software's own; a checkout has it beside the packages, an installation within them.
        shipped = resource_dirs(kind)[-1]
        if shipped.parent == SOURCE:
            yield from _tree(shipped, f"source/{kind}")
    for name in _OF_A_CHECKOUT:
        if (SOURCE / name).is_file():
            yield f"source/{name}", SOURCE / name


def _tree(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"{name}/{path.relative_to(folder).as_posix()}", path


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


def _hash(path: Path) -> str | None:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else None
