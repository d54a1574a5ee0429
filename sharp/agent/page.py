"""The report of a course: what was stated, what was understood, how the team went about it, and what was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sharp.agent.memory import Memory, Record
from sharp.agent.plans import Step
from sharp.agent.runs import Finished
from sharp.report.blocks import (
    Block,
    Code,
    Facts,
    Figure,
    Note,
    Paragraph,
    Prose,
    Report,
    Section,
    Table,
    Verdict,
)
from sharp.report.drawings import Flow, Task
from sharp.report.text import count_text, duration_text
from sharp.solving.figures import figures
from sharp.solving.understood import understood

_OPENING = {
    "solved": "Solved",
    "unsolved": "Not solved",
    "asks": "Something has to be answered first",
    "refused": "Not solvable as it stands",
}
_PLAYBOOK = (
    "The embedded playbook played at least one of the agents. It understands no language and knows the shipped cases "
    "by heart: this shows the machinery at work, and says nothing of a language model."
)


def headline(finished: Finished) -> str:
    """Return the ending in one sentence."""
    course = finished.course
    if finished.solution is not None and finished.solution.method == "program":
        return "A program ran to its end; nothing has measured whether what it gives solves the problem."
    if course.ending == "solved" and finished.solution is not None:
        return f"Solved: estimated relative error {finished.solution.error:.1e}, and all checks are kept."
    return f"{_OPENING[course.ending]}: {course.reason or 'the plan led to no solution'}."


def compose(finished: Finished) -> Report:
    """Return the report of a course."""
    course = finished.course
    notes = [Note(_PLAYBOOK)] if "playbook" in finished.settings.models.values() else []
    notes += [Note(question, "warning") for question in course.questions]
    sections = [_stated(finished), _plan(course.memory)]
    if finished.problem is not None and finished.solution is not None:
        drawn = tuple(figures(finished.problem, finished.solution.solution))  # type: ignore[arg-type]
        sections.append(Section("solution", "The solution", drawn))
    sections += [_measured(course.memory), _corrections(course.memory), _spent(finished)]
    title = finished.problem.title if finished.problem else "A stated problem"
    return Report(
        title, Verdict(headline(finished), course.ending != "solved"), tuple(notes), tuple(sections)
    )


def _stated(finished: Finished) -> Section:
    blocks: list[Block] = [Prose(finished.settings.statement, "whoever stated the problem")]
    if finished.problem is not None:
        blocks += [Paragraph("What was understood:"), Facts(tuple(understood(finished.problem)))]
    return Section("problem", "The problem", tuple(blocks))


def _plan(memory: Memory) -> Section:
    flow = flow_of(memory)
    words = "; ".join(f"{task.id} {task.tool}: {task.state}" for task in flow.tasks)
    figure = Figure(flow, "Steps from top to bottom; lines show whose results a step uses.", words)
    rows = tuple(_row(memory, step) for step in memory.plan.steps)
    columns = ("step", "tool", "parameters", "result", "versions", "seconds")
    return Section("plan", "The plan", (figure, Table(columns, rows, columns[4:])))


def flow_of(memory: Memory) -> Flow:
    """Return the graph memory as a drawing."""
    uses: dict[tuple[str, str], str] = {}
    for source, port, target, _ in memory.edges():
        uses[source, target] = ", ".join(filter(None, [uses.get((source, target)), port]))
    return Flow(tuple(_task(memory, step) for step in memory.plan.steps), uses)


def _task(memory: Memory, step: Step) -> Task:
    record = memory.current(step.id)
    if record is None:
        return Task(step.id, step.tool, "open", "not carried out as things stand")
    if record.error is not None:
        return Task(step.id, step.tool, "failed", record.error)
    return Task(step.id, step.tool, "done", _result(record))


def _row(memory: Memory, step: Step) -> tuple[str, ...]:
    record = memory.current(step.id)
    parameters = json.dumps(memory.parameters.get(step.id, {}), ensure_ascii=False)
    result = _result(record) if record else "not carried out"
    seconds = f"{record.seconds:.2f}" if record else ""
    return step.id, step.tool, parameters, result, str(memory.version(step.id)), seconds


def _result(record: Record) -> str:
    return record.error or json.dumps(record.summary, ensure_ascii=False)


def _measured(memory: Memory) -> Section:
    columns = ("step", "check", "value", "limit", "kept", "in words")
    rows = tuple(_findings(memory))
    return Section("checks", "What was measured", (Table(columns, rows, columns[2:4]),))


def _findings(memory: Memory) -> Iterator[tuple[str, ...]]:
    for step in memory.plan.steps:
        record = memory.current(step.id)
        for finding in record.findings if record else ():
            value, limit = (
                "" if number is None else f"{number:.1e}" for number in (finding.value, finding.limit)
            )
            yield step.id, finding.name, value, limit, "yes" if finding.passed else "NO", finding.about


def _corrections(memory: Memory) -> Section:
    """List what was done and does not stand any more."""
    current = {record.recipe.name for step in memory.plan.ids if (record := memory.current(step))}
    rows = tuple(
        (
            record.step,
            record.recipe.tool,
            json.dumps(dict(record.recipe.parameters), ensure_ascii=False),
            _result(record),
        )
        for record in memory.records
        if record.recipe.name not in current
    )
    if not rows:
        return Section("corrections", "Corrections", (Paragraph("Nothing had to be done again."),))
    table = Table(("step", "tool", "parameters", "result"), rows)
    return Section("corrections", "Corrections", (Paragraph("Done, and replaced later:"), table))


def _spent(finished: Finished) -> Section:
    usage, settings = finished.usage, finished.settings
    seconds = sum(record.seconds for record in finished.course.memory.records)
    facts = (
        ("policy", settings.policy),
        *((str(role), model) for role, model in settings.models.items()),
        ("model calls", str(finished.calls)),
        ("tokens read", count_text(usage.prompt)),
        ("tokens written", count_text(usage.completion)),
        ("uses of tools", str(len(finished.course.memory.records))),
        ("time in tools", duration_text(seconds)),
        ("seed", str(settings.seed)),
    )
    return Section(
        "spent", "What it took", (Facts(facts), Code(f"sharp solve … --folder {finished.folder.parent}", ""))
    )
