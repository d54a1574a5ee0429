"""The programs: their code and changes, what they are made of, how they failed, and what was measured of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from statistics import median_low
from typing import Any

from sharp.document import (
    MISSING,
    Block,
    Bullets,
    Code,
    Details,
    ModelText,
    Paragraph,
    Section,
    Table,
    count_text,
    duration_text,
    error_text,
    number_text,
    plural,
    share_text,
)
from sharp.evaluation import (
    FAILURE_KINDS,
    CandidateFailure,
    Convergence,
    Evaluation,
    libraries_imported,
    library_shares,
    line_counts,
)
from sharp.llm import STRATEGIES
from sharp.reference import all_metrics
from sharp.report.report_data import ReportData
from sharp.tournament import Candidate

_ORDER_EXPLAINED = (
    "Measured on smooth solutions on nested grids, in 64-bit mode. The distance is that from the solution on the next "
    "finer grid, relative, in the 2-norm. The order is the power of the spacing with which distances fall, from three "
    "grids at a time; it is stated only where the two finest triplets agree and the solutions approach the true one. "
    "Where a solution has shocks or a coefficient jumps, the error falls more slowly."
)


def programs(evidence: ReportData) -> Section:
    """Return the winner's code and the nominees' code."""
    blocks: tuple[Block, ...] = tuple(_whole(evidence)) or (Paragraph("There is no winner."),)
    return Section("programs", "Whole programs", blocks)


def _whole(evidence: ReportData) -> Iterator[Details]:
    winner, state = evidence.winner, evidence.state
    if winner is not None:
        yield Details(f"{winner.id}, the winner: whole program", (Code(winner.code),))
    for name in dict.fromkeys(selection.nominee for selection in state.selections):
        candidate = state.candidates[name]
        if candidate.origin == "genesis" and candidate is not winner:
            blocks = (*explanation(evidence, candidate), Code(candidate.code))
            yield Details(f"{name}, nominated as written: whole program", blocks)


def explanation(evidence: ReportData, candidate: Candidate) -> Iterator[Block]:
    """Yield what a program's author said of it, if anything."""
    if candidate.explanation:
        yield ModelText(candidate.explanation, evidence.author(candidate.author))


def measured(evidence: ReportData) -> Section:
    """Return what the feedback metrics said of each program that was run, with what each of them is."""
    title = "Feedback measures"
    runs = [(run.candidate, run.evaluation.scores) for run in evidence.validations if run.evaluation.scores]
    names = tuple(dict.fromkeys(name for _, scores in runs for name in scores.measures))
    if not names:
        kinds = " and ".join(evidence.run.config.feedback.metrics)
        readers = "Judges" if evidence.judged else "Models"
        return Section("measures", title, (Paragraph(f"{readers} were told of {kinds} alone."),))
    known = all_metrics()
    titles = tuple(known[name].title if name in known else name for name in names)
    rows = tuple(
        (program, *(error_text(scores.measures.get(name)) for name in names)) for program, scores in runs
    )
    explained = (f"{known[name].title}: {known[name].description}" for name in names if name in known)
    return Section(
        "measures", title, (Table(("program", *titles), rows, numbers=titles), Bullets(tuple(explained)))
    )


def failures(evidence: ReportData) -> Section:
    """Return the failures of programs by class, with the first message of each."""
    found: dict[str, list[tuple[str, CandidateFailure]]] = defaultdict(list)
    short = [run for run in evidence.state.smoke.values() if run not in evidence.state.executions]
    for execution in (*short, *evidence.state.executions):
        failure = execution.evaluation.failure
        if failure is not None and execution.reused_from is None:
            found[failure.kind].append((execution.candidate, failure))
    rows = []
    for kind in filter(found.__contains__, FAILURE_KINDS):
        names = ", ".join(dict.fromkeys(name for name, _ in found[kind]))
        rows.append((kind, str(len(found[kind])), names, found[kind][0][1].message))
    block: Block = Paragraph("No program failed." if evidence.state.executions else "No program was run.")
    if rows:
        block = Table(("class", "runs", "programs", "first message"), tuple(rows), ("runs",))
    return Section("failures", "Failures by class", (block,))


def second_scoring(evidence: ReportData) -> Section:
    """Return the finalists' scores as written beside those in 64-bit mode."""
    title, precise = "The finalists in 64-bit mode", evidence.state.x64
    if not precise:
        return Section("x64", title, (Paragraph(_no_second_scoring(evidence)),))
    errors = ("error", "against reference", "residual", "largest error", "run time")
    rows: list[tuple[str, ...]] = []
    for name, evaluation in precise.items():
        written = evidence.runs[name]
        if written.split == "validation":
            rows.append((name, "as written", *_scored(written.evaluation)))
        rows.append((name, "JAX in 64-bit mode", *_scored(evaluation)))
    who = "The winner and each judge's best" if evidence.judged else "The winner"
    explained = f"{who}, on validation data. A large difference means that rounding decides the error."
    table = Table(("program", "precision", *errors, "dtype"), tuple(rows), errors)
    return Section("x64", title, (Paragraph(explained), table))


