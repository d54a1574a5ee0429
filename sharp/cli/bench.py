"""`sharp bench`: benchmarks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharp.cli.exits import CELLS_FAILED
from sharp.cli.options import Verbs, echo_json, json_option

if TYPE_CHECKING:
    from sharp.agentbench.matrix import Arm, Task
    from sharp.agentbench.page import Evidence, Files

_POLICIES = ("prog-act", "step-wise", "none")


@click.group(cls=Verbs)
def bench() -> None:
    """Benchmarks: how often, how well and at what cost problems are solved.

    \b
    Examples:
      sharp bench agent --dry-run
      sharp bench agent --mistakes 0.2
    """


@bench.command()
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="Policy. May be repeated.  [default: prog-act, step-wise and none]",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    help="Model card for every role, or one for each: planner=NAME,parser=NAME,… May be repeated.  "
    "[default: playbook]",
)
@click.option(
    "--mistakes",
    "rates",
    type=click.FloatRange(min=0, max=1, max_open=True),
    multiple=True,
    help="Rate at which the playbook errs. May be repeated.  [default: 0]",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Courses of each kind."
)
@click.option(
    "--cases",
    metavar="NAME|CATEGORY",
    multiple=True,
    help="Case or category. May be repeated.  [default: all]",
)
@click.option(
    "--style",
    "styles",
    multiple=True,
    help="Style of statements. May be repeated.  [default: the first of a case]",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("bench/agent"),
    show_default=True,
    help="Where courses, rows and tables are kept.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: as many as there are cores]")
@click.option("--dry-run", is_flag=True, help="Say how many courses there are and are left; do nothing.")
@click.option("--render", is_flag=True, help="Write the tables of what has been played; play nothing.")
@json_option
def agent(
    policies: tuple[str, ...],
    models: tuple[str, ...],
    rates: tuple[float, ...],
    seeds: int,
    cases: tuple[str, ...],
    styles: tuple[str, ...],
    folder: Path,
    jobs: int | None,
    dry_run: bool,
    render: bool,
    as_json: bool,
) -> None:
    """Let teams of agents solve the hundred cases, and put what came of it into tables.

    Every combination of policy, models and rate of mistakes plays every case. Whether it is solved is decided by the
    error of the solution alone (docs/agent-bench.md). The same command goes on after an interruption, and plays again
    only what failed; other options add to the same folder. Tables show the courses that the options name.

    \b
    Examples:
      sharp bench agent --dry-run
      sharp bench agent --mistakes 0 --mistakes 0.2 --jobs 8
      sharp bench agent --model gpt-4o --policy prog-act --seeds 3 --cases heat --cases burgers-plane
      sharp bench agent --mistakes 0.2 --render
    """
    from sharp.agentbench.bench import carry_out, pieces_of
    from sharp.agentbench.page import gather, publish
    from sharp.agentbench.rows import read_record, record_file
    from sharp.errors import ConfigurationError

    if render and not record_file(folder).exists():
        raise ConfigurationError(f"--folder {folder}: no benchmark has been begun there")
    tasks = _tasks(policies or _POLICIES, models or ("playbook",), rates or (0.0,), seeds, cases, styles)
    record = read_record(folder)
    if dry_run:
        left = sum(len(piece.tasks) for piece in pieces_of(tasks, record))
        _show_plan(tasks, left, folder, as_json)
        return
    if not render:
        with _advice():
            carry_out(folder, tasks, jobs or _cores(), lambda line: click.echo(line, err=True))
        record = read_record(folder)
    evidence = gather(folder, tasks, record)
    _show(evidence, publish(folder, evidence), as_json)


def _tasks(
    policies: Sequence[str],
    models: Sequence[str],
    rates: Sequence[float],
    seeds: int,
    cases: Sequence[str],
    styles: Sequence[str],
) -> tuple[Task, ...]:
    from sharp.agentbench.matrix import arms_of, choose_cases, read_models, tasks_of
    from sharp.llm.cards import load_card
    from sharp.runs.directory import check_models

    arms = arms_of(policies, [read_models(text) for text in models], rates)
    check_models([load_card(name) for name in dict.fromkeys(name for arm in arms for name in arm.models)])
    return tasks_of(choose_cases(cases), arms, seeds, styles)


def _cores() -> int:
    return len(os.sched_getaffinity(0))


@contextmanager
def _advice() -> Iterator[None]:
    from hpc.errors import RunLocked

    try:
        yield
    except RunLocked:
        raise
    except BaseException as error:
        error.add_note("what has ended is kept; the same command goes on, --render shows what there is")
        raise


def _show_plan(tasks: Sequence[Task], left: int, folder: Path, as_json: bool) -> None:
    arms: list[Arm] = list(dict.fromkeys(task.arm for task in tasks))
    facts = {
        "folder": str(folder),
        "arms": [arm.label for arm in arms],
        "cases": len({task.case.id for task in tasks}),
        "courses": len(tasks),
        "left": left,
        "most_calls": left * max(task.settings.allowance.calls for task in tasks),
    }
    if as_json:
        echo_json(facts)
        return
    for arm in arms:
        click.echo(f"{arm.label}: {sum(task.arm == arm for task in tasks)} courses")
    click.echo(
        f"{facts['courses']} courses on {facts['cases']} cases, {left} of them left to play, with at most "
        f"{facts['most_calls']} calls of models"
    )


def _show(evidence: Evidence, files: Files, as_json: bool) -> None:
    from sharp.agentbench.summary import outcomes

    found = outcomes(evidence.runs)
    failed = sum(row.ending == "failed" for row in evidence.rows)
    if as_json:
        echo_json(
            {
                "courses": len(evidence.tasks),
                "played": len(evidence.rows),
                "failed": failed,
                "arms": [_facts(each) for each in found],
                "files": {name: str(path) for name, path in vars(files).items()},
            }
        )
    else:
        for each in found:
            share = each.share
            click.echo(
                f"{each.arm}: {each.solved} of {each.cases} cases solved ({share.share:.1%}, 95 % interval "
                f"{share.low:.1%} to {share.high:.1%}), {each.claimed} claimed and not solved"
            )
        click.echo(f"{len(evidence.rows)} of {len(evidence.tasks)} courses played, {failed} failed")
        for path in vars(files).values():
            click.echo(str(path))
    if failed:
        raise click.exceptions.Exit(CELLS_FAILED)


def _facts(outcome: Any) -> dict[str, Any]:
    share = outcome.share
    return {**vars(outcome), "share": share.share, "low": share.low, "high": share.high}
