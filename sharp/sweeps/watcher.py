"""Whoever watches a sweep at work."""

from __future__ import annotations

from typing import Protocol

from sharp.runs.directory import Run
from sharp.runs.effects import Progress
from sharp.sweeps.row import Row


class Watcher(Protocol):
    """Is told what happens in a sweep; from other threads, too, while data are made."""

    def begun(self, cell: str, run: Run) -> None:
        """Hear that a run begins, or goes on."""

    def effect(self, cell: str, progress: Progress) -> None:
        """Hear that a run has come a step further."""

    def rested(self, cell: str, row: Row) -> None:
        """Hear that a run has come to rest."""

    def data(self, done: int, total: int, message: str) -> None:
        """Hear that reference data are being made."""

    def warning(self, sentence: str) -> None:
        """Hear something that the user should know."""


class Nobody:
    """Watches nothing."""

    def begun(self, cell: str, run: Run) -> None:
        """Let it begin."""

    def effect(self, cell: str, progress: Progress) -> None:
        """Let it go on."""

    def rested(self, cell: str, row: Row) -> None:
        """Let it rest."""

    def data(self, done: int, total: int, message: str) -> None:
        """Let them be made."""

    def warning(self, sentence: str) -> None:
        """Let it be."""
