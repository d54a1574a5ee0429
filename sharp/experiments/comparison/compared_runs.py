"""Runs side by side: read from their records, in figures, with what makes them less comparable than these look."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pandas import DataFrame

from hpc.errors import JournalMismatch, RunDirectoryError
from hpc.journal import RunRecord, read_run
from sharp.evaluation.protocol import Evaluation
from sharp.experiments.frame import plain_rows, run_frame
from sharp.experiments.run_summary import RunSummary, State
from sharp.experiments.summarise import summarise, with_test_scores
from sharp.experiments.sweeps.folder import begun_runs, is_sweep, run_path
from sharp.llm.break_even import BreakEven
from sharp.llm.cards import ModelCard
from sharp.llm.ledger import Ledger
from sharp.llm.model_costs import model_costs, total
from sharp.report.servers import hours_of
from sharp.runs.budget import ledger_of, paid_ledger
from sharp.runs.directory import Run, load_run
from sharp.runs.execute import replay

OTHER_VERSION = "recorded with other prompts or by another version, so that its course cannot be rebuilt"
Row = Mapping[str, Any]

_FIRST = ("number", "name", "path")
_COSTS = (
    *("billed_dollars", "served_gpu_hours", "served_dollars", "model_dollars"),
    *("evaluation_dollars", "total_dollars"),
)
_MORE = {"validation_error": "float64", "all_calls": "Int64", **dict.fromkeys(_COSTS, "float64")}


@dataclass(frozen=True)
class Comparison:
    """Runs side by side, as a frame with a row each.

    Beside the columns of `RunSummary`: `number` and `name` in the comparison, `path`; `validation_error`, that of the
    winner or, as long as there is none, of the best program so far; `all_calls`, those that another run gave
    included; dollars for model calls (`billed_dollars`), for GPU-hours of model servers (`served_…`), for both
    (`model_dollars`), for the GPU time of programs (`evaluation_dollars`) and for everything (`total_dollars`),
    missing if a price is unknown. `cards` are those of the models of each run, by its number; `gpu_price` is in
    dollars for an hour of the GPU that programs run on, None if not given.
    """

    rows: DataFrame
    cards: Mapping[int, Mapping[str, ModelCard]]
    gpu_price: float | None = None

    @cached_property
    def runs(self) -> Sequence[Row]:
        """The rows as plain values."""
        return plain_rows(self.rows)

    def by_problem(self) -> dict[str, Comparison]:
        """Return the runs of each problem, in their order."""
        return {
            problem: Comparison(rows, self.cards, self.gpu_price)
            for problem, rows in self.rows.groupby("problem", sort=False)
        }

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        problems = {
            problem: {
                "runs": [run["number"] for run in group.runs],
                "break_even": [
                    {
                        "run": number,
                        **asdict(found),
                        "per_evaluation": found.per_evaluation,
                        "per_execution": found.per_execution,
                    }
                    for number, found in break_evens(group).items()
                ],
                "notes": list(notes(group)),
            }
            for problem, group in self.by_problem().items()
        }
        return {"runs": self.runs, "problems": problems}


def compare(paths: Sequence[Path], gpu_price: float | None = None) -> Comparison:
    """Read runs, and all runs of sweeps, in the order given, each once.

    `gpu_price` is in dollars for an hour of the GPU that programs run on. Raises `RunDirectoryError` for what is
    neither a run nor a sweep with a run, and for a run that cannot be read.
    """
    runs = list(dict.fromkeys(run.resolve() for path in paths for run in _runs_in(path)))
    found = [_read(run, gpu_price) for run in runs]
    rows = [
        ({"number": number, "name": name, "path": str(path), **extra}, summary)
        for number, (path, name, (summary, extra, _)) in enumerate(
            zip(runs, short_names(runs), found, strict=True), start=1
        )
    ]
    cards = {number: each for number, (*_, each) in enumerate(found, start=1)}
    return Comparison(run_frame(rows, first=_FIRST, more=_MORE), cards, gpu_price)


def display_name(run: Row) -> str:
    """Return the number and the short name of a run."""
    return f"#{run['number']} {run['name']}"


def has_error(run: Row) -> bool:
    """Whether a run has ended with a program that has an error on test data."""
    return run["state"] == "finished" and run["nrmse"] is not None


def models_of(run: Row) -> list[str]:
    """Return the models that were called, or would have been, each once."""
    return list(dict.fromkeys(run["roles"].values()))


def break_evens(group: Comparison) -> dict[int, BreakEven]:
    """Return, by number, the break-even of each run that has an error against the first of its problem.

    A run without a result has saved nothing; there is none if that is the first.
    """
    first, *others = group.runs
    return {run["number"]: against(run, first) for run in others if has_error(run) and has_error(first)}


def against(run: Row, first: Row) -> BreakEven:
    """Return how many dollars more for language models a run takes than another, and what of runs it saves."""
    mine, other = run["model_dollars"], first["model_dollars"]
    return BreakEven(
        display_name(first),
        None if mine is None or other is None else mine - other,
        first["evaluations"] - run["evaluations"],
        first["executions"] - run["executions"],
    )


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest ends of paths that tell them apart."""
    length = 1
    while len({path.parts[-length:] for path in paths}) < len(set(paths)):
        length += 1
    return ["/".join(path.parts[-length:]) for path in paths]


