"""What a run used of everything that can be limited, and where there is a limit, what is left."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from hpc.control.overview import look
from hpc.slurm.campaign import Campaign, find_campaign
from sharp.llm.budgets import UNITS, Spent, used_of
from sharp.report.blocks import Block, Paragraph, Table
from sharp.report.evidence import Evidence
from sharp.report.opening import ended
from sharp.report.text import MISSING, number_text
from sharp.runs.allowance import Allowance, allowances, worked_minutes
from sharp.runs.budget import paid_ledger

COLUMNS = ("budget", "used", "limit", "left")


def budgets(evidence: Evidence) -> Iterator[Block]:
    """Yield what was used of every budget, set or not, and what makes that less than all there is to know."""
    ledger, spent = paid_ledger(evidence.run, evidence.record.effects), _spent(evidence)
    limits = {one.name: one for one in allowances(evidence.run.manifest, ledger, spent)}
    rows = tuple(_row(name, used, limits.get(name)) for name, used in used_of(ledger, spent).items())
    yield Table(COLUMNS, rows, COLUMNS[1:], "Budgets: what this run has paid for itself")
    if ledger.total.unpriced_calls:
        yield Paragraph(
            f"{ledger.total.unpriced_calls} calls have no known price and are not among the dollars."
        )
    if spent.unmetered:
        yield Paragraph(
            f"Nobody knows how long {spent.unmetered} jobs held GPUs; they are not among the GPU-hours."
        )


def _row(name: str, used: float | None, allowed: Allowance | None) -> tuple[str, ...]:
    limit = ("none", MISSING) if allowed is None else (f"{allowed.limit:g}", f"{allowed.left:.4g}")
    return (UNITS.get(name, name), MISSING if used is None else _amount(used), *limit)


def _amount(used: float) -> str:
    return f"{used:,}" if isinstance(used, int) else number_text(used)


def _spent(evidence: Evidence) -> Spent:
    """Return time and jobs: those of the campaign on a cluster, else the time that the run was worked on."""
    campaign = find_campaign(evidence.run.path)
    if campaign is None:
        return Spent(wall_time=worked_minutes(evidence.record.effects.values()))
    seen = look(campaign, None)
    return Spent(seen.gpu_hours, _minutes(evidence, campaign), seen.jobs, seen.unmetered)


def _minutes(evidence: Evidence, campaign: Campaign) -> float:
    """Return the minutes from the launch to the run's end, or to now."""
    end = ended(evidence) if evidence.finished else None
    seconds = (end or datetime.now(UTC).timestamp()) - datetime.fromisoformat(campaign.created).timestamp()
    return max(0.0, seconds) / 60
