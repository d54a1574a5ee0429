"""What a tracker is: the one interface behind MLflow, Weights & Biases, OpenTelemetry, and others by entry points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

from hpc.journal import EffectRecord


@dataclass(frozen=True)
class TrackedRun:
    """A run as it is told to a tracker. `config` holds the keys of its configuration, dotted, that are set."""

    name: str
    path: Path
    problem: str
    method: str
    models: tuple[str, ...]
    config: Mapping[str, Any]


class Tracker(Protocol):
    """Where the course of a run is sent. Any method may raise: the run is not touched by that."""

    def begin(self, run: TrackedRun, known: str | None) -> str:
        """Begin, or go on with what an earlier process began; return the name to go on by."""

    def send(self, effect: EffectRecord) -> None:
        """Send one finished model call or program run: in order of completion, each once."""

    def end(self, files: Sequence[Path], *, finished: bool) -> None:
        """Send the files of a finished run; free what is held."""


def metrics_of(effect: EffectRecord) -> Iterator[tuple[str, float]]:
    """Yield the numbers of an effect: tokens and seconds of a model call, errors and time of a program run."""
    if effect.kind == "chat":
        usage = effect.reply["usage"]
        yield "call.seconds", effect.meta["seconds"]
        yield "call.prompt_tokens", usage["prompt"]
        yield "call.completion_tokens", usage["completion"]
        return
    scores = effect.reply.get("scores") or {}
    split = effect.request["split"]
    found = {name: scores.get(name) for name in ("nrmse", "nrmse_reference", "residual")}
    for name, value in {**found, "run_time_s": effect.reply.get("run_time_s")}.items():
        if value is not None and isfinite(value):
            yield f"{split}.{name}", value


def ended_at(effect: EffectRecord) -> float:
    """Return when an effect was finished, in seconds since 1970."""
    began: str = effect.meta["started"]
    return datetime.fromisoformat(began).timestamp() + float(effect.meta["seconds"])