def _runs_in(path: Path) -> list[Path]:
    if is_sweep(path):
        runs = [run_path(path, cell) for cell in sorted(begun_runs(path))]
        if not runs:
            raise RunDirectoryError(
                f"{path} is a sweep of which no run has begun; begin it with: sharp sweep {path}"
            )
        return runs
    if not (path / "run.yaml").is_file():
        raise RunDirectoryError(
            f"{path} holds neither a run (there is no {path / 'run.yaml'}) nor a sweep "
            f"(there is no {path / 'sweep.yaml'})"
        )
    return [path]


def _read(path: Path, gpu_price: float | None) -> tuple[RunSummary, dict[str, Any], dict[str, ModelCard]]:
    """Return a run in figures, what a comparison adds to them, and the cards of its models."""
    run, record = load_run(path), read_run(path)
    ledger, summary = ledger_of(record.effects.values(), run.cards), _summary(run, record)
    costs = model_costs(ledger, _server_hours(path, ledger), run.cards)
    evaluation = None if gpu_price is None else summary.standalone_gpu_seconds / 3600 * gpu_price
    best, known = summary.best_by_evaluation, summary.validation_nrmse
    so_far = best[-1] if best and "nrmse" in summary.feedback else None
    dollars = (costs.billed, costs.gpu_hours, costs.served, costs.dollars, evaluation)
    extra = {
        "validation_error": so_far if known is None else known,
        "all_calls": summary.calls + summary.reused_calls,
        **dict(zip(_COSTS, (*dollars, total((costs.dollars, evaluation or 0.0))), strict=True)),
    }
    return summary, extra, {name: run.cards[name] for name in sorted(ledger.by_model) if name in run.cards}


def _summary(run: Run, record: RunRecord) -> RunSummary:
    """Return a run in figures; if its course cannot be rebuilt, at least the errors of its test run."""
    finished = bool(record.barriers) and record.barriers[-1].name == "done"
    try:
        replayed = replay(run)
    except JournalMismatch:
        known = summarise(run, record.effects, None, "finished" if finished else "unfinished", OTHER_VERSION)
        test = record.effects.get("finalize/test")
        return with_test_scores(known, Evaluation.from_json(test.reply) if test else None)
    how: State = "unfinished" if replayed.missing else "finished"
    note = OTHER_VERSION if finished and replayed.missing else ""
    return summarise(run, record.effects, replayed.state, how, note)


def _server_hours(run: Path, ledger: Ledger) -> dict[str, float]:
    """Return the GPU-hours of model servers that fall to a run, by model: by its share of the campaign's tokens.

    The campaign is its own, or that of the sweep it belongs to; models that no server of it had are left out.
    """
    run = run.absolute()
    sweep = run.parent.parent
    rates = _rates(sweep if is_sweep(sweep) and run == run_path(sweep, run.name) else run)
    accounts = ledger.by_model
    return {name: rate * accounts[name].tokens for name, rate in rates.items() if name in accounts}


