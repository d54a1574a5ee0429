"""What servers of models on a cluster cost a run: GPU-hours of their jobs for every token that they read or wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from hpc.journal import read_run
from sharp.llm.ledger import Ledger
from sharp.report.servers import hours_of
from sharp.runs.budget import paid_ledger
from sharp.runs.directory import load_run
from sharp.sweeps.folder import begun_runs, is_sweep, run_path


@dataclass(frozen=True)
class Rates:
    """GPU-hours of servers for one token, by model; of `unmetered` jobs nobody knows how long they held GPUs."""

    by_model: Mapping[str, float] = field(default_factory=dict)
    unmetered: int = 0

    def hours(self, ledger: Ledger) -> dict[str, float]:
        """Return the GPU-hours that fall to a run, by model; models that no server of the campaign had are left out."""
        accounts = ledger.by_model
        return {
            name: rate * accounts[name].tokens for name, rate in self.by_model.items() if name in accounts
        }


def rates_for(run: Path) -> Rates:
    """Return the rates of the campaign that a run was carried out by: its own, or that of the sweep it belongs to."""
    sweep = run.absolute().parent.parent
    if is_sweep(sweep) and run.absolute() == run_path(sweep, run.absolute().name):
        return _rates(sweep)
    return _rates(run.absolute())


@cache
def _rates(folder: Path) -> Rates:
    """Share what the servers of a campaign held among all tokens that its runs have paid for (A24)."""
    hours = hours_of(folder)
    if not hours:
        return Rates()
    runs = [run_path(folder, cell) for cell in begun_runs(folder)] if is_sweep(folder) else [folder]
    tokens = _paid_tokens(runs)
    rates = {model: one.gpu_hours / tokens[model] for model, one in hours.items() if tokens[model]}
    return Rates(rates, sum(one.unmetered for one in hours.values()))


def _paid_tokens(runs: Iterable[Path]) -> Counter[str]:
    tokens: Counter[str] = Counter()
    for path in runs:
        ledger = paid_ledger(load_run(path), read_run(path).effects)
        tokens.update({model: account.tokens for model, account in ledger.by_model.items()})
    return tokens
