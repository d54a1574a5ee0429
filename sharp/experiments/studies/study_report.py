"""The page of a study: its tables and figures beside the published ones, and everything that limits what they say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pandas import DataFrame

from sharp.document import (
    Block,
    Bullets,
    Details,
    Facts,
    Heading,
    Headline,
    Note,
    Paragraph,
    Report,
    Section,
    Table,
    plural,
)
from sharp.experiments.frame import finished, frame_of
from sharp.experiments.publishing import ExperimentFiles, publish
from sharp.experiments.studies.metrics import short_error
from sharp.experiments.studies.model_assignment import is_quick, is_rule_based
from sharp.experiments.studies.study_file import Study, StudyFile, TableSpec
from sharp.experiments.studies.study_tables import NOT_KNOWN, RECORD, RenderedTable, render_table
from sharp.experiments.sweeps.file import SweepFile, read_sweep
from sharp.experiments.sweeps.folder import check_sweep, sweep_file
from sharp.experiments.sweeps.sweep_log import read_record
from sharp.experiments.sweeps.sweep_report import axis_facts, count_states, mixed_versions, sweep_rows
from sharp.experiments.tables import shown
from sharp.neural import published_rows

PLAYED = (
    "No language model took part: the rule-based model, an expert system that knows these problems, played every "
    "model. The figures try the machinery and compare methods on its programs; they say nothing of language models."
)
QUICK = (
    "Quick settings: few samples and short limits of time. Differences that are small beside the spread mean "
    "nothing."
)
OTHERS = (
    "Published values stand beside ours for orientation. They were measured on other samples, with other models and "
    "prompts, and on other hardware; they come from single runs, and their spread was not published."
)
WRONG = (
    "The published reaction-diffusion data are wrong: their generator stops the reaction by rounding, about 17 % "
    "away from the solution of the equation. A smaller published error there shows agreement with that, not accuracy."
)
STATEMENTS = (
    "Programs were asked for in our own words. The statement of Navier-Stokes has kinematic viscosities, as the data "
    "have, where the papers' prompts have dynamic ones; signatures and coefficients are those of CodePDE."
)
NEURAL = (
    "Errors of trained networks as they were published, for orientation. They were measured otherwise than the errors "
    "above: on other samples, and often without the first frames, which are input. They "
    "are no ranking; docs/guides/neural.md "
    "says what each of them means."
)


@dataclass(frozen=True)
class StudyPage:
    """A study that was written down: its page, its tables, their records as a frame, and the files."""

    report: Report
    tables: tuple[RenderedTable, ...]
    records: DataFrame
    files: ExperimentFiles


def render_study(file: StudyFile, folder: Path) -> StudyPage:
    """Write the page of a study into the directory of its sweep, from the log of the sweep alone.

    Raises `RunDirectoryError` where there is no sweep, and `ConfigurationError` where it is another study's.
    """
    check_sweep(folder)
    sweep = read_sweep(sweep_file(folder))
    file.check_axes(sweep)
    rows, name = sweep_rows(read_record(folder)), file.study.name
    tables = tuple(
        render_table(file.study, view, rows, f"{name}-{number}")
        for number, view in enumerate(file.study.views, start=1)
    )
    records = frame_of([record for each in tables for record in each.records], RECORD)
    figures = {f"{name}-{number}": each.figure for number, each in enumerate(tables, start=1)}
    report = build_report(file, sweep, rows, tables)
    return StudyPage(report, tables, records, publish(folder, name, report, name, records, figures))


def build_report(
    file: StudyFile, sweep: SweepFile, rows: DataFrame, tables: Sequence[RenderedTable]
) -> Report:
    """Return the page of a study, whether its sweep is finished or not."""
    state = [
        *count_states(rows, "run"),
        *(["the rule-based model played every model"] if is_rule_based(sweep) else []),
        *(["quick settings"] if is_quick(file, sweep) else []),
    ]
    views = (
        Section(f"view-{number}", each.title, tuple(_blocks(view, each)))
        for number, (view, each) in enumerate(zip(file.study.views, tables, strict=True), start=1)
    )
    neural = [_neural(rows)] if file.study.published.neural else []
    return Report(
        title=f"{file.study.title} ({file.study.reproduces})",
        headline=Headline(f"{'; '.join(state)}."),
        notes=tuple(_notes(file, sweep, rows)),
        sections=(*views, _published(file.study), *neural, _setting(file, sweep, rows)),
    )


def _blocks(view: TableSpec, table: RenderedTable) -> Iterator[Block]:
    if view.text:
        yield Paragraph(view.text)
    if table.figure is not None:
        yield table.figure
    yield from table.tables
    yield from map(Paragraph, table.remarks)
    yield from table.folded


def _notes(file: StudyFile, sweep: SweepFile, rows: DataFrame) -> Iterator[Note]:
    if is_rule_based(sweep):
        yield Note(PLAYED, "warning")
    if is_quick(file, sweep):
        yield Note(QUICK, "warning")
    left = len(rows) - len(finished(rows))
    if left:
        yield Note(f"{plural(left, 'run')} of {len(rows)} are not finished; their cells say so.", "warning")
    below = int((rows["flag"] == "below").sum())
    if below:
        yield Note(
            f"In {plural(below, 'run')} the winner's error is below the data-set error: the program is "
            "nearer to the data set "
            "than the reference solution is, so a smaller error is no greater accuracy. Such cells are marked.",
            "warning",
        )
    yield from mixed_versions(rows)


def _published(study: Study) -> Section:
    published = study.published
    if not published.figures and not published.findings:
        return Section("published", "What was published", (Paragraph(f"Its values are {NOT_KNOWN}."),))
    blocks: list[Block] = [Paragraph(OTHERS), Paragraph(STATEMENTS)]
    if any("reaction-diffusion" in each.values for each in published.figures):
        blocks.append(Paragraph(WRONG))
    blocks.append(Facts(tuple(_sources(study))))
    if published.findings:
        blocks += [Heading("Findings of the paper"), Bullets(published.findings)]
    return Section("published", "What was published", tuple(blocks))


def _sources(study: Study) -> Iterator[tuple[str, str]]:
    published = study.published
    names: dict[str, list[str]] = {}
    for each in published.figures:
        printed = (each.source or published.source, each.table)
        names.setdefault(", ".join(filter(None, printed)), []).append(each.name)
    for source, found in (names or {published.source: ["findings"]}).items():
        yield source, ", ".join(dict.fromkeys(found))
    if published.settings:
        yield "measured", published.settings


def _neural(rows: DataFrame) -> Section:
    """Return published errors of neural solvers on the problems of a sweep: quoted with what they mean, no ranking."""
    cited = [row for problem in dict.fromkeys(map(shown, rows["problem"])) for row in published_rows(problem)]
    columns = ("problem", "method", "nRMSE", "case", "comparable", "why", "source")
    measured = ("problem", "method", "how the error was formed", "how the network was trained", "read in")
    rows_of_how = ((row.problem, row.method, row.metric, row.setting, row.read_in) for row in cited)
    shown_rows = (
        (row.problem, row.method, short_error(row.value), row.case, row.comparable, row.note, row.source)
        for row in cited
    )
    how = Table(measured, tuple(dict.fromkeys(rows_of_how)))
    blocks = (
        Paragraph(NEURAL),
        Table(columns, tuple(shown_rows), ("nRMSE",)),
        Details("How these were measured", (how,)),
    )
    return Section("neural", "Neural solvers, as published", blocks)


def _setting(file: StudyFile, sweep: SweepFile, rows: DataFrame) -> Section:
    settings = Facts(tuple((name, _plain(value)) for name, value in _flat(sweep.base.data)))
    where = "table.csv beside this page has every figure of every run, report.html what they cost."
    blocks = (
        Paragraph(file.study.description),
        axis_facts(rows),
        Heading("Settings that differ from the defaults"),
        settings,
        Paragraph(where),
    )
    return Section("setting", "The runs", blocks)


def _flat(data: object, before: str = "") -> Iterator[tuple[str, object]]:
    """Yield the settings of a configuration with dotted names."""
    if not isinstance(data, dict):
        yield before, data
        return
    for name, value in data.items():
        yield from _flat(value, f"{before}.{name}" if before else str(name))


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
