"""What the data set is worth as a reference: its distance from the truth and its residual, sample by sample."""

from __future__ import annotations

import json
from statistics import fmean

from hpc.files import write_atomic
from sharp.document import Block, Note, Paragraph, Section, Table
from sharp.document.text import error_text
from sharp.errors import SharpError
from sharp.reference.audit import Audit, audit_dataset
from sharp.reference.datasets import DataSet
from sharp.reference.families import FAMILIES
from sharp.report.report_data import ReportData
from sharp.runs.directory import RunDirectory

SAMPLES = 8
TITLES = {
    "error": "data from reference",
    "data_error": "reference against data",
    "reference_error": "error of reference",
    "residual": "residual of data",
    "reference_residual": "of reference",
}


def data_audit(evidence: ReportData) -> Section:
    """Return the audit of the first validation samples."""
    found = audit_of(evidence.run)
    return Section(
        "audit", "The reference data", _missing(found) if isinstance(found, str) else _table(found)
    )


def audit_of(run: RunDirectory) -> Audit | str:
    """Return the audit of a run's data, made once and kept in `audit.json`; or why there is none.

    Only stored truth is compared with: solving for it would take minutes.
    """
    path = run.path / "audit.json"
    try:
        return Audit.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not made yet, or damaged: it is made again
    try:
        dataset = run.dataset()
        if dataset.truth_path is None:
            return f"The data set has no truth stored beside it{_remedy(run, dataset)}."
        first = run.splits(dataset).validation.start
        audit = audit_dataset(run.problem, dataset.path, samples=SAMPLES, first=first)
    except (SharpError, OSError) as error:
        return f"The data set could not be audited: {error}"
    write_atomic(path, json.dumps(audit.to_json(), indent=1).encode())
    return audit


def _remedy(run: RunDirectory, dataset: DataSet) -> str:
    if run.problem.family in FAMILIES:
        return f"; `sharp data audit {dataset.path}` solves for it"
    return ", and none follows from its values"


def _missing(reason: str) -> tuple[Block, ...]:
    return (Note(reason),)


def _table(audit: Audit) -> tuple[Block, ...]:
    measures = audit.measures
    columns = ("sample", *(TITLES[name] for name in measures))
    samples = zip(audit.samples, *measures.values(), strict=True)
    rows = [_row(str(number), values) for number, *values in samples]
    rows.append(_row("mean", [fmean(values) for values in measures.values()]))
    return (
        Paragraph(_worth(audit)),
        Table(
            columns,
            tuple(rows),
            numbers=columns,
            caption="Relative distances, and PDE residuals on the output grid, of validation samples. Residual: "
            f"{audit.residual_note}",
        ),
    )


def _worth(audit: Audit) -> str:
    if audit.is_truth:
        return (
            "The data are the self-converged solution itself, whose error is estimated at "
            f"{error_text(fmean(audit.reference_error))}: scores below that are no greater accuracy."
        )
    return (
        f"The data are {error_text(fmean(audit.error))} away from the solution of the equation, which scores "
        f"{error_text(fmean(audit.data_error))} against them: this floor is the lowest honest score, and what lies "
        "below it imitates the errors of the data."
    )


def _row(name: str, values: list[float]) -> tuple[str, ...]:
    return (name, *map(error_text, values))
