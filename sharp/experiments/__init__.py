"""Experiments: many runs, their rows as a pandas data frame, and the tables and figures that are made of them.

    from sharp.experiments import load_rows, run_sweep

    run_sweep("small", "sweeps/small")
    rows = load_rows("sweeps/small")                  # one row a cell; `describe_columns()` says what its columns mean
    rows.groupby("method")["nrmse"].median()

Modules are imported when something of theirs is used, so that nothing loads pandas before it makes a frame.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sharp.experiments.comparison import Comparison, compare, comparison_overview, publish_comparison
    from sharp.experiments.frame import describe_columns, read_rows
    from sharp.experiments.load import load_rows
    from sharp.experiments.publishing import ExperimentFiles
    from sharp.experiments.run_summary import RunSummary
    from sharp.experiments.studies.study_report import StudyPage, render_study
    from sharp.experiments.sweeps.runner import SweepOutcome, publish_again, run_sweep
    from sharp.experiments.sweeps.status import SweepStatus, view_sweep

__all__ = [
    "Comparison",
    "ExperimentFiles",
    "RunSummary",
    "StudyPage",
    "SweepOutcome",
    "SweepStatus",
    "compare",
    "comparison_overview",
    "describe_columns",
    "load_rows",
    "publish_again",
    "publish_comparison",
    "read_rows",
    "render_study",
    "run_sweep",
    "view_sweep",
]

_MODULES = {
    "comparison": ("Comparison", "compare", "comparison_overview", "publish_comparison"),
    "frame": ("describe_columns", "read_rows"),
    "load": ("load_rows",),
    "publishing": ("ExperimentFiles",),
    "run_summary": ("RunSummary",),
    "studies.study_report": ("StudyPage", "render_study"),
    "sweeps.runner": ("SweepOutcome", "publish_again", "run_sweep"),
    "sweeps.status": ("SweepStatus", "view_sweep"),
}


def __getattr__(name: str) -> Any:
    """Return a name of `__all__` from its module."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
