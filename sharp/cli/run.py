"""`sharp run` and `sharp resume`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sharp.cli.exits import NO_SOLVER
from sharp.cli.options import SharpCommand, echo_json, json_option, prior_option, run_argument

if TYPE_CHECKING:
    from sharp.api import Run
    from sharp.config import RunConfig
    from sharp.evaluation.protocol import Scores


@click.command(cls=SharpCommand)
@click.argument("what", metavar='[PROBLEM|CONFIG.yaml|"WORDS"]', required=False)
@click.option(
    "--run-dir", "path", type=click.Path(path_type=Path), help="Run directory.  [default: runs/NAME-TIME]"
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one key of the configuration, for example --set synthesis.max_rounds=3. May be repeated.",
)
@click.option("--model", help="Model card for every role (single roles: --set models.generator=…).")
@click.option("--base-url", help="Where the OpenAI-compatible server of --model is (…/v1).")
@prior_option
@click.option(
    "--answers",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="For words: a filled-in questions.yaml, in place of the words.",
)
@click.option("--yes", is_flag=True, help="For words: do not ask whether they were understood.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show the resolved configuration and what it would cost; do nothing (words are translated for it).",
)
@json_option
def run(
    what: str | None,
    path: Path | None,
    overrides: tuple[str, ...],
    model: str | None,
    base_url: str | None,
    prior_run: Path | None,
    answers: Path | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Run PDE-SHARP on a problem: from the equations to a scored solver.

    The argument is the id of a shipped problem (`sharp problems list`), a problem specification, a run configuration,
    or a problem in words. Every key of a configuration is described in docs/configuration.md. Whatever happens to the
    run, what was finished is kept, and `sharp resume` goes on from there. Words are first translated into a
    specification in RUN/translation, by the model of models.analyst; what is missing or contradictory is asked for at
    a terminal, or in RUN/translation/questions.yaml (docs/methods.md).

    \b
    Examples:
      sharp run reaction-diffusion --set evaluation.validation=8 --set evaluation.test=8
      sharp run my-run.yaml --run-dir runs/first
      sharp run burgers --model local --base-url http://127.0.0.1:8000/v1
      sharp run burgers --dry-run
      sharp run "u_t = 0.1 u_xx on (0, 1), u = 0 at both ends, u = sin(pi x) at first, until t = 1" --model qwen3-32b
      sharp run --answers runs/first/translation/questions.yaml --model qwen3-32b
    """
    from sharp.api import fresh_path, start_run
    from sharp.problems.loader import is_natural_language
    from sharp.runs.configure import load_config

    if (what is None) == (answers is None):
        raise click.UsageError("expected a problem, a configuration file or a problem in words; or --answers")
    configured = partial(
        load_config, overrides=overrides, model=model, base_url=base_url, prior_run=prior_run
    )
    if what is None or is_natural_language(what):
        from sharp.cli.run_text import RunTextOptions, place_of, specified

        path = path or place_of(answers)
        words = RunTextOptions(what or "", answers, confirm=not (yes or dry_run), as_json=as_json)
        what = str(specified(words, path, configured))
    config = configured(what)
    if dry_run:
        _show_plan(config, as_json)
        return
    path = path or fresh_path(Path(config.problem).stem)
    print_run(start_run(config, path, listener=None), as_json=as_json)


@click.command(cls=SharpCommand)
@run_argument
@click.option(
    "--steal-lease", is_flag=True, help="Take the run over from a controller that still seems alive."
)
@click.option(
    "--budget",
    "budgets",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a budget before going on (calls, tokens, dollars, evaluations, gpu_hours, wall_time, jobs). May be "
    "repeated.",
)
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="MODEL=URL",
    help="Say where a model is served now (…/v1). May be repeated.",
)
@json_option
def resume(
    path: Path, steal_lease: bool, budgets: tuple[str, ...], servers: tuple[str, ...], as_json: bool
) -> None:
    """Continue a run from wherever it stopped.

    Nothing that was finished is paid for again. Budgets, and where models are served, are all that may change.
    Resuming a finished run only rewrites its report.

    \b
    Examples:
      sharp resume runs/first
      sharp resume runs/first --budget calls=500 --budget dollars=20
      sharp resume runs/first --server qwen3-32b=http://node7:8000/v1
    """
    from sharp.api import continue_run
    from sharp.runs.amend import amended
    from sharp.runs.directory import load_run

    run = amended(load_run(path), budgets, servers)
    print_run(continue_run(run, steal_lease=steal_lease, listener=None), as_json=as_json)


def print_run(run: Run, *, as_json: bool) -> None:
    """Say what came of a run, and leave with the right code."""
    if as_json:
        echo_json(_summary(run))
    else:
        click.echo(_format_outcome(run))
    if run.best is None:
        raise click.exceptions.Exit(NO_SOLVER)


def _summary(run: Run) -> dict[str, Any]:
    return {
        "run": str(run.path),
        "best": run.best,
        "test_nrmse": run.test_error,
        "test_nrmse_reference": run.test_error_reference,
        "test_data_error": run.data_error,
        "report": str(run.report),
        "solver": str(run.solver) if run.solver else None,
    }


def _format_outcome(run: Run) -> str:
    if run.best is None:
        return f"No candidate ran successfully.\nReport: {run.report}"
    scores = run.test.scores if run.test is not None else None
    lines = [f"Winner: {run.best}", *(_format_errors(scores) if scores else ())]
    return "\n".join([*lines, f"Report: {run.report}", f"Solver: {run.solver}"])


def _format_errors(scores: Scores) -> Iterator[str]:
    if scores.against_truth:
        yield f"Error on test data, against self-converged solutions: {scores.nrmse:.3e}"
        return
    yield f"Error on test data, against the data set:  {scores.nrmse:.3e}"
    if scores.nrmse_reference is not None:
        yield f"Error on test data, against the solution:  {scores.nrmse_reference:.3e}"
        yield f"The data set's own distance from it:       {scores.data_error:.3e}"


def _show_plan(config: RunConfig, as_json: bool) -> None:
    from sharp.runs.plan import format_plan, plan

    planned = plan(config)
    if as_json:
        echo_json(planned)
    else:
        click.echo(format_plan(planned))
