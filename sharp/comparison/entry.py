"""One run of a comparison, in figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sharp.llm.cards import ModelCard
from sharp.llm.model_costs import ModelCosts, total
from sharp.llm.protocol import Usage
from sharp.sweeps.row import Row


@dataclass(frozen=True)
class Entry:
    """A run by its number and short name in the comparison.

    Everything that costs is counted as if the run stood alone: answers that another run gave, and results from the
    cache, count with the tokens and seconds that they took where they were made. `usage` are all tokens, `debug_runs`
    the runs of repaired programs, `costs` the dollars for language models. `variant` is the method with what sets it
    apart, `setup` the same for runs that repeat each other with other seeds; `devices` are where programs ran,
    `samples` the numbers of validation and test samples; `cards` are those of the models that were asked. `gpu_price`
    is what an hour of the GPU that programs run on costs, None if not given.
    """

    number: int
    name: str
    path: str
    variant: str
    setup: str
    seed: int
    row: Row
    usage: Usage
    debug_runs: int
    costs: ModelCosts
    devices: tuple[str, ...]
    samples: tuple[int, int]
    feedback: tuple[str, ...] = ("nrmse",)
    cards: Mapping[str, ModelCard] = field(default_factory=dict)
    gpu_price: float | None = None

    @property
    def finished(self) -> bool:
        """Whether the method came to its end."""
        return self.row.state == "finished"

    @property
    def has_error(self) -> bool:
        """Whether it has come to its end with a program that has an error on test data."""
        return self.finished and self.row.nrmse is not None

    @property
    def calls(self) -> int:
        """All calls, those that another run gave included."""
        return self.row.calls + self.row.shared_calls

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were asked, or would have been, each once."""
        return tuple(dict.fromkeys(self.row.roles.values()))

    @property
    def evaluation_dollars(self) -> float | None:
        """The GPU time of all program runs at the given hourly price."""
        return None if self.gpu_price is None else self.row.whole_gpu_seconds / 3600 * self.gpu_price

    @property
    def dollars(self) -> float | None:
        """Dollars for language models and, where an hourly price was given, for the GPU time of program runs."""
        return total((self.costs.dollars, self.evaluation_dollars or 0.0))

    @property
    def validation_error(self) -> float | None:
        """The error on validation data of the winner or, as long as there is none, of the best program so far."""
        if self.row.validation_nrmse is not None:
            return self.row.validation_nrmse
        return self.row.best_after[-1] if self.row.best_after and "nrmse" in self.feedback else None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "number": self.number,
            "name": self.name,
            "path": self.path,
            "variant": self.variant,
            "seed": self.seed,
            **self.row.to_json(),
            "validation_error": self.validation_error,
            "all_calls": self.calls,
            "debug_runs": self.debug_runs,
            "tokens": asdict(self.usage),
            "billed_dollars": self.costs.billed,
            "served_gpu_hours": self.costs.gpu_hours,
            "served_dollars": self.costs.served,
            "model_dollars": self.costs.dollars,
            "evaluation_dollars": self.evaluation_dollars,
            "total_dollars": self.dollars,
            "devices": list(self.devices),
            "validation_samples": self.samples[0],
            "test_samples": self.samples[1],
        }
