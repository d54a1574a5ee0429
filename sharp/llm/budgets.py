"""Limits of a run, what is used of them, and when they say stop."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from sharp.llm.ledger import Ledger

UNITS = {"gpu_hours": "GPU-hours", "wall_time": "minutes of wall time"}
"""What budgets count, where their names do not say it."""
_WARN_AT = 0.8


@dataclass(frozen=True)
class BudgetLimits:
    """Limits of a run; None sets no limit. Tokens are prompt and completion tokens together, `wall_time` minutes."""

    calls: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    evaluations: int | None = None
    gpu_hours: float | None = None
    wall_time: float | None = None
    jobs: int | None = None


@dataclass(frozen=True)
class ClusterUsage:
    """What a run used that its effects do not tell; None where there is nothing to count, as without a cluster.

    `gpu_hours` and `jobs` are those of its jobs on a cluster, `unmetered` those of them of which nobody knows how
    long they ran; `wall_time` is in minutes.
    """

    gpu_hours: float | None = None
    wall_time: float | None = None
    jobs: int | None = None
    unmetered: int = 0


@dataclass(frozen=True)
class BudgetAlert:
    """One limit that is used up (`stop`), near, or cannot be checked (both `warn`)."""

    name: str
    used: float
    limit: float
    level: Literal["warn", "stop"]
    sentence: str


def check_budget(
    ledger: Ledger, budget: BudgetLimits, spent: ClusterUsage | None = None
) -> tuple[BudgetAlert, ...]:
    """Return the limits of which a share of at least 0.8 is used; a whole limit says stop."""
    spent = spent or ClusterUsage()
    used, unpriced, unmetered = used_of(ledger, spent), ledger.total.unpriced_calls, spent.unmetered
    unknown = {
        "dollars": f"{unpriced} calls have no known price" if unpriced else "",
        "gpu_hours": f"nobody knows how long {unmetered} jobs ran" if unmetered else "",
    }
    limits = (
        _limit(name, used[name], limit, unknown.get(name, ""))
        for name, limit in asdict(budget).items()
        if limit is not None
    )
    return tuple(limit for limit in limits if limit is not None)


def used_of(ledger: Ledger, spent: ClusterUsage) -> dict[str, float | None]:
    """Return what is used of each budget, None where there is nothing to count."""
    total = ledger.total
    return {
        "calls": total.calls,
        "tokens": total.tokens,
        "dollars": total.known_dollars,
        "evaluations": ledger.evaluations - ledger.cached_evaluations,
        "gpu_hours": spent.gpu_hours,
        "wall_time": spent.wall_time,
        "jobs": spent.jobs,
    }


def _limit(name: str, used: float | None, limit: float, unknown: str) -> BudgetAlert | None:
    unit = UNITS.get(name, name)
    if used is None:
        sentence = f"there is no cluster to count {unit} on; the budget of {limit:g} limits nothing here"
    elif used >= limit:
        return BudgetAlert(name, used, limit, "stop", f"the budget of {limit:g} {unit} is used up ({used:g})")
    elif unknown:
        sentence = f"{unknown}; the budget of {limit:g} {unit} covers only the rest"
    elif used >= _WARN_AT * limit:
        sentence = f"{used / limit:.0%} of the budget of {limit:g} {unit} is used ({used:g})"
    else:
        return None
    return BudgetAlert(name, used or 0, limit, "warn", sentence)
