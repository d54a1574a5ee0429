"""What language models cost in dollars: calls billed by token, and GPU-hours of servers of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sharp.llm.ledger import Ledger, split_by_tokens

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
        accounts = {purpose: a for (purpose, name), a in ledger.accounts.items() if name == model}
        split = split_by_tokens(hours, accounts)
        found.update({(purpose, model): share for purpose, share in split.items()})
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
