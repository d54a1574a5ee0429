"""What language models cost in dollars, and whether that pays against fewer runs of programs (requirement 0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sharp.llm.ledger import Ledger

if TYPE_CHECKING:
    from sharp.llm.cards import ModelCard


@dataclass(frozen=True)
class ModelCosts:
    """Dollars for the language models of a run; None where a price is unknown.

    `billed` are those of calls that are paid by token, `served` those of the `gpu_hours` that servers held for the
    run's calls. A model is paid in one way or the other.
    """

    billed: float | None
    gpu_hours: float = 0.0
    served: float | None = 0.0

    @property
    def dollars(self) -> float | None:
        """Both together."""
        return total((self.billed, self.served))


def model_costs(ledger: Ledger, gpu_hours: Mapping[str, float], cards: Mapping[str, ModelCard]) -> ModelCosts:
    """Return what a run's calls cost; `gpu_hours` has the models that were served for it, and for how long."""
    billed = total(account.dollars for name, account in ledger.by_model.items() if name not in gpu_hours)
    served = total(served_dollars(cards.get(name), hours) for name, hours in gpu_hours.items())
    return ModelCosts(billed, sum(gpu_hours.values()), served)


def shares(ledger: Ledger, gpu_hours: Mapping[str, float]) -> dict[tuple[str, str], float]:
    """Return the GPU-hours of servers by (purpose, model), each model's split among its calls by tokens."""
    found = {}
    for model, hours in gpu_hours.items():
        tokens = {key: account.tokens for key, account in ledger.accounts.items() if key[1] == model}
        total_tokens = sum(tokens.values())
        found.update(
            {key: hours * own / total_tokens if total_tokens else 0.0 for key, own in tokens.items()}
        )
    return found


def served_dollars(card: ModelCard | None, gpu_hours: float) -> float | None:
    """Return the price of GPU-hours of a model's servers, None where its card has none."""
    price = None if card is None else card.gpu_price
    return None if price is None else gpu_hours * price.dollars_per_gpu_hour


def total(dollars: Iterable[float | None]) -> float | None:
    """Return a sum, None where one of its terms is unknown."""
    listed = list(dollars)
    known = [one for one in listed if one is not None]
    return sum(known) if len(known) == len(listed) else None


@dataclass(frozen=True)
class BreakEven:
    """What a run spends more on language models than a baseline, and how many runs of programs it saves.

    price of one evaluation at break-even = (dollars of this run - dollars of the baseline)
                                            / (evaluations of the baseline - evaluations of this run)

    Where an evaluation costs more than that, this run is the cheaper one; executions, which count debugging too, alike.
    Unknown dollars are None, and so are executions where the baseline's are unknown. Both differences can be negative.
    """

    baseline: str
    extra_dollars: float | None
    saved_evaluations: int
    saved_executions: int | None = None

    @property
    def per_evaluation(self) -> float | None:
        """Dollars for one evaluation at break-even; None where dollars are unknown or no evaluation was saved."""
        return self._for_one(self.saved_evaluations)

    @property
    def per_execution(self) -> float | None:
        """Dollars for one execution at break-even; None where dollars are unknown or no execution was saved."""
        return self._for_one(self.saved_executions)

    def sentence(self) -> str:
        """Return the line for a report."""
        if self.saved_evaluations <= 0:
            return self._nothing_saved()
        plural = "" if self.saved_evaluations == 1 else "s"
        saved = f"{self.saved_evaluations} evaluation{plural} saved against {self.baseline}"
        if self.per_evaluation is None:
            return f"{saved}; break-even unknown, for some calls have no known price"
        if not self.per_evaluation:
            return f"{saved} at no more dollars for language models; that pays whatever an evaluation costs"
        line = f"{saved}; that pays where one evaluation costs more than ${self.per_evaluation:.3g}"
        return line + self._of_executions()

    def _for_one(self, saved: int | None) -> float | None:
        if self.extra_dollars is None or saved is None or saved <= 0:
            return None
        return max(0.0, self.extra_dollars) / saved

    def _nothing_saved(self) -> str:
        line = f"no evaluations saved against {self.baseline}"
        if self.extra_dollars == 0:
            return f"{line}, and no dollars"
        if self.extra_dollars is None or self.extra_dollars > 0:
            return f"{line}: spending more on language models does not pay here{self._of_executions()}"
        if self.saved_evaluations == 0:
            return f"{line}, but ${-self.extra_dollars:.3g}"
        price = self.extra_dollars / self.saved_evaluations
        return f"{line}, but ${-self.extra_dollars:.3g}; that pays where one evaluation costs less than ${price:.3g}"

    def _of_executions(self) -> str:
        if self.per_execution is None:
            return ""
        plural = "" if self.saved_executions == 1 else "s"
        saved = f"{self.saved_executions} execution{plural} saved"
        return f"; {saved}, at break-even ${self.per_execution:.3g} each"


def break_even(
    ledger: Ledger, candidates: int, served: Mapping[tuple[str, str], float | None] | None = None
) -> BreakEven:
    """Return the break-even against best-of-N, which writes the same candidates and evaluates every one.

    Best-of-N pays for genesis too, so the extra dollars are those of all other stages. `served` has the dollars of
    GPU-hours by (purpose, model) where calls are not billed by token.
    """
    prices = {key: account.dollars for key, account in ledger.accounts.items()} | dict(served or {})
    extra = total(dollars for (purpose, _), dollars in prices.items() if purpose != "genesis")
    return BreakEven(f"best-of-{candidates}", extra, candidates - ledger.evaluations)
