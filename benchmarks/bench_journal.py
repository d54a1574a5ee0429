"""Cost of the run record: 100 candidates of 5 kB, 150 effects, 60 kB judge prompts.

    python benchmarks/bench_journal.py

prints medians of wall times in seconds (`time.perf_counter`), with zarr imported beforehand except where
said.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from hpc.journal import Journal, StateArray, latest_checkpoint, read_checkpoint, read_run

REPEATS = 5
Asked = tuple[str, dict[str, Any], dict[str, Any]]
STATUS = "import sys; from pathlib import Path; from hpc.journal.journal import read_run; read_run(Path(sys.argv[1]))"


def program(rng: random.Random) -> str:
    """Return about 5 kB of code-like text."""
    words = ("u", "dx", "dt", "flux", "jnp.roll", "return", "for k in range(n):\n    ", "(a + b)", "0.5 *")
    return " ".join(f"{rng.choice(words)}{rng.randrange(999)}" for _ in range(560))


def effects(rng: random.Random) -> list[Asked]:
    """Return path, request and reply of 100 generations and 50 judgements that each show twelve programs."""
    programs = [program(rng) for _ in range(100)]
    genesis = [
        (f"genesis/{k}", {"prompt": f"write {k}", "seed": k}, {"text": p}) for k, p in enumerate(programs)
    ]
    judged = []
    for k in range(50):
        shown = "\n".join(rng.sample(programs, 12))
        judged.append((f"judge/{k}", {"prompt": shown, "seed": k}, {"text": program(rng)}))
    return genesis + judged


def state(asked: list[Asked]) -> dict[str, StateArray]:
    """Return twenty columns: code, texts and numbers of the candidates, metrics by cycle, round and judge."""
    n = 100
    numbers = {f"candidates/x{k}": StateArray(np.random.default_rng(k).random(n)) for k in range(8)}
    texts = {f"candidates/t{k}": StateArray([f"c{i:03d}" for i in range(n)]) for k in range(8)}
    return {
        **numbers,
        **texts,
        "candidates/code": StateArray([reply["text"] for _, _, reply in asked[:n]]),
        "candidates/nrmse_per_sample": StateArray(np.random.default_rng(9).random((n, 100))),
        "rounds/metric": StateArray(np.full((3, 6, 3), np.nan), "nRMSE", ("cycle", "round", "judge")),
        "rounds/candidate": StateArray(np.zeros((3, 6, 3), np.int64)),
    }


def timed(call: Callable[[], Any]) -> float:
    """Return the median wall time of a call in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return median(times)


async def perform_all(journal: Journal, asked: list[Asked]) -> None:
    """Ask for every effect once."""
    for path, request, reply in asked:

        async def call(reply: dict[str, Any] = reply) -> dict[str, Any]:
            return reply

        await journal.perform("chat", path, request, call)


def measure(root: Path) -> dict[str, float]:
    """Return the median times by what was measured."""
    asked = effects(random.Random(0))
    columns = state(asked)
    run_dir = root / "run"
    result: dict[str, float] = {}
    with Journal.open(run_dir) as journal:
        start = time.perf_counter()
        asyncio.run(perform_all(journal, asked))
        result["record one effect"] = (time.perf_counter() - start) / len(asked)
        journal.checkpoint("first", columns)
        numbers = iter(range(100))
        result["write a checkpoint"] = timed(lambda: journal.checkpoint(f"again-{next(numbers)}", columns))
    with Journal.open(run_dir) as journal:
        start = time.perf_counter()
        asyncio.run(perform_all(journal, asked))
        result["answer one effect on resume"] = (time.perf_counter() - start) / len(asked)
        result["pass a known barrier"] = timed(lambda: journal.checkpoint("first", columns))
    result["open the run (verifies the checkpoint)"] = timed(lambda: Journal.open(run_dir).close())
    newest = latest_checkpoint(run_dir / "checkpoints")
    assert newest is not None
    result["read and verify a checkpoint"] = timed(lambda: read_checkpoint(newest))
    result["read the run (status)"] = timed(lambda: read_run(run_dir))
    command = [sys.executable, "-c", STATUS, str(run_dir)]
    result["the same in a new process, imports included"] = timed(lambda: subprocess.run(command, check=True))
    sizes = (run_dir / "journal.jsonl").stat().st_size, newest.stat().st_size
    print(f"journal {sizes[0] / 1e6:.1f} MB, checkpoint {sizes[1] / 1e6:.2f} MB (1 file)\n")
    return result


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as root:
        for what, seconds in measure(Path(root)).items():
            print(f"{what:45} {seconds:8.4f} s")


if __name__ == "__main__":
    main()
