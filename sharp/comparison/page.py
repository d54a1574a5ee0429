"""A comparison as a document: what runs found, what they took, and when that pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sharp.comparison.entry import Entry
from sharp.comparison.figure import cost_figure, course_figure
from sharp.comparison.notes import cards_of, notes
from sharp.comparison.pairs import break_evens, by_problem
from sharp.report.blocks import Block, Bullets, Figure, Note, Paragraph, Report, Section, Table, Verdict
from sharp.report.marks import LEGEND, marked_error
from sharp.report.prices import price_table
from sharp.report.text import MISSING, count_text, duration_text, error_text, number_text, plural

RESULTS = (
    "#",
    "run",
    "method",
    "models",
    "seed",
    "state",
    "error",
    "against truth",
    "on validation data",
    "winner",
)
RUNS = (
    "#",
    "run",
    "evaluations",
    "from the cache",
    "executions",
    "debug runs",
    "failed",
    "GPU time",
    "run time",
    "wall time",
)
MODELS = (
    "#",
    "run",
    "calls",
    "given by others",
    "prompt tokens",
    "of these cached",
    "completion tokens",
    "of these reasoning",
)
DOLLARS = ("#", "run", "billed", "GPU-hours of servers", "for these", "for GPU time of runs", "altogether")


def compose(entries: Sequence[Entry]) -> Report:
    """Return the whole document."""
    groups = by_problem(entries)
    return Report(
        title=f"Comparison of {plural(len(entries), 'run')}",
        verdict=_verdict(entries),
        notes=(),
        sections=(
            *(
                Section(f"problem-{i}", name, tuple(_problem(group)))
                for i, (name, group) in enumerate(groups.items(), 1)
            ),
            *_figures(entries),
            _prices(entries),
        ),
    )


def tables(group: Sequence[Entry]) -> tuple[Table, ...]:
    """Return what runs of one problem found, what programs and models took, and what that cost."""
    return (
        Table(RESULTS, tuple(map(_result, group)), RESULTS[6:9], "Errors of winners on test data"),
        Table(RUNS, tuple(map(_runs, group)), RUNS[2:], "Runs of programs"),
        Table(MODELS, tuple(map(_models, group)), MODELS[2:], "Calls and tokens of language models"),
        Table(DOLLARS, tuple(map(_dollars, group)), DOLLARS[2:], "Dollars"),
    )


def break_even_lines(group: Sequence[Entry]) -> tuple[str, ...]:
    """Return the break-even of each run against the first of its problem, in words."""
    names = {entry.number: entry.name for entry in group}
    return tuple(
        f"#{number} {names[number]}: {found.sentence()}" for number, found in break_evens(group).items()
    )


def _verdict(entries: Sequence[Entry]) -> Verdict:
    groups = by_problem(entries)
    best = [_lowest(problem, group) for problem, group in groups.items()]
    sentence = "; ".join(
        [f"{plural(len(entries), 'run')} of {plural(len(groups), 'problem')}", *filter(None, best)]
    )
    below = any(entry.row.flag == "below" for entry in entries)
    return Verdict(f"{sentence}.", below)


def _lowest(problem: str, group: Sequence[Entry]) -> str:
    """Return the lowest error of finished runs with the same data and samples, in words."""
    scored = [entry for entry in group if entry.finished and entry.row.nrmse is not None]
    if len(scored) < 2 or len({(entry.row.data, entry.samples) for entry in scored}) > 1:
        return ""
    best = min(scored, key=lambda entry: entry.row.nrmse or 0.0)
    floor = ", below the data's own floor" if best.row.flag == "below" else ""
    return f"{problem}: lowest error {error_text(best.row.nrmse)} (#{best.number} {best.name}{floor})"


def _problem(group: Sequence[Entry]) -> Iterator[Block]:
    yield from (Note(text, "warning") for text in notes(group))
    results, *rest = tables(group)
    yield results
    if any(entry.row.flag for entry in group):
        yield Paragraph(LEGEND)
    yield from rest
    lines = break_even_lines(group)
    if lines:
        yield Paragraph(f"Break-even against #{group[0].number} {group[0].name}, the first run given:")
        yield Bullets(lines)


def _figures(entries: Sequence[Entry]) -> Iterator[Section]:
    drawn: tuple[tuple[str, Figure | None], ...] = (
        ("cost", cost_figure(entries)),
        ("course", course_figure(entries)),
    )
    for anchor, figure in drawn:
        if figure is not None:
            yield Section(f"{anchor}-figure", getattr(figure.drawing, "title", anchor), (figure,))


def _prices(entries: Sequence[Entry]) -> Section:
    cards = cards_of(entries).values()
    blocks: list[Block] = [Paragraph(_accounting(entries[0].gpu_price))]
    return Section("prices", "Prices and accounting", (*blocks, *([price_table(cards)] if cards else [])))


def _accounting(gpu_price: float | None) -> str:
    time = (
        "No hourly price of the GPU that programs run on was given, so that their time costs nothing here."
        if gpu_price is None
        else f"An hour of the GPU that programs run on is taken at ${gpu_price:g}."
    )
    return (
        "Every run is counted as if it stood alone: answers that another run gave, and results from the cache, count "
        "with the tokens and seconds that they took where they were made; only the wall time is that of the run as it "
        f"was. {time} Evaluations are runs on validation data; executions are these with the short runs before them "
        "and the runs of repaired programs; GPU time and run time are those of all runs of programs, the checks and "
        "the test run at the end included. Prices are those that the runs were frozen with."
    )


def _result(entry: Entry) -> tuple[str, ...]:
    row = entry.row
    played = {"all": " (playbook)", "some": " (some by the playbook)"}.get(row.playbook, "")
    models = ", ".join(entry.models)
    return (
        str(entry.number),
        entry.name,
        entry.variant,
        models if models == "playbook" else models + played,
        str(entry.seed),
        row.state,
        marked_error(row.nrmse, row.flag),
        error_text(row.nrmse_truth),
        error_text(entry.validation_error),
        row.winner or MISSING,
    )


def _runs(entry: Entry) -> tuple[str, ...]:
    row = entry.row
    counts = (
        row.evaluations,
        row.cached_evaluations,
        row.executions,
        entry.debug_runs,
        sum(row.failures.values()),
    )
    times = (row.whole_gpu_seconds, row.whole_evaluation_seconds, row.seconds)
    return (str(entry.number), entry.name, *map(count_text, counts), *map(duration_text, times))


def _models(entry: Entry) -> tuple[str, ...]:
    usage = entry.usage
    counts = (
        entry.calls,
        entry.row.shared_calls,
        usage.prompt,
        usage.cached,
        usage.completion,
        usage.reasoning,
    )
    return (str(entry.number), entry.name, *map(count_text, counts))


def _dollars(entry: Entry) -> tuple[str, ...]:
    costs = entry.costs
    return (
        str(entry.number),
        entry.name,
        _sum(costs.billed),
        number_text(costs.gpu_hours) if costs.gpu_hours else MISSING,
        _sum(costs.served) if costs.gpu_hours else MISSING,
        MISSING if entry.gpu_price is None else _sum(entry.evaluation_dollars),
        _sum(entry.dollars),
    )


def _sum(dollars: float | None) -> str:
    return "unknown" if dollars is None else f"{dollars:.4g}"
