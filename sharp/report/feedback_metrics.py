"""What the feedback measures said of each program that was run, beside the errors of the other tables."""

from __future__ import annotations

from collections.abc import Iterator

from sharp.document import Bullets, Paragraph, Section, Table
from sharp.document.text import MISSING, error_text
from sharp.evaluation.protocol import Scores
from sharp.reference.feedback import all_metrics
from sharp.report.report_data import ReportData

_TITLE = "Feedback measures"


def measured(evidence: ReportData) -> Section:
    """Return a table of programs and measures, with what each measure is."""
    runs = [(run.candidate, run.evaluation.scores) for run in evidence.validations if run.evaluation.scores]
    names = tuple(dict.fromkeys(name for _, scores in runs for name in scores.measures))
    if not names:
        kinds = " and ".join(evidence.run.config.feedback.metrics)
        readers = "Judges" if evidence.judged else "Models"
        return Section("measures", _TITLE, (Paragraph(f"{readers} were told of {kinds} alone."),))
    rows = tuple((candidate, *_values(names, scores)) for candidate, scores in runs)
    table = Table(("program", *(_title(name) for name in names)), rows, numbers=tuple(map(_title, names)))
    return Section("measures", _TITLE, (table, Bullets(tuple(_explained(names)))))


def _values(names: tuple[str, ...], scores: Scores) -> Iterator[str]:
    for name in names:
        value = scores.measures.get(name)
        yield MISSING if value is None else error_text(value)


def _explained(names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if name in all_metrics():
            yield f"{_title(name)}: {all_metrics()[name].description}"


def _title(name: str) -> str:
    return all_metrics()[name].title if name in all_metrics() else name
