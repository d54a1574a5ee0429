"""What a run used of everything that can be limited, and where there is a limit, what is left."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from hpc.campaign import campaign_status
from hpc.slurm import Campaign, find_campaign
from sharp.document import Block, Paragraph, Table
from sharp.document.text import MISSING, number_text
from sharp.llm.budgets import UNITS, ClusterUsage, used_of
from sharp.report.report_data import ReportData
from sharp.report.report_summary import ended
from sharp.runs.budget import paid_ledger
from sharp.runs.budget_status import BudgetStatus, allowances, worked_minutes

COLUMNS = ("budget", "used", "limit", "left")


def budgets(evidence: ReportData) -> Iterator[Block]:
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


def _row(name: str, used: float | None, allowed: BudgetStatus | None) -> tuple[str, ...]:
    limit = ("none", MISSING) if allowed is None else (f"{allowed.limit:g}", f"{allowed.remaining:.4g}")
    return (UNITS.get(name, name), MISSING if used is None else _amount(used), *limit)


def _amount(used: float) -> str:
    return f"{used:,}" if isinstance(used, int) else number_text(used)


def _spent(evidence: ReportData) -> ClusterUsage:
    """Return time and jobs: those of the campaign on a cluster, else the time that the run was worked on."""
    campaign = find_campaign(evidence.run.path)
    if campaign is None:
        return ClusterUsage(wall_time=worked_minutes(evidence.record.effects.values()))
    seen = campaign_status(campaign, None)
    return ClusterUsage(seen.gpu_hours, _minutes(evidence, campaign), seen.jobs, seen.unmetered)


def _minutes(evidence: ReportData, campaign: Campaign) -> float:
    """Return the minutes from the launch to the run's end, or to now."""
    end = ended(evidence) if evidence.finished else None
    seconds = (end or datetime.now(UTC).timestamp()) - datetime.fromisoformat(campaign.created).timestamp()
    return max(0.0, seconds) / 60
