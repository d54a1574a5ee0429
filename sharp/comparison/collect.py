"""Finding runs and reading each from its record alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hpc.errors import JournalMismatch, RunDirectoryError
from hpc.journal import RunRecord, read_run
from hpc.records import EffectRecord, canonical
from sharp.comparison.entry import Entry
from sharp.comparison.serving import rates_for
from sharp.evaluation.protocol import Evaluation
from sharp.llm.model_costs import model_costs
from sharp.report.marks import flag_of
from sharp.runs.budget import ledger_of
from sharp.runs.directory import Run, load_run
from sharp.runs.execute import replay
from sharp.sweeps.folder import begun_runs, is_sweep, run_path
from sharp.sweeps.row import Row, State
from sharp.sweeps.summary import summarise

OTHER_VERSION = "recorded with other prompts or by another version, so that its course cannot be rebuilt"

# What may differ between runs that repeat each other: results do not depend on it, or only by chance.
_REPEATED: Any = {
    **dict.fromkeys(("seed", "budget", "problem"), True),
    "models": {"servers"},
    "genesis": {"reuse", "reuse_repairs"},
    "evaluation": {"cache", "workers"},
}


def collect(paths: Sequence[Path], gpu_price: float | None = None) -> tuple[Entry, ...]:
    """Read runs, and all runs of sweeps, in the order given, each once.

    `gpu_price` is in dollars for an hour of the GPU that programs run on. Raises `RunDirectoryError` for what is
    neither a run nor a sweep with a run, and for a run that cannot be read.
    """
    runs = list(dict.fromkeys(run.resolve() for path in paths for run in _runs_in(path)))
    names = short_names(runs)
    return tuple(
        replace(_read(run), number=number, name=name, gpu_price=gpu_price)
        for number, (run, name) in enumerate(zip(runs, names, strict=True), start=1)
    )


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest ends of paths that tell them apart."""
    length = 1
    while len({_end(path, length) for path in paths}) < len(set(paths)):
        length += 1
    return [_end(path, length) for path in paths]


def _end(path: Path, length: int) -> str:
    return "/".join(path.parts[-length:])


def _runs_in(path: Path) -> list[Path]:
    if not is_sweep(path):
        if not (path / "run.yaml").is_file():
            raise RunDirectoryError(
                f"{path} holds neither a run (there is no {path / 'run.yaml'}) nor a sweep "
                f"(there is no {path / 'sweep.yaml'})"
            )
        return [path]
    runs = [run_path(path, cell) for cell in sorted(begun_runs(path))]
    if not runs:
        raise RunDirectoryError(
            f"{path} is a sweep of which no run has begun; begin it with: sharp sweep {path}"
        )
    return runs


def _read(path: Path) -> Entry:
    run = load_run(path)
    record, options = read_run(path), run.config.evaluation
    ledger = ledger_of(record.effects.values(), run.cards)
    return Entry(
        number=0,
        name="",
        path=str(path),
        variant=_variant(run),
        setup=canonical(run.config.model_dump(mode="json", exclude=_REPEATED)),
        seed=run.config.seed,
        row=_row(run, record),
        usage=ledger.total.usage,
        debug_runs=ledger.runs.get("debug", 0),
        costs=model_costs(ledger, rates_for(path).hours(ledger), run.cards),
        devices=_devices(record.effects.values()),
        samples=(options.validation, options.test),
        feedback=run.config.feedback.kinds,
        cards={name: run.cards[name] for name in sorted(ledger.by_model) if name in run.cards},
    )


def _row(run: Run, record: RunRecord) -> Row:
    """Return a run in figures; where its course cannot be rebuilt, at least what its test run says."""
    finished = bool(record.barriers) and record.barriers[-1].name == "done"
    try:
        replayed = replay(run)
    except JournalMismatch:
        known = summarise(run, record.effects, None, "finished" if finished else "unfinished", OTHER_VERSION)
        return _with_test(known, record.effects.get("finalize/test"))
    how: State = "unfinished" if replayed.missing else "finished"
    return summarise(
        run, record.effects, replayed.state, how, OTHER_VERSION if finished and replayed.missing else ""
    )


def _with_test(row: Row, test: EffectRecord | None) -> Row:
    scores = None if test is None else Evaluation.from_json(test.reply).scores
    if scores is None:
        return row
    flag = flag_of(scores.nrmse, scores.floor)
    return replace(row, nrmse=scores.nrmse, nrmse_truth=scores.nrmse_truth, floor=scores.floor, flag=flag)


def _variant(run: Run) -> str:
    mode = run.config.synthesis.mode
    return f"{run.config.method}, {mode}" if _is_untypical(run) else run.config.method


def _is_untypical(run: Run) -> bool:
    return run.config.method == "pde-sharp" and run.config.synthesis.mode != "tournament"


def _devices(effects: Iterable[EffectRecord]) -> tuple[str, ...]:
    """Return where programs ran, the most used first."""
    environments = (effect.reply["environment"] for effect in effects if effect.kind == "evaluate")
    return tuple(name for name, _ in Counter(_device(known) for known in environments if known).most_common())


def _device(environment: Mapping[str, object]) -> str:
    device = str(environment.get("device", "cpu"))
    return f"{device} ({environment['cpu']})" if device == "cpu" and environment.get("cpu") else device
