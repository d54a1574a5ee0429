"""`sharp report` and `sharp replay`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.exits import DIFFERS
from sharp.cli.options import SharpCommand, echo_json, json_option, run_argument

if TYPE_CHECKING:
    from sharp.agent.replay import ReplayReport
    from sharp.runs.execute import Replay


@click.command(cls=SharpCommand)
@run_argument
@json_option
def report(path: Path, as_json: bool) -> None:
    """Write the report of a run or a sweep, finished or not.

    It is report.html, report.md and solver/ in the run's directory. Everything in it is rebuilt from the run's
    record; nothing is asked of a model and no program is run. Of a sweep, its table and its own report are written.

    \b
    Examples:
      sharp report runs/first
      sharp report sweeps/ablation
    """
    from sharp.experiments.sweeps.folder import is_sweep

    names = _of_sweep(path) if is_sweep(path) else _of_run(path)
    if as_json:
        echo_json({name: None if file is None else str(file) for name, file in names.items()})
    else:
        click.echo("\n".join(str(file) for file in names.values() if file is not None))


def _of_run(path: Path) -> dict[str, Path | None]:
    from sharp.api import write_report

    return dict(vars(write_report(path).files))


def _of_sweep(path: Path) -> dict[str, Path | None]:
    from sharp.experiments import publish_again

    files = publish_again(path)
    return {"html": files.html, "markdown": files.markdown, "csv": files.csv, "parquet": files.parquet}


@click.command(cls=SharpCommand)
@click.argument("path", metavar="RUN|FOLDER", type=click.Path(path_type=Path, file_okay=False))
@json_option
def replay(path: Path, as_json: bool) -> None:
    """Re-run a finished run from its record alone and compare.

    No model is asked and no program is run: the method is executed on the recorded answers, and the state at every
    barrier must be the recorded one, byte for byte. Exit code 3 if it is not. Of a problem in words, the folder of
    `sharp solve "…"` (or RUN/translation of `sharp run "…"`) is taken: ending, plan, findings, tokens and, up to
    rounding, the error must be those of its solve_result.json.

    \b
    Examples:
      sharp replay runs/first
      sharp replay solution-text
    """
    from sharp import api
    from sharp.runs.execute import Replay

    result = api.replay(path)
    names: tuple[str, ...] = ("same", "missing", "differing")
    if isinstance(result, Replay):
        names, verdict = (*names, "digest"), _headline(result)
    else:
        verdict = _of_course(result)
    if as_json:
        echo_json({name: getattr(result, name) for name in names})
    else:
        click.echo(verdict)
    if not result.same:
        raise click.exceptions.Exit(DIFFERS)


def _of_course(result: ReplayReport) -> str:
    if result.missing is not None:
        return f"The record does not hold the whole course: {result.missing}"
    if result.differing:
        return f"Not as in solve_result.json: {', '.join(result.differing)}."
    return "Same ending, plan, findings and error, without a call."


def _headline(result: Replay) -> str:
    if result.missing is not None:
        return f"The record does not hold the whole run: {result.missing}"
    if result.differing is not None:
        return f"The state differs from the recorded one at barrier {result.differing!r}."
    return f"Same state at every barrier, without a call: {result.digest}"
