"""Evaluating through the cache: what is known is put into the run as if it had been measured there."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hpc.files import translate_os_errors
from hpc.sandbox import SandboxPolicy
from sharp.evaluation.cache import CacheEntry, EvaluationCache, entry_key, machine_class
from sharp.evaluation.protocol import Evaluation, EvaluationRequest, Evaluator
from sharp.evaluation.task_folder import (
    EvaluationTask,
    file_state,
    read_picture,
    read_result,
    request_file,
    result_file,
    task_folder,
)
from sharp.reference.hdf5 import content_hash


class CachedEvaluator:
    """An evaluator that asks `cache` first and keeps there what `inner` measures, failures of programs included.

    `task` gives the task that `inner` makes of a request, `policy` says how its sandbox is chosen, and `machine` what
    tells the machines that run programs from others (None: this machine does). What comes from
    the cache has `cached` and `measured_at` in its environment, and its files are in `RUN/tasks` as after a run. Equal
    requests at the same time are run once. With `refresh`, entries older than this evaluator are replaced.
    """

    def __init__(
        self,
        inner: Evaluator,
        cache: EvaluationCache,
        *,
        run_dir: Path,
        task: Callable[[EvaluationRequest], EvaluationTask],
        policy: SandboxPolicy,
        machine: Mapping[str, Any] | None = None,
        refresh: bool = False,
    ) -> None:
        self._inner = inner
        self._cache = cache
        self._run_dir = run_dir
        self._task = task
        self._policy = policy
        self._own_machine = machine
        self._refresh = refresh
        self._measured: set[str] = set()
        self._turn: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Answer from the cache, or run and score; raises `InfrastructureError` when the machine failed."""
        task, folder = self._task(request), task_folder(self._run_dir, request)
        key = self._key(task)
        async with self._turn[key]:
            # What this run has measured itself, before it was cut off say, is its own and not from the cache.
            known = read_result(folder, task)
            if known is None and (entry := self._entry(key, request)) is not None:
                return _place(folder, task, entry)
            evaluation = known or await self._inner.evaluate(request)
            if not evaluation.environment.get("cached"):
                self._cache.put(key, CacheEntry.now(evaluation, read_picture(folder), request.code))
                self._measured.add(key)
        return evaluation

    @cached_property
    def _machine(self) -> dict[str, Any]:
        machine = machine_class() if self._own_machine is None else self._own_machine
        return {**machine, **asdict(self._policy), "image": _state(self._policy.image)}

    def _key(self, task: EvaluationTask) -> str:
        truth = task.dataset.truth_path
        known = content_hash(truth) if truth is not None else None
        return entry_key(task.request, task.samples, known, self._machine)

    def _entry(self, key: str, request: EvaluationRequest) -> CacheEntry | None:
        if self._refresh and key not in self._measured:
            return None
        entry = self._cache.get(key)
        return entry if entry is not None and entry.serves(request.code, self._policy.tier) else None


def _state(image: Path | None) -> list[str | int]:
    """Return what tells a sandbox image from others: its place, size and time of change."""
    if image is None:
        return []
    return [str(image), *(file_state(image) if image.is_file() else ())]


def _place(folder: Path, task: EvaluationTask, entry: CacheEntry) -> Evaluation:
    known = {**entry.evaluation.environment, "cached": True, "measured_at": entry.measured_at}
    evaluation = replace(entry.evaluation, environment=known)
    with translate_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # Not flushed: the journal keeps the evaluation, and a torn file shows.
        (folder / "request.json").write_bytes(request_file(task))
        (folder / "result.json").write_bytes(result_file(task, evaluation, entry.picture))
    return evaluation
