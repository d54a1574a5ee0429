"""The rows of any experiment by its directory."""

from __future__ import annotations

from pathlib import Path

from pandas import DataFrame

from hpc.errors import RunDirectoryError
from sharp.experiments.agent_benchmark.benchmark_report import trial_frame
from sharp.experiments.agent_benchmark.trials import TrialResult, result_of
from sharp.experiments.comparison import compare
from sharp.experiments.sweeps.folder import is_sweep
from sharp.experiments.sweeps.sweep_log import read_record
from sharp.experiments.sweeps.sweep_report import sweep_rows


def load_rows(folder: str | Path) -> DataFrame:
    """Return the rows of a sweep (one a cell), of an agent benchmark (one a trial) or of a single run.

    It need not be finished. Only records are read. Raises `RunDirectoryError` for a directory of something else.
    """
    path = Path(folder)
    if is_sweep(path):
        record = read_record(path)
        results = [result_of(row.trial) for row in record.rows.values() if row.trial]
        solved = [result for result in results if isinstance(result, TrialResult)]
        return trial_frame(solved) if results else sweep_rows(record)
    if (path / "run.yaml").is_file():
        return compare([path]).rows
    raise RunDirectoryError(f"{path} holds neither a sweep nor a run")
