"""The page of a study: its tables and figures beside the published ones, and everything that limits what they say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sharp.report.blocks import Block, Bullets, Facts, Heading, Note, Paragraph, Report, Section, Verdict
from sharp.report.text import plural
from sharp.studies.cast import is_played, is_quick
from sharp.studies.cited import NOT_KNOWN
from sharp.studies.compared import show_paired, show_reaching
from sharp.studies.curves import show_against, show_series
from sharp.studies.form import Study, StudyFile, View
from sharp.studies.neural import neural
from sharp.studies.shares import show_shares
from sharp.studies.shown import Shown
from sharp.studies.values import show_values
from sharp.sweeps.file import SweepFile
from sharp.sweeps.table import Line

PLAYED = (
    "No language model took part: the playbook, an expert system that knows these problems, played every model. "
    "The figures try the machinery and compare methods on its programs; they say nothing of language models."
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
    "The published reaction-diffusion data are wrong: their generator stops the reaction by rounding, about 14 % "
    "away from the solution of the equation. A smaller published error there shows agreement with that, not accuracy."
)


def show(study: Study, view: View, lines: Sequence[Line], anchor: str) -> Shown:
    """Return a view as tables and a figure."""
    match view.show:
        case "values":
            return show_values(study, view, lines, anchor)
        case "against":
            return show_against(study, view, lines, anchor)
        case "shares":
            return show_shares(view, lines, anchor)
        case "course" | "progress":
            return show_series(view, lines, anchor)
        case "paired":
            return show_paired(view, lines)
        case "reaching":
            return show_reaching(view, lines)


def compose(file: StudyFile, sweep: SweepFile, lines: Sequence[Line], shown: Sequence[Shown]) -> Report:
    """Return the page of a study, whether its sweep is finished or not."""
    views = zip(file.study.views, shown, strict=True)
    sections = [
        Section(f"view-{number}", each.title, tuple(_blocks(view, each)))
        for number, (view, each) in enumerate(views, start=1)
    ]
    return Report(
        title=f"{file.study.title} ({file.study.reproduces})",
        verdict=Verdict(state_in_words(file, sweep, lines), below_floor=False),
        notes=tuple(_notes(file, sweep, lines)),
        sections=(
            *sections,
            _published(file.study),
            *([neural(lines)] if file.study.published.neural else []),
            _setting(file, sweep, lines),
        ),
    )


def state_in_words(file: StudyFile, sweep: SweepFile, lines: Sequence[Line]) -> str:
    """Return how far the runs are, and who played."""
    finished = sum(line.row is not None and line.row.state == "finished" for line in lines)
    failed = sum(line.row is not None and line.row.state == "failed" for line in lines)
    parts = [f"{finished} of {plural(len(lines), 'run')} finished"]
    if failed:
        parts.append(f"{failed} failed")
    if is_played(sweep):
        parts.append("the playbook played every model")
    if is_quick(file, sweep):
        parts.append("quick settings")
    return "; ".join(parts) + "."


def _blocks(view: View, shown: Shown) -> Iterator[Block]:
    if view.text:
        yield Paragraph(view.text)
    if shown.figure is not None:
        yield shown.figure
    yield from shown.tables
    yield from map(Paragraph, shown.remarks)
    yield from shown.folded


def _notes(file: StudyFile, sweep: SweepFile, lines: Sequence[Line]) -> Iterator[Note]:
    rows = [line.row for line in lines if line.row is not None]
    if is_played(sweep):
        yield Note(PLAYED, "warning")
    if is_quick(file, sweep):
        yield Note(QUICK, "warning")
    left = sum(line.row is None or line.row.state != "finished" for line in lines)
    if left:
        yield Note(f"{plural(left, 'run')} of {len(lines)} are not finished; their cells say so.", "warning")
    below = sum(row.flag == "below" for row in rows)
    if below:
        yield Note(
            f"In {plural(below, 'run')} the winner's error is below the floor: the program is nearer to the data set "
            "than the true solution is, so a smaller error is no greater accuracy. Such cells are marked.",
            "warning",
        )
    for what, values in (
        ("versions of pde-sharp", {row.software for row in rows if row.software}),
        ("prompts", {row.prompts for row in rows if row.prompts}),
    ):
        if len(values) > 1:
            yield Note(f"The runs were made with different {what}; table.csv names those of each.", "warning")


def _published(study: Study) -> Section:
    published = study.published
    if not published.figures and not published.findings:
        return Section("published", "What was published", (Paragraph(f"Its values are {NOT_KNOWN}."),))
    blocks: list[Block] = [Paragraph(OTHERS)]
    if any("reaction-diffusion" in each.values for each in published.figures):
        blocks.append(Paragraph(WRONG))
    blocks.append(Facts(tuple(_sources(study))))
    if published.findings:
        blocks += [Heading("Findings of the paper"), Bullets(published.findings)]
    return Section("published", "What was published", tuple(blocks))


def _sources(study: Study) -> Iterator[tuple[str, str]]:
    published = study.published
    sources = dict.fromkeys(each.source or published.source for each in published.figures)
    for source in sources or {published.source: None}:
        names = (each.name for each in published.figures if (each.source or published.source) == source)
        yield source, ", ".join(dict.fromkeys(names)) or "findings"
    if published.settings:
        yield "measured", published.settings


def _setting(file: StudyFile, sweep: SweepFile, lines: Sequence[Line]) -> Section:
    axes: dict[str, dict[str, None]] = {}
    for line in lines:
        for name, value in line.values.items():
            axes.setdefault(name, {})[str(value)] = None
    settings = tuple((name, _plain(value)) for name, value in _flat(sweep.base.data))
    return Section(
        "setting",
        "The runs",
        (
            Paragraph(file.study.about),
            Facts(tuple((name, ", ".join(values)) for name, values in axes.items())),
            Heading("Settings that differ from the defaults"),
            Facts(settings),
            Paragraph(
                "table.csv beside this page has every figure of every run, report.html what they cost."
            ),
        ),
    )


def _flat(data: object, before: str = "") -> Iterator[tuple[str, object]]:
    """Yield the settings of a configuration with dotted names."""
    if not isinstance(data, dict):
        yield before, data
        return
    for name, value in data.items():
        yield from _flat(value, f"{before}.{name}" if before else str(name))


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
