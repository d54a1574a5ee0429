"""What a person sees on standard error while a sweep works: a line whenever a run begins or comes to rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sharp.report.text import error_text
from sharp.runs.directory import Run
from sharp.runs.effects import Progress
from sharp.runs.progress import ProgressView, hearing
from sharp.sweeps.plan import SweepPlan
from sharp.sweeps.row import Row


@contextmanager
def watching_sweep(plan: SweepPlan) -> Iterator[SweepView]:
    """Give a watcher of a sweep that also hears warnings of the library; clean up the terminal at the end."""
    view = SweepView(len(plan.cells), len(plan.cells) - len(plan.left))
    with hearing(view):
        yield view


class SweepView(ProgressView):
    """Prints a line for each run that begins or rests; on a terminal, below them, how many are at work."""

    def __init__(self, cells: int, finished: int) -> None:
        super().__init__(None)
        self._cells = cells
        self._finished = finished
        self._failed = 0
        self._at_work: dict[str, None] = {}

    def begun(self, cell: str, run: Run) -> None:
        """Report that a run begins, or goes on."""
        self._at_work[cell] = None
        donor = run.config.genesis.reuse
        takes = f", with answers of {donor.name}" if donor is not None else ""
        self._line(f"{cell}: {run.problem.title}{takes}")

    def effect(self, cell: str, progress: Progress) -> None:
        """Count one step of a run."""
        if progress.phase == "failed":
            self.on_warning(f"{cell}: {progress.note}")
        elif progress.phase == "answered":
            self._calls += progress.kind == "chat"
            self._runs += progress.kind == "evaluate"
        self._show()

    def rested(self, cell: str, row: Row) -> None:
        """Report how a run came to rest."""
        self._at_work.pop(cell, None)
        self._finished += row.state == "finished"
        self._failed += row.state == "failed"
        self._line(f"{cell}: {_outcome(row)} ({self._finished} of {self._cells} finished)")
        self._show()

    def data(self, done: int, total: int, message: str) -> None:
        """Report work on reference data."""
        self.on_data(done, total, message)

    def warning(self, sentence: str) -> None:
        """Report something that the user should know."""
        self.on_warning(sentence)

    def _show(self) -> None:
        if self._live:
            failed = f", {self._failed} failed" if self._failed else ""
            self._status(
                f"{self._finished} of {self._cells} cells finished{failed}, {len(self._at_work)} at work: "
                f"{self._calls} calls, {self._runs} runs of programs"
            )


def _outcome(row: Row) -> str:
    if row.state == "failed":
        return f"failed: {row.note}"
    if row.state == "unfinished":
        return "stopped"
    return row.note or f"finished, {row.winner}: error on test data {error_text(row.nrmse)}"