def _scored(evaluation: Evaluation) -> tuple[str, ...]:
    scores, time = evaluation.scores, duration_text(evaluation.run_time_s)
    if scores is None:
        kind = evaluation.failure.kind if evaluation.failure else MISSING
        return f"failed: {kind}", MISSING, MISSING, MISSING, time, MISSING
    errors = (scores.nrmse, scores.nrmse_reference, scores.residual, scores.max_error)
    return (*map(error_text, errors), time, evaluation.dtype or MISSING)


def _no_second_scoring(evidence: ReportData) -> str:
    options = evidence.run.config.evaluation
    if options.x64 is not None:
        return f"64-bit mode was {'on' if options.x64 else 'off'} for the whole run by its configuration."
    if not options.x64_check:
        return "The configuration asks for no second scoring."
    return "There is no winner to score a second time." if evidence.finished else "Not reached."


def order(evidence: ReportData) -> Section:
    """Return the winner's order of accuracy with what it was read from, or why there is none."""
    effect, blocks = evidence.effect("finalize/convergence"), list[Block]()
    if effect is None:
        blocks = [Paragraph(_unmeasured(evidence))]
    else:
        study = Evaluation.from_json(effect.reply)
        if study.convergence is None:
            reason = f" ({study.failure.kind}: {study.failure.message})" if study.failure else ""
            blocks = [Paragraph(f"The program failed on smooth solutions{reason}.")]
        else:
            blocks = [*_convergence(study.convergence), Paragraph(_ORDER_EXPLAINED)]
    return Section("order", "Order of accuracy", tuple(blocks))


def _unmeasured(evidence: ReportData) -> str:
    from sharp.reference import has_smooth_inputs

    problem = evidence.run.problem
    if has_smooth_inputs(problem):
        return "It was not measured."
    return (
        f"It was not measured: no smooth solutions are known for the family {problem.family} on a grid of "
        f"{problem.grid.kind}."
    )


def _convergence(found: Convergence) -> Iterator[Block]:
    if found.order is None:
        yield Paragraph(f"No order can be stated: {found.note}.")
    else:
        yield Paragraph(
            f"The winner is of order {found.order:.2f}" + (f" ({found.note})." if found.note else ".")
        )
    columns = ("points per direction", "distance", "order of the triplet")
    rows = (
        (str(points), error_text(distance), MISSING if power is None else f"{power:.2f}")
        for points, distance, power in zip_longest(found.resolutions, found.differences, found.orders)
    )
    yield Table(columns, tuple(rows), columns)


def discarded(evidence: ReportData) -> Section:
    """Return the answers that held no usable program."""
    folded = tuple(
        Details(f"{name}: no usable program", (Code(reason, "text", wrap=True),))
        for name, reason in evidence.state.discarded.items()
    )
    return Section("discarded", "Discarded answers", folded or (Paragraph("None."),))


def shares(evidence: ReportData) -> Section:
    """Return strategies, libraries, lines and time steps of the winner and of all programs (paper section 4.2)."""
    title, programs = "Strategies, libraries, lines and steps", tuple(evidence.state.candidates.values())
    if not programs:
        return Section("shares", title, (Paragraph("There are no programs yet."),))
    blocks = (_strategies(programs), *_libraries(evidence, programs), _sizes(evidence, programs))
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
    rows = []
    for name in sorted(imported):
        own = share_text(None if winner is None else winner.get(name, 0.0))
        mean = sum(called.get(name, 0.0) for called in calling) / len(calling) if calling else None
        rows.append((name, own, *_counted(imported[name], len(codes)), share_text(mean)))
    columns = (
        *("library", "winner's calls", "programs that import it"),
        *("share of programs", "mean share of calls"),
    )
    yield Table(columns, tuple(rows), columns[1:])
    yield Paragraph(
        "Calls are counted in the text of a program, for the library that the name leads to; jax.numpy and jax.scipy "
        f"are JAX. The mean is over the {plural(len(calling), 'program')} that call any of them."
    )


def _counted(count: int, of: int) -> tuple[str, str]:
    return count_text(count), share_text(count / of if of else None)


def _sizes(evidence: ReportData, programs: Sequence[Candidate]) -> Table:
    """Return what is counted of every program, and the time steps of those that printed them in their run."""
    found: dict[str, dict[str, Any]] = {}
    for program in programs:
        lines, run = line_counts(program.code), evidence.evaluation_of(program.id)
        found[program.id] = {
            "lines": lines.total,
            "lines of code": lines.code,
            "lines of comment": lines.comment,
            "internal dt": run.internal_dt if run else None,
            "internal steps": run.internal_steps if run else None,
        }
    rows = []
    for name in next(iter(found.values())):
        written = number_text if name == "internal dt" else count_text
        known = [value for each in found.values() if (value := each[name]) is not None]
        winner = found.get(evidence.state.best or "", {}).get(name)
        spread = [pick(known) if known else None for pick in (min, median_low, max)]
        rows.append((name, written(winner), count_text(len(known)), *map(written, spread)))
    columns = ("measure", "winner", "programs", "smallest", "median", "largest")
    caption = "Size and time steps; the latter as programs printed them"
    return Table(columns, tuple(rows), columns[1:], caption)
