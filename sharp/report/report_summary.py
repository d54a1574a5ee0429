"""The top of the report: where the run stands, what won, and what the reporter model wrote about it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sharp.document import Bullets, Heading, Headline, ModelText, Note, Paragraph, Section
from sharp.document.text import duration_text, error_text, plural
from sharp.evaluation.protocol import Evaluation
from sharp.report.data_error_flags import flag_of
from sharp.report.report_data import ReportData

BELOW_FLOOR = "below the floor: imitates the data set's errors"
AT_FLOOR = "at the floor: as far from the data set as the true solution is"
_REMARKS = {"below": BELOW_FLOOR, "at": AT_FLOOR, "": ""}


def headline(evidence: ReportData) -> Headline:
    """Return the outcome of a run, or how far it came."""
    parts = (_outcome(evidence), floor_remark(evidence.state.test), _effort(evidence))
    below = floor_remark(evidence.state.test) == BELOW_FLOOR
    return Headline("; ".join(part for part in parts if part) + ".", below)


def floor_remark(evaluation: Evaluation | None) -> str:
    """Return what an error means beside the data set's own distance from the true solution; mostly nothing."""
    scores = evaluation.scores if evaluation else None
    return _REMARKS[flag_of(scores.nrmse, scores.data_error)] if scores else ""


def notes(evidence: ReportData) -> tuple[Note, ...]:
    """Return what a reader must know before all else."""
    return tuple(_notes(evidence))


def summary(evidence: ReportData) -> Section:
    """Return the executive summary: a model's prose, labelled as such."""
    prose, model = evidence.state.prose, evidence.run.config.models.reporter
    if prose is None:
        return Section("summary", "Executive summary", (Paragraph(_no_summary(evidence)),))
    author = evidence.author(model)
    return Section(
        "summary",
        "Executive summary",
        (
            Paragraph(f"Written by {author}. No figure elsewhere in the report is taken from this text."),
            ModelText(prose.summary, author),
            Heading("Findings"),
            Bullets(prose.findings),
            Heading("Efficiency"),
            ModelText(prose.efficiency, author),
            Heading("Conclusions"),
            ModelText(prose.conclusions, author),
        ),
    )


def elapsed(evidence: ReportData) -> float | None:
    """Return the seconds between the beginning of the first effect and the end of the last, pauses included."""
    spans = [_span(effect.meta) for effect in evidence.record.effects.values()]
    if not spans:
        return None
    return max(end for _, end in spans) - min(start for start, _ in spans)


def ended(evidence: ReportData) -> float | None:
    """Return when the last effect ended, in seconds since 1970."""
    return max((_span(effect.meta)[1] for effect in evidence.record.effects.values()), default=None)


def _span(meta: object) -> tuple[float, float]:
    assert isinstance(meta, dict)
    start = datetime.fromisoformat(meta["started"]).timestamp()
    return start, start + meta["seconds"]


def _outcome(evidence: ReportData) -> str:
    state = evidence.state
    if state.best is None:
        return "No winner: no candidate ran successfully" if evidence.finished else _progress(evidence)
    if state.test is None:
        return f"Winner {state.best}, not scored on test data"
    if state.test.failure is not None:
        return f"Winner {state.best} failed on test data ({state.test.failure.kind})"
    scores = state.test.scores
    assert scores is not None
    if scores.against_truth:
        error = error_text(scores.nrmse)
        return f"Winner {state.best}: error on test data {error} against self-converged solutions"
    parts = [f"Winner {state.best}: error on test data {error_text(scores.nrmse)} against the data set"]
    if scores.nrmse_reference is not None:
        parts.append(f"{error_text(scores.nrmse_reference)} against the true solution")
    if scores.data_error is not None:
        parts.append(f"the data set itself is {error_text(scores.data_error)} from it")
    return ", ".join(parts)


def _progress(evidence: ReportData) -> str:
    runs = {name: run.metric for name, run in evidence.runs.items() if run.split == "validation"}
    best = min(runs, key=lambda name: runs[name], default=None)
    scores = evidence.scores_of(best)
    if scores is None:
        return f"Unfinished: {plural(len(evidence.state.candidates), 'candidate')}, none with a result so far"
    return f"Unfinished: best so far {best}, error on validation data {error_text(scores.nrmse)} against the data set"


def _effort(evidence: ReportData) -> str:
    ledger = evidence.ledger
    cached = f", of which {ledger.cached_evaluations} from the cache," if ledger.cached_evaluations else ""
    runs = f"{plural(ledger.evaluations, 'evaluation')}{cached} and {plural(ledger.executions, 'execution')}"
    return f"{runs} in {duration_text(elapsed(evidence))}"


def _notes(evidence: ReportData) -> Iterator[Note]:
    if evidence.run.config.models.override is not None:
        yield Note(
            "The rule-based model answered for every model, under that model's name; no language model took part.",
            "warning",
        )
    if not evidence.finished:
        barriers = evidence.record.barriers
        last = f"its last checkpoint is “{barriers[-1].name}”" if barriers else "it has no checkpoint yet"
        yield Note(
            f"This run is unfinished: {last}, with {plural(len(evidence.record.effects), 'answer')} recorded. "
            f"This report shows what there is. Continue with: sharp resume {evidence.run.path}",
            "warning",
        )
    if floor_remark(evidence.state.test) == BELOW_FLOOR:
        yield Note(
            f"The winner's error is {BELOW_FLOOR}. The data set is nearer to this program than to the true solution, "
            "so a smaller error here is no greater accuracy.",
            "warning",
        )
    if floor_remark(evidence.state.test) == AT_FLOOR:
        yield Note(
            f"The winner's error is {AT_FLOOR}. What is left of it is the data set's error, not the program's."
        )
    if evidence.state.test is not None and evidence.state.test.failure is not None:
        failure = evidence.state.test.failure
        yield Note(f"The winner failed on test data ({failure.kind}): {failure.message}", "warning")
    yield from (Note(warning, "warning") for warning in evidence.record.warnings)


def _no_summary(evidence: ReportData) -> str:
    if not evidence.finished:
        return "The run has not come to its summary."
    if evidence.state.best is None:
        return "There is no winner to write about."
    return "The reporter model gave no readable answer."