@cache
def _rates(folder: Path) -> dict[str, float]:
    """Share the GPU-hours of a campaign's servers among all tokens that its runs have paid for."""
    hours = hours_of(folder)
    if not hours:
        return {}
    runs = [run_path(folder, cell) for cell in begun_runs(folder)] if is_sweep(folder) else [folder]
    tokens: Counter[str] = Counter()
    for path in runs:
        ledger = paid_ledger(load_run(path), read_run(path).effects)
        tokens.update({model: account.tokens for model, account in ledger.by_model.items()})
    return {model: one.gpu_hours / tokens[model] for model, one in hours.items() if tokens[model]}


def notes(group: Comparison) -> Iterator[str]:
    """Yield a sentence for everything that makes runs of one problem less comparable than their figures look."""
    for run in group.runs:
        if run["state"] != "finished":
            yield f"{display_name(run)} is not finished: its errors and costs are those so far."
        elif not has_error(run) and not run["note"]:
            why = "none of its programs ran" if run["winner"] is None else "its winner failed on test data"
            yield f"{display_name(run)} has no error: {why}."
        if run["note"]:
            yield f"{display_name(run)}: {run['note']}."
    first, *others = group.runs
    if others and not has_error(first):
        yield (
            f"There is no break-even, for {display_name(first)}, the first of these runs, has no error to be held "
            "against: give another run first."
        )
    for share, words in (("all", "all models"), ("some", "some of the models")):
        played = [run for run in group.runs if run["rule_based"] == share]
        if played:
            which = "every run" if len(played) == len(group.runs) else _listed(played)
            yield f"The rule-based model played {words} of {which}: these results are no language model's."
    yield from _differing(group.runs)
    yield from _prices(group)
    if group.gpu_price is not None and not any(run["standalone_gpu_seconds"] for run in group.runs):
        yield "No program ran on a GPU, so that the price of a GPU-hour adds nothing."


_DIFFERING: Mapping[str, Callable[[Row], str]] = {
    "Programs ran on different devices, so that times and GPU-seconds are not comparable": (
        lambda run: ", ".join(sorted(run["devices"]))
    ),
    "The data sets differ, so that errors are not comparable": lambda run: run["data"],
    "Errors rest on different numbers of validation and test samples": (
        lambda run: f"{run['validation_samples']} and {run['test_samples']}"
    ),
    "Programs were ranked by different feedback": lambda run: ", ".join(run["feedback"]),
    "Versions of pde-sharp differ": lambda run: run["software"],
    "Prompts differ": lambda run: run["prompts"],
}


def _differing(runs: Sequence[Row]) -> Iterator[str]:
    """Yield what is not the same in all runs, though errors, times or costs depend on it."""
    for sentence, value in _DIFFERING.items():
        groups: dict[str, list[Row]] = defaultdict(list)
        for run in runs:
            groups[value(run)].append(run)
        if len(groups) > 1:
            yield f"{sentence} ({'; '.join(f'{known}: {_listed(each)}' for known, each in groups.items())})."


def _prices(group: Comparison) -> Iterator[str]:
    """Yield which models have other prices, or prices of another day, in different runs."""
    known: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for run in group.runs:
        for name, card in group.cards[run["number"]].items():
            known[name][price_text(card)].append(run)
    for name, prices in known.items():
        if len(prices) > 1:
            listed = "; ".join(f"{price}: {_listed(runs)}" for price, runs in prices.items())
            yield f"{name} was paid at different prices ({listed})."


def price_text(card: ModelCard) -> str:
    """Return a price with its date."""
    if card.gpu_price is not None:
        return f"${card.gpu_price.dollars_per_gpu_hour:g} for a GPU-hour as of {card.gpu_price.date}"
    if card.price is None:
        return "no price"
    if card.price.prompt is None or card.price.completion is None:
        return "unknown"
    return f"${card.price.prompt:g} and ${card.price.completion:g} as of {card.price.date}"


def _listed(runs: Iterable[Row]) -> str:
    return ", ".join(f"#{run['number']}" for run in runs)
