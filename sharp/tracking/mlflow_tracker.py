"""Runs in MLflow: where `MLFLOW_TRACKING_URI` says, a run of the experiment `MLFLOW_EXPERIMENT_NAME`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hpc.journal import EffectRecord
from sharp.tracking.tracker import TrackedRun, ended_at, metrics_of

EXPERIMENT = "pde-sharp"
_LONGEST = 500  # of a parameter's value, in MLflow


class MlflowTracker:
    """Parameters are the keys of the configuration; metrics stand at the number of the effect, and at its time."""

    def __init__(self) -> None:
        try:
            from mlflow import MlflowClient
        except ImportError:
            raise ImportError("install it with: pip install 'pde-sharp[mlflow]'") from None
        self._client = MlflowClient()
        self._run = ""

    def begin(self, run: TrackedRun, known: str | None) -> str:
        """Create a run of MLflow, or open it again; return its id."""
        if known is not None:
            self._run = known
            self._client.update_run(known, status="RUNNING")
            return known
        from mlflow.entities import Param

        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
        experiment = self._client.get_experiment_by_name(name)
        number = experiment.experiment_id if experiment else self._client.create_experiment(name)
        made = self._client.create_run(number, run_name=run.name, tags={"sharp.run": str(run.path)})
        self._run = str(made.info.run_id)
        params = [Param(key, str(value)[:_LONGEST]) for key, value in run.config.items()]
        for start in range(0, len(params), 100):
            self._client.log_batch(self._run, params=params[start : start + 100])
        return self._run

    def send(self, effect: EffectRecord) -> None:
        """Log the numbers of an effect."""
        from mlflow.entities import Metric

        when = round(1000 * ended_at(effect))
        metrics = [Metric(name, value, when, effect.seq) for name, value in metrics_of(effect)]
        self._client.log_batch(self._run, metrics=metrics)

    def end(self, files: Sequence[Path], *, finished: bool) -> None:
        """Keep the files of a finished run as artifacts; one that is not finished stays open."""
        for path in files:
            self._client.log_artifact(self._run, str(path))
        if finished:
            self._client.set_terminated(self._run)
