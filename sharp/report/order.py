"""The winner's order of accuracy."""

from __future__ import annotations

from itertools import zip_longest

from sharp.document import Paragraph, Section, Table
from sharp.document.text import MISSING, error_text
from sharp.evaluation.protocol import Convergence, Evaluation
from sharp.report.report_data import ReportData

_TITLE = "Order of accuracy"
_EXPLAINED = (
    "Measured on smooth solutions on nested grids, in 64-bit mode. The distance is that from the solution on the next "
    "finer grid, relative, in the 2-norm. The order is the power of the spacing with which distances fall, from three "
    "grids at a time; it is stated only where the two finest triplets agree and the solutions approach the true one. "
    "Where a solution has shocks or a coefficient jumps, the error falls more slowly."
)


def order(evidence: ReportData) -> Section:
    """Return the order of the winner with what it was read from, or why there is none."""
    effect = evidence.effect("finalize/convergence")
    if effect is None:
        return Section("order", _TITLE, (Paragraph(_unmeasured(evidence)),))
    study = Evaluation.from_json(effect.reply)
    if study.convergence is None:
        reason = f" ({study.failure.kind}: {study.failure.message})" if study.failure else ""
        return Section("order", _TITLE, (Paragraph(f"The program failed on smooth solutions{reason}."),))
    sentence = Paragraph(_sentence(study.convergence))
    return Section("order", _TITLE, (sentence, _table(study.convergence), Paragraph(_EXPLAINED)))


def _unmeasured(evidence: ReportData) -> str:
    from sharp.reference.families import has_smooth_inputs  # loads scipy

    problem = evidence.run.problem
    if has_smooth_inputs(problem):
        return "It was not measured."
    return (
        f"It was not measured: no smooth solutions are known for the family {problem.family} on a grid of "
        f"{problem.grid.kind}."
    )


def _sentence(found: Convergence) -> str:
    if found.order is None:
        return f"No order can be stated: {found.note}."
    return f"The winner is of order {found.order:.2f}" + (f" ({found.note})." if found.note else ".")


def _table(found: Convergence) -> Table:
    columns = ("points per direction", "distance", "order of the triplet")
    rows = zip_longest(found.resolutions, found.differences, found.orders)
    texts = (
        (str(points), error_text(distance), MISSING if power is None else f"{power:.2f}")
        for points, distance, power in rows
    )
    return Table(columns, tuple(texts), columns)
