"""What went wrong and what it cost: failures, second scoring, ledger, discarded answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping

from hpc.campaign import ServerGpuHours
from sharp.document import Block, Code, Details, Paragraph, Section, Table
from sharp.document.text import MISSING, count_text, duration_text, error_text, number_text
from sharp.evaluation.protocol import FAILURE_KINDS, CandidateFailure, Evaluation
from sharp.llm.ledger import CallTotals, is_cached
from sharp.llm.model_costs import ModelCosts, break_even
from sharp.report.budget_usage import budgets
from sharp.report.prices import price_table
from sharp.report.report_data import ReportData
from sharp.report.report_summary import elapsed
from sharp.report.servers import costs_of, dollars_by_stage, hours_of, servers

STAGES = ("analysis", "genesis", "judge", "search", "debug", "reporter")
RUN_KINDS = {
    "evaluation": "validation runs",
    "smoke": "smoke runs",
    "debug": "runs of repaired programs",
    "check": "checks of finalists (64-bit mode, order of accuracy)",
    "test": "test run of the winner",
}


def failures(evidence: ReportData) -> Section:
    """Return the failures of programs by class, with the first message of each."""
    found: dict[str, list[tuple[str, CandidateFailure]]] = defaultdict(list)
    for execution in evidence.state.executions:
        if execution.evaluation.failure is not None and execution.reused_from is None:
            found[execution.evaluation.failure.kind].append(
                (execution.candidate, execution.evaluation.failure)
            )
    rows = tuple(
        (
            kind,
            str(len(found[kind])),
            ", ".join(dict.fromkeys(name for name, _ in found[kind])),
            found[kind][0][1].message,
        )
        for kind in FAILURE_KINDS
        if kind in found
    )
    blocks: list[Block] = [
        Paragraph("No program failed." if evidence.state.executions else "No program was run.")
    ]
    if rows:
        blocks = [Table(("class", "runs", "programs", "first message"), rows, ("runs",))]
    return Section("failures", "Failures by class", tuple(blocks))


def second_scoring(evidence: ReportData) -> Section:
    """Return the finalists' scores as written beside those in 64-bit mode."""
    title, precise = "The finalists in 64-bit mode", evidence.state.x64
    if not precise:
        return Section("x64", title, (Paragraph(_no_second_scoring(evidence)),))
    errors = ("error", "against reference", "residual", "largest error", "run time")
    columns = ("program", "precision", *errors, "dtype")
    rows: list[tuple[str, ...]] = []
    for name, evaluation in precise.items():
        written = evidence.runs[name]
        if written.split == "validation":
            rows.append((name, "as written", *_scored(written.evaluation)))
        rows.append((name, "JAX in 64-bit mode", *_scored(evaluation)))
    who = "The winner and each judge's best" if evidence.judged else "The winner"
    explained = Paragraph(
        f"{who}, on validation data. A large difference means that rounding decides the error."
    )
    return Section("x64", title, (explained, Table(columns, tuple(rows), errors)))


def ledger(evidence: ReportData) -> Section:
    """Return calls, tokens, dollars and their prices, runs and their time, budgets, and whether judging pays."""
    hours = hours_of(evidence.run.path)
    counts = (
        "calls",
        "prompt tokens",
        "of these cached",
        "completion tokens",
        "of these reasoning",
        "dollars",
    )
    calls = Table(
        ("stage", "model", *counts), tuple(_accounts(evidence, hours)), counts, "Language-model calls"
    )
    columns = ("runs", "number", "of these from the cache", "seconds")
    runs = Table(columns, tuple(_runs(evidence)), columns[1:], "Program runs")
    asked = sorted(evidence.ledger.by_model.keys() & evidence.run.cards.keys())
    blocks: list[Block] = [calls, *servers(evidence, hours)]
    if asked:
        blocks += [price_table(evidence.run.cards[name] for name in asked)]
    blocks += [Paragraph(_paid(costs_of(evidence, hours))), runs, Paragraph(_machine(evidence))]
    blocks += [*budgets(evidence), *_break_even(evidence, hours)]
    return Section("ledger", "Ledger", tuple(blocks))


