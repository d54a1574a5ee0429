"""Carrying a benchmark out: every course once, whatever interrupts it.

FOLDER/rows.jsonl                  the rows of all courses that have ended
FOLDER/courses/CASE/STYLE/…        the courses themselves (`sharp.agent.runs`), which go on where they were
FOLDER/references/                 computed references
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sharp.agentbench.cases import Case
from sharp.agentbench.course import blank_row, play
from sharp.agentbench.crew import Died, shared_out
from sharp.agentbench.matrix import Task
from sharp.agentbench.process import Accepted
from sharp.agentbench.rows import Check, Record, RecordWriter, Row
from sharp.agentbench.truth import Truth, truth_of

Say = Callable[[str], None]


@dataclass(frozen=True)
class Piece:
    """The courses of one case that are still to be played, and whether it is still to be checked."""

    case: Case
    tasks: tuple[Task, ...]
    check: bool


def carry_out(folder: Path, tasks: Sequence[Task], jobs: int, say: Say = lambda _: None) -> None:
    """Play all courses that have no row yet, or a failed one, in that many processes.

    Raises `RunLocked` where another process does so, and KeyboardInterrupt; everything stays resumable.
    """
    with RecordWriter(folder) as writer:
        for warning in writer.record.warnings:
            say(warning)
        left = pieces_of(tasks, writer.record)
        total, number = sum(len(piece.tasks) for piece in left), 0
        for found in _found(left, folder, jobs, writer.beat):
            writer.add(found)
            if isinstance(found, Row):
                number += 1
                say(f"[{number}/{total}] {row_in_words(found)}")


def pieces_of(tasks: Sequence[Task], record: Record) -> list[Piece]:
    """Return what is left to be done, case by case."""
    by_case: dict[str, list[Task]] = {}
    for task in tasks:
        by_case.setdefault(task.case.id, []).append(task)
    pieces = [
        Piece(
            of_case[0].case,
            tuple(task for task in of_case if task.key not in record.finished),
            of_case[0].case.problem.hash not in record.checks,
        )
        for of_case in by_case.values()
    ]
    return [piece for piece in pieces if piece.tasks or piece.check]


def _found(left: Sequence[Piece], folder: Path, jobs: int, beat: Callable[[], None]) -> Iterator[Row | Check]:
    """Yield all rows; what a dying process was at has failed, the rest of its case is left to another."""
    while left:
        again = []
        for found in shared_out(left, partial(_worked, folder), jobs, beat):
            if not isinstance(found, Died):
                yield found
                continue
            yield from _lost(found)
            again += _rest(found)
        left = again


def _lost(died: Died[Piece]) -> Iterator[Row]:
    tasks = died.piece.tasks[died.found : died.found + 1]
    for task in tasks:
        yield blank_row(task, f"its process ended with code {died.exitcode}")


def _rest(died: Died[Piece]) -> list[Piece]:
    tasks = died.piece.tasks[died.found + 1 :]
    return [Piece(died.piece.case, tasks, died.piece.check)] if tasks else []


def _worked(folder: Path, piece: Piece) -> Iterator[Row | Check]:
    """Play the courses of a case, and check its problem last."""
    if piece.tasks:
        yield from _played(folder, piece)
    if piece.check:
        yield check_of(piece.case)


def _played(folder: Path, piece: Piece) -> Iterator[Row]:
    try:
        truth: Truth = truth_of(piece.case, folder / "references")
    except Exception as error:  # noqa: BLE001 - a case that cannot be judged may not end the others
        for task in piece.tasks:
            yield blank_row(task, f"{type(error).__name__}: {error}")
        return
    accepted = Accepted(piece.case.problem)
    for task in piece.tasks:
        yield play(task, truth, accepted, folder)


def check_of(case: Case) -> Check:
    """Return what the deterministic check says of a case."""
    from sharp.problems.wellposed import concerns

    grave = [concern for concern in concerns(case.problem) if concern.verdict != "warn"]
    verdict = next((concern.verdict for concern in grave if concern.verdict == "refuse"), "ask")
    reason = "; ".join(concern.message for concern in grave)
    return Check(case.problem.hash, case.id, verdict if grave else "solve", reason)


def row_in_words(row: Row) -> str:
    """Return a row as a line of progress."""
    error = "no solution" if row.error is None else f"error {row.error:.1e}"
    verdict = "within tolerance" if row.solved else "not solved"
    reason = f" ({row.reason[:120]})" if row.ending == "failed" else ""
    return (
        f"{row.case}, {row.arm}: ends {row.ending}{reason}; {verdict}, {error}; "
        f"{row.calls} calls, {row.tokens} tokens, {row.seconds:.1f} s"
    )
