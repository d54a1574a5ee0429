"""One run in figures: the row that sweeps, studies and comparisons have for it; rows with documented columns."""

# ruff: noqa: RUF009 - `column` makes a field

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import EllipsisType
from typing import Any, Literal

State = Literal["finished", "failed", "unfinished"]
BestErrors = tuple[float | None, ...]


def column(meaning: str, default: Any = None, unit: str = "") -> Any:
    """Return a dataclass field with its meaning and unit; `...` makes it required, a type makes an empty value."""
    documented = {"meaning": meaning, "unit": unit}
    if isinstance(default, EllipsisType):
        return field(metadata=documented)
    if isinstance(default, type):
        return field(default_factory=default, metadata=documented)
    return field(default=default, metadata=documented)


def dtypes_of(row: type[Any]) -> dict[str, str]:
    """Return the pandas dtype of each column of a class of rows; values with parts are Python objects."""
    return {each.name: _dtype(str(each.type)) for each in fields(row)}


def meanings_of(row: type[Any]) -> list[dict[str, str]]:
    """Return name, dtype, unit and meaning of each column of a class of rows."""
    dtypes = dtypes_of(row)
    return [{"name": each.name, "dtype": dtypes[each.name], **each.metadata} for each in fields(row)]


def _dtype(annotation: str) -> str:
    plain = annotation.removesuffix(" | None")
    if plain.startswith(("Mapping", "tuple", "BestErrors")):
        return "object"
    return {"int": "Int64", "float": "float64", "bool": "boolean"}.get(plain, "string")


@dataclass(frozen=True)
class RunSummary:
    """A run in figures; `sharp.experiments.frame.describe_columns` lists meanings and units.

    Unknown values are None or empty. Errors are dimensionless. Calls, tokens, dollars and seconds are those that the
    run itself has paid for; `standalone_…` is what the same run costs when nothing is shared or cached, by which
    methods are compared.
    """

    state: State = column("finished, failed or unfinished", ...)
    note: str = column("what made the run fail", "")
    problem: str = column("id of the problem", "")
    method: str = column("method of the run", "")
    variant: str = column("the method with what sets it apart", "")
    seed: int | None = column("seed of the run")
    setup: str = column("hash of the configuration, the same for runs that differ in the seed alone", "")
    roles: Mapping[str, str] = column("model of each role", dict)
    rule_based: str = column(
        "whether the rule-based model answered for `all`, `some` or `none` of the roles", ""
    )
    winner: str | None = column("candidate that was selected")
    winner_strategy: str | None = column("strategy of the winner")
    nrmse: float | None = column("winner's error on test data against the data set", unit="1")
    nrmse_reference: float | None = column(
        "winner's error on test data against the reference solution", unit="1"
    )
    data_error: float | None = column("the data set's own error", unit="1")
    flag: str = column("`below` or `at` where the error is no more than the data set's own", "")
    target: str = column("what programs were ranked by their error against: `data` or `reference`", "")
    validation_nrmse: float | None = column("winner's error against the target on validation data", unit="1")
    run_time_s: float | None = column("steady time of the winner on test data", unit="s")
    compile_s: float | None = column("what the winner's first call took beyond that", unit="s")
    device: str = column("device of the winner's test run", "")
    devices: tuple[str, ...] = column("devices of all program runs, the most used first", ())
    order: float | None = column("winner's empirical order of accuracy", unit="1")
    order_note: str = column("why there is no order of accuracy", "")
    rounds: int = column("rounds of judging", 0)
    cycles: int = column("cycles of judging", 0)
    saturated: bool | None = column("whether the last cycle ended for want of gain")
    stop_reason: str = column("why the last cycle ended", "")
    best_by_evaluation: BestErrors = column("best validation metric after each evaluation, in order", ())
    best_by_round: BestErrors = column("best metric of each round's turns, over all cycles", ())
    feedback: tuple[str, ...] = column("metrics that programs were ranked by", ())
    evaluations: int = column("runs on validation data", 0)
    cached_evaluations: int = column("evaluations whose results came from the cache", 0)
    executions: int = column("evaluations, smoke tests and runs of repaired programs", 0)
    debug_runs: int = column("runs of repaired programs", 0)
    programs: int = column("programs that were run, repaired versions not counted", 0)
    written: int = column("programs written first, before any was run", 0)
    distinct: int = column("of these distinct, not counting names, comments and layout", 0)
    repairs: int = column("calls for debugging", 0)
    nominee_evaluations: int = column("nominees of first rounds, whose results were requested", 0)
    nominee_cached: int = column("of these from the cache", 0)
    nominee_shared: int = column("of these from an equal program of the same run", 0)
    calls: int = column("calls of models", 0)
    reused_calls: int = column("calls whose replies another run gave", 0)
    prompt_tokens: int = column("prompt tokens", 0)
    completion_tokens: int = column("completion tokens", 0)
    dollars: float | None = column("cost of calls", unit="$")
    evaluation_seconds: float = column("time of program runs", 0.0, "s")
    gpu_seconds: float = column("time of program runs on GPUs", 0.0, "s")
    standalone_prompt_tokens: int = column("prompt tokens, nothing shared", 0)
    standalone_cached_tokens: int = column("prompt tokens that the server had cached, nothing shared", 0)
    standalone_completion_tokens: int = column("completion tokens, nothing shared", 0)
    standalone_reasoning_tokens: int = column("completion tokens for reasoning, nothing shared", 0)
    standalone_dollars: float | None = column("cost of calls, nothing shared", unit="$")
    standalone_evaluation_seconds: float = column("time of program runs, nothing cached", 0.0, "s")
    standalone_gpu_seconds: float = column("time of program runs on GPUs, nothing cached", 0.0, "s")
    seconds: float | None = column("wall time of the run", unit="s")
    strategies: Mapping[str, int] = column("programs by strategy, without hybrids and repairs", dict)
    libraries: Mapping[str, float] = column("mean share of calls by library, in programs that were run", dict)
    winner_libraries: Mapping[str, float] = column("share of calls by library, in the winner", dict)
    failures: Mapping[str, int] = column("failed program runs by kind", dict)
    effects: int = column("effects that the run has recorded", 0)
    validation_samples: int = column("validation samples", 0)
    test_samples: int = column("test samples", 0)
    data: str = column("label of the data set", "")
    software: str = column("version of pde-sharp", "")
    prompts: str = column("hash of the prompts", "")
    trial: Mapping[str, Any] = column("the result of a trial of agents", dict)

    @property
    def test_error(self) -> float | None:
        """The winner's error on test data against the target of its run."""
        return self.nrmse_reference if self.target == "reference" else self.nrmse

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunSummary:
        """Rebuild a row; unknown keys are left out."""
        names = (each.name for each in fields(cls))
        values: dict[str, Any] = {name: data[name] for name in names if name in data}
        values |= {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**values)


def lowest(rows: Mapping[str, RunSummary]) -> tuple[float, str] | None:
    """Return the lowest error on test data and its cell; None without any, or if data sets or targets differ."""
    errors = {cell: row.test_error for cell, row in rows.items() if row.state == "finished" and not row.trial}
    scored = [(error, cell) for cell, error in errors.items() if error is not None]
    comparable = len({(rows[cell].data, rows[cell].target) for _, cell in scored}) == 1
    return min(scored) if comparable else None
