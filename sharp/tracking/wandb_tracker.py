"""Runs in Weights & Biases: as `WANDB_MODE`, `WANDB_PROJECT` and its other variables say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpc.journal import EffectRecord
from sharp.tracking.tracker import TrackedRun, metrics_of

PROJECT = "pde-sharp"


class WandbTracker:
    """The configuration is the run's; each effect is a step."""

    def __init__(self) -> None:
        try:
            import wandb
        except ImportError:
            raise ImportError("install it with: pip install 'pde-sharp[wandb]'") from None
        self._wandb = wandb
        wandb.setup(wandb.Settings(silent=True))
        self._run: Any = None

    def begin(self, run: TrackedRun, known: str | None) -> str:
        """Begin a run, or go on with it; return its id."""
        self._run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            id=known,
            resume="allow" if known else None,
            name=run.name,
            config=dict(run.config),
            dir=run.path / "tracking",
            settings=self._wandb.Settings(console="off", disable_git=True, silent=True),
        )
        return str(self._run.id)

    def send(self, effect: EffectRecord) -> None:
        """Log the numbers of an effect."""
        self._run.log(dict(metrics_of(effect)), step=effect.seq)

    def end(self, files: Sequence[Path], *, finished: bool) -> None:
        """Save the files, and close the run here."""
        for path in files:
            self._run.save(str(path), base_path=str(path.parent), policy="now")
        self._run.finish(exit_code=0 if finished else 1)
