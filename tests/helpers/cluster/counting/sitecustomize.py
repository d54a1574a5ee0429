"""Counts, in every process that has this folder in PYTHONPATH, what is paid for: a line in COUNTING_LEDGER at its end.

Evaluations first wait at the folder COUNTING_GATE, if there is one: until it holds a file `open`, or a `permit`, which
one of them takes away. Nobody is waited for as long as in earnest.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

LEDGER = os.environ.get("COUNTING_LEDGER")
GATE = os.environ.get("COUNTING_GATE")
QUICK = {"steer_s": 0.3, "ask_s": 1.0, "ask_most_s": 2.0, "beat_s": 1.0, "grace_s": 8.0, "full_s": 2.0}


def count(what: str) -> None:
    assert LEDGER is not None
    descriptor = os.open(LEDGER, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{what}\n".encode())
    os.close(descriptor)


def chats(module: Any) -> None:
    complete = module.RuleBasedBackend.complete

    async def counted(self: Any, request: Any) -> Any:
        reply = await complete(self, request)
        count(f"chat {request.seed} {sha256(repr(request).encode()).hexdigest()}")
        return reply

    module.RuleBasedBackend.complete = counted


async def pass_gate(gate: Path) -> None:
    while not (gate / "open").exists():
        with suppress(FileNotFoundError):
            (gate / "permit").unlink()
            return
        await asyncio.sleep(0.1)


def evaluations(module: Any) -> None:
    evaluate = module.WorkerPool.evaluate

    async def counted(self: Any, folder: Any, request: Any) -> None:
        # The look at what programs find there comes before all else, and is none of those that tests wait for.
        if GATE is not None and "Tells what programs find here" not in request.code:
            await pass_gate(Path(GATE))
        await evaluate(self, folder, request)
        count(f"evaluate {folder.name}")

    module.WorkerPool.evaluate = counted


def patience(module: Any) -> None:
    fields = module.DispatchTimeouts.__dataclass_fields__
    defaults = tuple(QUICK.get(name, field.default) for name, field in fields.items())
    module.DispatchTimeouts.__init__.__defaults__ = defaults


CHANGES: dict[str, Callable[[Any], None]] = {
    "sharp.rule_based.backend": chats,
    "sharp.evaluation.worker_pool": evaluations,
    "hpc.queue.arrays": patience,
}


class Changed(MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name not in CHANGES:
            return None
        spec = PathFinder.find_spec(name, path, target)
        load = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            load(module)
            CHANGES[name](module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if LEDGER is not None:
    sys.meta_path.insert(0, Changed())
