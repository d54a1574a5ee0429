"""Checks of what a node needs to serve models: the server's program, and the files of models."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hpc.doctor.findings import Finding, failure, good, warning

# vLLM imports PyTorch before it says anything; from a cold shared file system that takes minutes.
_VERSION_S = 300
_TENSORS = ("*.safetensors", "*.bin", "*.gguf")


def version_command(command: str) -> list[str]:
    """Return the command line that asks a server's program for its version: `vllm serve` becomes `vllm --version`."""
    words = shlex.split(command)
    return [*(words[:-1] if len(words) > 1 and words[-1] == "serve" else words), "--version"]


def check_serving(command: str | None) -> Iterator[Finding]:
    """Let the program that serves models say its version, in the environment of this process."""
    if command is None:
        return
    argv = version_command(command)
    remedy = (
        "Correct `serving.command` in the cluster profile (vLLM in an environment of its own: /path/to/vllm serve), or "
        "load what it needs in `setup` of the role server."
    )
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_VERSION_S, check=False)
    except subprocess.TimeoutExpired:
        slow = f"{shlex.join(argv)} gave no answer within {_VERSION_S} s"
        yield warning("serving", slow, "Put the program's environment on a faster file system.")
        return
    except OSError as error:
        yield failure("serving", f"{argv[0]} cannot be run: {error.strerror}", remedy)
        return
    said = _last_line(done.stdout) or _last_line(done.stderr) or "it said nothing"
    if done.returncode == 0:
        yield good("serving", f"{shlex.join(argv)}: {said}")
    else:
        yield failure("serving", f"{shlex.join(argv)} ended with {done.returncode}: {said}", remedy)


def check_weights(weights: Mapping[str, str]) -> Iterator[Finding]:
    """Look for the files of models, by path, and whether they can be read here; nothing is loaded."""
    for card, name in weights.items():
        folder = Path(name)
        wrong = _fault_of(folder)
        if wrong:
            remedy = f"Correct `weights.{card}` in the cluster profile, or download the model there."
            yield failure("weights", f"{card}: {wrong}", remedy)
        else:
            yield good("weights", f"{card}: {folder}")


def _fault_of(folder: Path) -> str:
    """Return what is wrong with a model's folder, nothing where it looks whole."""
    if not os.access(folder, os.R_OK | os.X_OK) or not folder.is_dir():
        return f"{folder} is no folder that can be read here"
    tensors = [file for pattern in _TENSORS for file in folder.glob(pattern)]
    if not (folder / "config.json").is_file() or not tensors:
        return f"{folder} lacks config.json or its tensors"
    try:
        json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError) as error:
        return f"{folder / 'config.json'} cannot be read: {error}"
    return _unreadable(tensors)


def _unreadable(files: Sequence[Path]) -> str:
    # A link into a cache of the hub may lead nowhere.
    bad = [file for file in files if not os.access(file, os.R_OK)]
    return f"{bad[0]} cannot be read ({len(bad)} of {len(files)} files)" if bad else ""


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