def _paid(costs: ModelCosts) -> str:
    """Return in words what language models cost."""
    billed = "an unknown sum" if costs.billed is None else f"${costs.billed:.4g}"
    if not costs.gpu_hours:
        return f"Language models cost {billed} by these prices."
    served = "an unknown sum" if costs.served is None else f"${costs.served:.4g}"
    whole = "" if costs.dollars is None else f", ${costs.dollars:.4g} altogether"
    return (
        f"Language models cost {billed} for calls billed by token and {served} for {number_text(costs.gpu_hours)} "
        f"GPU-hours of servers{whole}."
    )


def _break_even(evidence: ReportData, hours: Mapping[str, ServerGpuHours]) -> Iterator[Block]:
    candidates = sum(candidate.origin == "genesis" for candidate in evidence.state.candidates.values())
    if evidence.state.selections and evidence.ledger.evaluations:
        found = break_even(evidence.ledger, candidates, dollars_by_stage(evidence, hours))
        yield Paragraph(f"Break-even: {found.sentence()}.")


def discarded(evidence: ReportData) -> Section:
    """Return the answers that held no usable program."""
    folded = tuple(
        Details(f"{name}: no usable program", (Code(reason, "text", wrap=True),))
        for name, reason in evidence.state.discarded.items()
    )
    return Section("discarded", "Discarded answers", folded or (Paragraph("None."),))


def _scored(evaluation: Evaluation) -> tuple[str, ...]:
    scores, time = evaluation.scores, duration_text(evaluation.run_time_s)
    if scores is None:
        kind = evaluation.failure.kind if evaluation.failure else MISSING
        return f"failed: {kind}", MISSING, MISSING, MISSING, time, MISSING
    errors = (scores.nrmse, scores.nrmse_reference, scores.residual, scores.max_error)
    return (*map(error_text, errors), time, evaluation.dtype or MISSING)


def _no_second_scoring(evidence: ReportData) -> str:
    options = evidence.run.config.evaluation
    if options.x64 is not None:
        return f"64-bit mode was {'on' if options.x64 else 'off'} for the whole run by its configuration."
    if not options.x64_check:
        return "The configuration asks for no second scoring."
    return "There is no winner to score a second time." if evidence.finished else "Not reached."


def _accounts(evidence: ReportData, served: Collection[str]) -> Iterator[tuple[str, ...]]:
    accounts = evidence.ledger.accounts
    for stage, model in sorted(accounts, key=lambda key: (STAGES.index(key[0]), key[1])):
        account = accounts[stage, model]
        yield stage, model, *_counts(account), "as GPU-hours" if model in served else _dollars(account)
    billed = [a for name, a in evidence.ledger.by_model.items() if name not in served]
    yield "total", "", *_counts(evidence.ledger.total), _dollars(sum(billed, CallTotals()))


def _counts(account: CallTotals) -> Iterator[str]:
    usage = account.usage
    counts = (account.calls, usage.prompt, usage.cached, usage.completion, usage.reasoning)
    return map(count_text, counts)


def _dollars(account: CallTotals) -> str:
    if account.dollars is None and account.known_dollars:
        return f"unknown (known: {account.known_dollars:.4g})"
    return "unknown" if account.dollars is None else f"{account.dollars:.4g}"


def _runs(evidence: ReportData) -> Iterator[tuple[str, ...]]:
    ledger = evidence.ledger
    for kind, name in RUN_KINDS.items():
        for known, number in ledger.runs.items():
            if known == kind:
                cached = count_text(ledger.cached.get(known, 0))
                yield name, count_text(number), cached, number_text(ledger.seconds[known])
    yield "evaluations (runs on validation data)", count_text(ledger.evaluations), "", ""
    yield "executions (validation, smoke and repaired runs)", count_text(ledger.executions), "", ""


def _machine(evidence: ReportData) -> str:
    seconds: Counter[str] = Counter()
    for effect in evidence.record.effects.values():
        if effect.kind == "evaluate" and not is_cached(effect.reply):
            device = str(effect.reply["environment"].get("device", "cpu"))
            seconds["CPU" if device == "cpu" else "GPU"] += effect.reply["total_s"]
    times = ", ".join(f"{number_text(total)} {name}-seconds" for name, total in sorted(seconds.items()))
    span = f"{duration_text(elapsed(evidence))} from the first effect to the last, pauses included"
    return f"Program runs took {times or 'no time'}; {span}."
