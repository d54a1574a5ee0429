"""What a person sees on standard error while a run works: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING

from sharp.config import to_plain
from sharp.document import clean
from sharp.evaluation import Evaluation, Target
from sharp.llm import ChatReply
from sharp.runs.effects import ProgressEvent
from sharp.runs.manifest import search_steps
from sharp.runs.plan import context_plan
from sharp.tournament import Selection, Tournament, best_first, distinct, not_read_in_full

if TYPE_CHECKING:
    from rich.live import Live

    from sharp.runs.directory import RunDirectory


@contextmanager
def progress_view(
    run: RunDirectory | None = None, say: Callable[[str], None] | None = None
) -> Iterator[ProgressView]:
    """Give a view that is told about progress, and hears warnings of the library; clean up the terminal at the end.

    Lines go to `say`, or else to standard error.
    """
    view = ProgressView(run, say)
    with capture_warnings(view):
        yield view


@contextmanager
def capture_warnings(view: ProgressView) -> Iterator[None]:
    """Let a view hear warnings of the library, and close it at the end."""
    warnings, log = logging.Handler(logging.WARNING), logging.getLogger("sharp")
    warnings.emit = lambda record: view.on_warning(record.getMessage())  # type: ignore[method-assign]
    log.addHandler(warnings)
    try:
        yield
    finally:
        log.removeHandler(warnings)
        view.close()


class ProgressView:
    """Prints what is worth a line, and keeps one live line of counters at the bottom of a terminal."""

    def __init__(self, run: RunDirectory | None, say: Callable[[str], None] | None = None) -> None:
        self._say, self._run = say, run
        self._live = _live() if say is None else None
        self._start = time.monotonic()
        self._open: dict[str, float] = {}
        self._calls = self._tokens = self._runs = 0
        self._written: dict[str, None] = {}
        self._wanted = 0
        self._last_data = 0.0
        self._target: Target = "data" if run is None else run.config.target
        self._function = "" if run is None else run.problem.interface.function
        if run is not None:
            first = {"funsearch": run.config.funsearch.initial, "aide": 0}
            first_ones = first.get(run.config.method, run.config.genesis.candidates)
            # How many programs the method writes, not counting those of judges and repairs.
            self._wanted = first_ones + search_steps(to_plain(run.config))
            self._line(f"{run.problem.title}: {run.config.method}, run directory {run.path}")
            self._tell_context()

    def on_data(self, done: int, total: int, message: str) -> None:
        """Report work on reference data: at most a line every five seconds where lines are kept."""
        now = time.monotonic()
        text = f"data: {message} ({done}/{total})"
        if self._live is not None:
            self._status(text)
        elif done in (0, total) or now - self._last_data > 5:
            self._last_data = now
            self._line(text)

    def on_effect(self, progress: ProgressEvent) -> None:
        """Report one step of a run."""
        if progress.phase == "asked":
            self._open[progress.path] = time.monotonic()
        elif progress.phase == "failed":
            self.on_warning(progress.note)
        elif progress.phase == "answered":
            self._open.pop(progress.path, None)
            self._count(progress)
        elif isinstance(progress.reply, Tournament):
            self._barrier(progress.path, progress.reply)
        if self._live is not None:
            self._status(self._counters())

    def on_warning(self, sentence: str) -> None:
        """Report something that the user should know."""
        self._line(f"warning: {sentence}")

    def close(self) -> None:
        """Clear the live line."""
        if self._live is not None:
            self._live.stop()

    def _count(self, progress: ProgressEvent) -> None:
        if isinstance(progress.reply, ChatReply):
            self._calls += 1
            self._tokens += progress.reply.usage.prompt + progress.reply.usage.completion
            if progress.path.startswith(("genesis/", "search/")):
                self._written[progress.path.split("/")[1]] = None
        elif isinstance(progress.reply, Evaluation):
            self._runs += 1
            verb = "known" if progress.reply.environment.get("cached") else "ran"
            self._line(f"{verb} {progress.path}: {_outcome(progress.reply, self._target)}")

    def _barrier(self, name: str, state: Tournament) -> None:
        if name == "analysis" and state.analysis is not None:
            self._line(f"analysis: strategy {state.analysis.strategy or 'left open'}")
        elif name == "genesis":
            number, different = (
                len(state.candidates),
                len(distinct(state.candidates.values(), self._function)),
            )
            written = f"{number} programs{f' ({different} distinct)' if different < number else ''}"
            self._line(f"genesis: {written}, {len(state.discarded)} unusable answers")
            for reason, times in Counter(state.discarded.values()).items():
                self._line(f"    {times} x {reason}")
            self._tell_context([candidate.code for candidate in state.candidates.values()])
        elif name == "smoke":
            passed = sum(run.evaluation.ok for run in state.smoke.values())
            self._line(f"smoke: {passed} of {len(state.smoke)} programs passed their short run")
        elif name == "best-of-n":
            self._line(f"{name}: {len(best_first(state))} programs ran; {_best_so_far(state)}")
        elif name.partition("/")[0] == "search":
            self._line(
                f"search: {sum(step.move != 'reset' for step in state.search)} steps; {_best_so_far(state)}"
            )
        elif name.endswith("/selection"):
            self._selection(name, [s for s in state.selections if name.startswith(f"cycle-{s.cycle}/")])
        elif "/round-" in name and state.saturations:
            last = state.saturations[-1]
            self._line(f"{name}: best so far {last.best_by_evaluation:.3e} ({last.reason})")
        elif name == "finalize" and state.best is not None:
            opened = "nothing was run" if state.test is None else "test data opened once"
            self._line(f"winner {state.best}; {opened}")

    def _selection(self, name: str, selections: Sequence[Selection]) -> None:
        self._line(f"{name}: nominees {', '.join(selection.nominee for selection in selections)}")
        for selection in selections:
            if not_read := not_read_in_full(selection):
                self._line(
                    f"{name}: judge {selection.judge} read {len(selection.shown)} programs; {not_read}"
                )

    def _tell_context(self, codes: Sequence[str] = ()) -> None:
        if self._run is not None:
            for line in context_plan(self._run.config, self._run.cards, codes):
                self._line(line)

    def _counters(self) -> str:
        busy = ", ".join(list(self._open)[:3]) + (" …" if len(self._open) > 3 else "")
        number = len(self._written)
        written = f"{number}/{self._wanted} programs, " if number < self._wanted else ""
        elapsed = time.monotonic() - self._start
        return f"{elapsed:5.0f} s  {written}{self._calls} calls, {self._tokens} tokens, {self._runs} runs  [{busy}]"

    def _line(self, text: str) -> None:
        if self._say is not None:
            self._say(text)
        elif self._live is None:
            sys.stderr.write(f"{clean(text)}\n")
            sys.stderr.flush()
        else:
            # Messages of programs are among these lines: no control character of theirs reaches the terminal.
            self._live.console.out(clean(text), highlight=False)

    def _status(self, text: str) -> None:
        from rich.text import Text

        if self._live is not None:
            self._live.update(Text(clean(text), no_wrap=True, overflow="ellipsis"), refresh=True)


def _outcome(evaluation: Evaluation, target: Target) -> str:
    """Return what came of a run of a program, the error against the target first."""
    if evaluation.failure is not None:
        return f"{evaluation.failure.kind}: {evaluation.failure.message}"
    if evaluation.convergence is not None:
        order = evaluation.convergence.order
        return "no order of accuracy" if order is None else f"order of accuracy {order:.2f}"
    assert evaluation.scores is not None
    scores = evaluation.scores
    errors = [f"error {scores.nrmse:.3e} against the data"] if scores.nrmse is not None else []
    if scores.verification is not None:
        errors = ["no residual" if scores.residual is None else f"residual {scores.residual:.3e}"]
    truth = evaluation.scores.nrmse_reference
    if truth is not None and isfinite(truth):
        errors.append(f"error {truth:.3e} against the reference")
    text = ", ".join(errors if target == "data" else errors[::-1])
    time = evaluation.steady_time_s or evaluation.run_time_s
    return text + (f", {time:.2f} s" if time is not None else "")


def _best_so_far(state: Tournament) -> str:
    ranked = best_first(state)
    if not ranked:
        return "none with a result so far"
    best = state.execution_of(ranked[0])
    assert best is not None
    return f"best so far {best.candidate}: {best.metric:.3e}"


def _live() -> Live | None:
    """Return a line that stays at the bottom of the terminal, None where standard error is none."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, emoji=False)
    live = Live(
        console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
    )
    live.start()
    return live
