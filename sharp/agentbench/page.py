"""The page of a benchmark: what the tables show, and what they do not."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc.files import write_atomic
from hpc.log import software_version
from sharp.agentbench.fixed import Alarm, alarms, floors_of
from sharp.agentbench.matrix import Arm, Task, short_names
from sharp.agentbench.metrics.floors import Floor
from sharp.agentbench.metrics.passes import wilson
from sharp.agentbench.rows import Check, Record, Row
from sharp.agentbench.summary import Runs, by_arm
from sharp.agentbench.tables import (
    alarm_table,
    chain_figure,
    chain_table,
    cost_table,
    group_table,
    outcome_table,
    paired_table,
    passes_table,
    unsolved_table,
)
from sharp.agentbench.truth import TOLERANCE
from sharp.report.blocks import Block, Bullets, Details, Facts, Note, Paragraph, Report, Section, Verdict
from sharp.report.html import render_html
from sharp.report.markdown import render_markdown
from sharp.report.text import plural

PLAYED = (
    "The playbook, a program that knows these cases, stood in for models in {arms}. Its figures try the "
    "machinery of plans, checks and corrections; they say nothing of any language model."
)


@dataclass(frozen=True)
class Evidence:
    """All that a page is made of: the courses that are wanted, their rows, and what depends on no team."""

    tasks: tuple[Task, ...]
    rows: tuple[Row, ...]
    checks: tuple[Check, ...]
    floors: Mapping[str, Floor]
    alarms: tuple[Alarm, ...]

    @property
    def arms(self) -> tuple[Arm, ...]:
        """What is compared."""
        return tuple(dict.fromkeys(task.arm for task in self.tasks))

    @property
    def runs(self) -> Runs:
        """The rows by the short name of their arm, in the order of the tasks."""
        names = short_names(self.arms)
        return {names[arm]: rows for arm, rows in by_arm(self.rows).items()}


@dataclass(frozen=True)
class Files:
    """Where a benchmark is written down."""

    html: Path
    markdown: Path
    csv: Path


def gather(folder: Path, tasks: Sequence[Task], record: Record) -> Evidence:
    """Return the evidence of the courses that are wanted, as far as they have been played."""
    cases = list({task.case.id: task.case for task in tasks}.values())
    return Evidence(
        tuple(tasks),
        tuple(record.rows[task.key] for task in tasks if task.key in record.rows),
        tuple(check for case in cases if (check := record.checks.get(case.problem.hash))),
        floors_of(cases, folder),
        tuple(alarms()),
    )


def publish(folder: Path, evidence: Evidence) -> Files:
    """Write page, Markdown and CSV into the folder of a benchmark."""
    files = Files(*(folder / name for name in ("bench.html", "bench.md", "bench.csv")))
    report = compose(evidence)
    write_atomic(files.html, render_html(report).encode())
    write_atomic(files.markdown, render_markdown(report).encode())
    write_atomic(files.csv, table_csv(evidence.rows))
    return files


def compose(evidence: Evidence) -> Report:
    """Return the page of a benchmark, finished or not."""
    missing = len(evidence.tasks) - len(evidence.rows)
    sentence = f"{len(evidence.rows)} of {plural(len(evidence.tasks), 'course')} played."
    sections = (
        *(_sections(evidence) if evidence.rows else ()),
        _ill_posed(evidence),
        _setting(evidence),
        _published(),
    )
    return Report(
        "Agent benchmark", Verdict(sentence, below_floor=False), tuple(_notes(evidence, missing)), sections
    )


def _notes(evidence: Evidence, missing: int) -> Iterator[Note]:
    played = [arm.label for arm in evidence.arms if arm.played]
    if played:
        everywhere = len(played) == len(evidence.arms)
        yield Note(PLAYED.format(arms="every arm" if everywhere else ", ".join(played)), "warning")
    if missing:
        yield Note(
            f"{plural(missing, 'course')} not played yet: arms may have been compared on few cases so far.",
            "warning",
        )
    renamed = sum(row.by_order for row in evidence.rows)
    if renamed:
        yield Note(
            f"In {plural(renamed, 'course')} fields or coordinates bear other names than the case's; they "
            "were compared in their order."
        )


def _sections(evidence: Evidence) -> Iterator[Section]:
    runs = evidence.runs
    yield Section("results", "Solved or not", tuple(_results(runs)))
    yield Section("categories", "By category", (group_table(runs, "category", lambda row: row.category),))
    if len({row.style for row in evidence.rows}) > 1:
        yield Section(
            "styles", "By style of the statement", (group_table(runs, "style", lambda row: row.style),)
        )
    yield Section("costs", "What it took", (Paragraph(_COSTS), cost_table(runs)))
    yield Section("chains", "How they got there", tuple(_chains(evidence, runs)))


_RESULTS = (
    "A case is solved where the solution's relative L2 error on a fixed held-out set is at most "
    f"{TOLERANCE:g}; what the team says of it counts for nothing. Medians and means of errors are over each "
    "arm's own solved cases, which are not the same for all: only the last column compares."
)
_COSTS = (
    "Seconds are those of all calls and uses of tools; the first arm on a case also pays for what is "
    "imported and compiled once. A correction is a step whose parameters were chosen anew. Tokens are the "
    "server's count; the playbook's are estimates."
)
_CHAINS = (
    "Only steps with a sound result count, against the chain that the specification takes; whether the "
    "exact solution was used, which few statements tell, is free. The last columns are what the chains of "
    "other cases score, which takes no understanding at all: only what is above them says anything. Figures "
    "with the number of an equation are as the paper prints them."
)

_KEPT = (
    "bench.csv beside this page has every figure of every course; docs/agent-bench.md says what they mean."
)


def _results(runs: Runs) -> Iterator[Block]:
    yield Paragraph(_RESULTS)
    yield outcome_table(runs)
    if len(runs) > 1:
        yield paired_table(runs)
    passed = passes_table(runs)
    if passed is not None:
        yield passed
    unsolved = unsolved_table(runs)
    if unsolved.rows:
        yield Details(f"{plural(len(unsolved.rows), 'run')} without a solution within tolerance", (unsolved,))


def _chains(evidence: Evidence, runs: Runs) -> Iterator[Block]:
    yield Paragraph(_CHAINS)
    yield chain_figure(runs, evidence.floors)
    names = tuple(dict.fromkeys(name for row in evidence.rows for name in row.figures))
    yield chain_table(runs, evidence.floors, names)


def _ill_posed(evidence: Evidence) -> Section:
    wrong = [
        f"{alarm.case}: right is to {alarm.expected}, found {alarm.found}"
        for alarm in evidence.alarms
        if not alarm.right
    ]
    false = [f"{check.case}: {check.reason}" for check in evidence.checks if check.verdict != "solve"]
    blocks: list[Block] = [
        Paragraph(
            "No team takes part in this: specifications that say what ill-posed statements say go through "
            "the check that every problem goes through before it is solved."
        ),
        alarm_table(evidence.alarms, evidence.checks),
    ]
    if wrong or false:
        blocks.append(Bullets((*wrong, *false)))
    return Section("ill-posed", "Problems that are ill-posed", tuple(blocks))


def _setting(evidence: Evidence) -> Section:
    tasks = evidence.tasks
    styles = dict.fromkeys(task.statement.style for task in tasks)
    facts = (
        ("arms", "; ".join(arm.label for arm in evidence.arms)),
        ("cases", str(len({task.case.id for task in tasks}))),
        ("styles of statements", ", ".join(styles)),
        ("seeds", str(len({task.seed for task in tasks}))),
        ("calls of models a course", f"at most {tasks[0].settings.allowance.calls}"),
        ("version", software_version()),
    )
    return Section("setting", "The courses", (Facts(facts), Paragraph(_KEPT)))


def _published() -> Section:
    prog_act, step_wise = wilson(90, 100), wilson(86, 100)
    return Section(
        "published",
        "What was published",
        (
            Paragraph(
                "The paper (arXiv 2512.16214) reports 90 % for Prog-Act and 86 % for the step-wise variant, "
                "from one run on 100 problems that are not public: not comparable with the figures above, "
                f"and with intervals of {prog_act.low:.0%} to {prog_act.high:.0%} and {step_wise.low:.0%} to "
                f"{step_wise.high:.0%} not significantly different from each other."
            ),
        ),
    )


def table_csv(rows: Sequence[Row]) -> bytes:
    """Return all rows as CSV, a column for each figure; what is missing is empty."""
    plain = [_flat(row) for row in rows]
    columns = dict.fromkeys(name for row in plain for name in row)
    text = io.StringIO()
    writer = csv.DictWriter(text, tuple(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(plain)
    return text.getvalue().encode()


def _flat(row: Row) -> dict[str, Any]:
    data = row.to_json()
    figures = data.pop("figures")
    return {**data, "wrong": "; ".join(row.wrong), **figures}
