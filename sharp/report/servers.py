"""What servers on the cluster cost, shared among stages by tokens, and how often they knew a prompt's beginning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from hpc.campaign import JobUsage, hours_by_model
from hpc.serving import read_services
from hpc.slurm import find_campaign, read_book
from sharp.document import Block, Paragraph, Table
from sharp.document.text import MISSING, count_text, number_text, share_text
from sharp.llm.ledger import CallTotals
from sharp.llm.model_costs import ModelCosts, model_costs, served_dollars, shares
from sharp.report.report_data import ReportData


def hours_of(folder: Path) -> dict[str, JobUsage]:
    """Return what the servers of each model held GPUs for; nothing where a run or sweep has no campaign."""
    campaign = find_campaign(folder)
    if campaign is None:
        return {}
    return hours_by_model(read_book(campaign.book), read_services(campaign.services))


def costs_of(evidence: ReportData, hours: Mapping[str, JobUsage]) -> ModelCosts:
    """Return what the language models of a run cost, billed by token or served for it alone."""
    return model_costs(evidence.ledger, _plain(hours), evidence.run.cards)


def dollars_by_stage(
    evidence: ReportData, hours: Mapping[str, JobUsage]
) -> dict[tuple[str, str], float | None]:
    """Return the dollars of servers by stage and model; None where a card has no price of GPU-hours."""
    return {
        (stage, model): served_dollars(evidence.run.cards.get(model), share)
        for (stage, model), share in shares(evidence.ledger, _plain(hours)).items()
    }


def servers(evidence: ReportData, hours: Mapping[str, JobUsage]) -> Iterator[Block]:
    """Yield a table of GPU-hours by model and stage where servers had any, and a word on prefix caches."""
    if hours:
        columns = ("model", "stage", "tokens", "GPU-hours", "dollars")
        rows = (row for model in sorted(hours) for row in _rows(evidence, model, hours))
        yield Table(
            columns, tuple(rows), columns[2:], "Servers of this campaign, shared among stages by tokens"
        )
        yield from _unmetered(hours)
    yield from _caches(evidence)


def _rows(evidence: ReportData, model: str, hours: Mapping[str, JobUsage]) -> Iterator[tuple[str, ...]]:
    ledger, dollars = evidence.ledger, dollars_by_stage(evidence, hours)
    for key, share in sorted(shares(ledger, {model: hours[model].gpu_hours}).items()):
        tokens = count_text(ledger.accounts[key].tokens)
        yield model, key[0], tokens, number_text(share), _dollars(dollars[key])
    tokens = count_text(ledger.by_model.get(model, CallTotals()).tokens)
    whole = served_dollars(evidence.run.cards.get(model), hours[model].gpu_hours)
    yield (
        model,
        f"all ({hours[model].jobs} jobs)",
        tokens,
        number_text(hours[model].gpu_hours),
        _dollars(whole),
    )


def _plain(hours: Mapping[str, JobUsage]) -> dict[str, float]:
    return {model: one.gpu_hours for model, one in hours.items()}


def _dollars(dollars: float | None) -> str:
    return MISSING if dollars is None else f"{dollars:.4g}"


def _unmetered(hours: Mapping[str, JobUsage]) -> Iterator[Block]:
    count = sum(one.unmetered for one in hours.values())
    if count:
        yield Paragraph(
            f"Nobody knows how long {count} of these jobs held their GPUs; they count as nothing here."
        )


def _caches(evidence: ReportData) -> Iterator[Block]:
    total = evidence.ledger.total
    if total.cached_share is None:
        return
    known = {model: a for model, a in evidence.ledger.by_model.items() if a.cached_share is not None}
    listed = ", ".join(f"{model} {_share(account)}" for model, account in sorted(known.items()))
    yield Paragraph(f"{_share(total)} of prompt tokens came from the servers' prefix caches ({listed}).")


def _share(account: CallTotals) -> str:
    return share_text(account.cached_share)
