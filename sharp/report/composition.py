"""What the programs are made of: strategies, libraries, lines, and the time steps they take (paper section 4.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from statistics import median_low
from typing import Any

from sharp.document import Block, Paragraph, Section, Table
from sharp.document.text import count_text, number_text, plural, share_text
from sharp.evaluation.code import libraries_imported, library_shares, line_counts
from sharp.llm.replies import STRATEGIES
from sharp.report.report_data import ReportData
from sharp.tournament.state import Candidate


def shares(evidence: ReportData) -> Section:
    """Return strategies, libraries, lines and time steps of the winner and of all programs."""
    title, programs = "Strategies, libraries, lines and steps", tuple(evidence.state.candidates.values())
    if not programs:
        return Section("shares", title, (Paragraph("There are no programs yet."),))
    blocks: tuple[Block, ...] = (
        _strategies(programs),
        *_libraries(evidence, programs),
        _sizes(evidence, programs),
    )
    return Section("shares", title, blocks)


def _strategies(programs: Sequence[Candidate]) -> Table:
    originals = [program for program in programs if program.origin == "genesis"]
    later = [program for program in programs if program.origin != "genesis"]
    first, second = (Counter(program.strategy for program in group) for group in (originals, later))
    rows = tuple(
        (name, *_counted(first[name], len(originals)), *_counted(second[name], len(later)))
        for name in STRATEGIES
        if first[name] or second[name]
    )
    columns = ("strategy", "originals", "share", "later programs", "share of these")
    return Table(columns, rows, columns[1:])


def _libraries(evidence: ReportData, programs: Sequence[Candidate]) -> Iterator[Block]:
    codes = [program.code for program in programs]
    imported = Counter(name for code in codes for name in libraries_imported(code))
    if not imported:
        yield Paragraph("No program imports a numerical library.")
        return
    calling = [called for called in map(library_shares, codes) if called]
    winner = None if evidence.winner is None else library_shares(evidence.winner.code)
    rows = tuple(
        (
            name,
            share_text(None if winner is None else winner.get(name, 0.0)),
            *_counted(imported[name], len(codes)),
            share_text(sum(called.get(name, 0.0) for called in calling) / len(calling) if calling else None),
        )
        for name in sorted(imported)
    )
    columns = (
        "library",
        "winner's calls",
        "programs that import it",
        "share of programs",
        "mean share of calls",
    )
    yield Table(columns, rows, columns[1:])
    yield Paragraph(
        "Calls are counted in the text of a program, for the library that the name leads to; jax.numpy and jax.scipy "
        f"are JAX. The mean is over the {plural(len(calling), 'program')} that call any of them."
    )


def _sizes(evidence: ReportData, programs: Sequence[Candidate]) -> Table:
    """Return what is counted of every program, and the time steps of those that printed them in their run."""
    rows = []
    for name, measure, written in _MEASURES:
        found = {program.id: measure(evidence, program) for program in programs}
        known = [value for value in found.values() if value is not None]
        winner = found.get(evidence.state.best or "")
        spread = [pick(known) if known else None for pick in (min, median_low, max)]
        rows.append((name, written(winner), count_text(len(known)), *map(written, spread)))
    columns = ("measure", "winner", "programs", "smallest", "median", "largest")
    return Table(
        columns, tuple(rows), columns[1:], "Size and time steps; the latter as programs printed them"
    )


def _counted(count: int, of: int) -> tuple[str, str]:
    return count_text(count), share_text(count / of if of else None)


def _internal_dt(evidence: ReportData, program: Candidate) -> float | None:
    run = evidence.evaluation_of(program.id)
    return None if run is None else run.internal_dt


def _internal_steps(evidence: ReportData, program: Candidate) -> int | None:
    run = evidence.evaluation_of(program.id)
    return None if run is None else run.internal_steps


_MEASURES: tuple[tuple[str, Callable[[ReportData, Candidate], Any], Callable[[Any], str]], ...] = (
    ("lines", lambda _, program: line_counts(program.code).total, count_text),
    ("lines of code", lambda _, program: line_counts(program.code).code, count_text),
    ("lines of comment", lambda _, program: line_counts(program.code).comment, count_text),
    ("internal dt", _internal_dt, number_text),
    ("internal steps", _internal_steps, count_text),
)
