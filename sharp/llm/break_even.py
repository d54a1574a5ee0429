"""Whether a method pays: more dollars for language models against fewer runs of programs (requirement 0.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sharp.llm.ledger import Ledger
from sharp.llm.model_costs import total


@dataclass(frozen=True)
class BreakEven:
    """What a run spends more on language models than a baseline, and how many runs of programs it saves.

    price of one evaluation at break-even = (dollars of this run - dollars of the baseline)
                                            / (evaluations of the baseline - evaluations of this run)

    Where an evaluation costs more than that, this run is the cheaper one; executions, which count debugging too, alike.
    Unknown dollars are None, and so are executions where nobody knows the baseline's. Both differences can be negative.
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

    def sentence(self, dollars_per_hour: float | None = None) -> str:
        """Return the line for a report, with machine time where the machine's hourly price is given."""
        if self.saved_evaluations <= 0:
            return self._nothing_saved()
        saved = f"{_some(self.saved_evaluations, 'evaluation')} saved against {self.baseline}"
        if self.per_evaluation is None:
            return f"{saved}; break-even unknown, for some calls have no known price"
        if not self.per_evaluation:
            return f"{saved} at no more dollars for language models; that pays whatever an evaluation costs"
        line = f"{saved}; that pays where one evaluation costs more than ${self.per_evaluation:.3g}"
        if dollars_per_hour:
            minutes = self.per_evaluation / dollars_per_hour * 60
            line += f" ({minutes:.3g} min of a machine at ${dollars_per_hour:g}/h)"
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
        return f"; {_some(self.saved_executions or 0, 'execution')} saved, at break-even ${self.per_execution:.3g} each"


def _some(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


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
