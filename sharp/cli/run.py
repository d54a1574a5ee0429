"""`sharp run` and `sharp resume`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc.errors import Fenced, JournalMismatch, RunLocked, RunVersionError
from sharp.cli.exits import NO_SOLVER
from sharp.cli.options import Verb, echo_json, fresh_path, json_option, prior_option, run_argument
from sharp.errors import BudgetExceeded

if TYPE_CHECKING:
    from sharp.config import RunConfig
    from sharp.evaluation.protocol import Scores
    from sharp.report import ReportFiles
    from sharp.runs.directory import Run

# After these, resuming the run as it is would end the same way.
_NOT_RESUMABLE = (Fenced, JournalMismatch, RunLocked, RunVersionError)


@click.command(cls=Verb)
@click.argument("what", metavar='[PROBLEM|CONFIG.yaml|"WORDS"]', required=False)
@click.option(
    "--run", "path", type=click.Path(path_type=Path), help="Run directory.  [default: runs/NAME-TIME]"
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
    prior_report: Path | None,
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
      sharp run my-run.yaml --run runs/first
      sharp run burgers --model local --base-url http://127.0.0.1:8000/v1
      sharp run burgers --dry-run
      sharp run "u_t = 0.1 u_xx on (0, 1), u = 0 at both ends, u = sin(pi x) at first, until t = 1" --model qwen3-32b
      sharp run --answers runs/first/translation/questions.yaml --model qwen3-32b
    """
    from sharp.cli.specified import in_words
    from sharp.runs.configure import load_config

    if (what is None) == (answers is None):
        raise click.UsageError("expected a problem, a configuration file or a problem in words; or --answers")
    configured = partial(
        load_config, overrides=overrides, model=model, base_url=base_url, prior_report=prior_report
    )
    if what is None or in_words(what):
        from sharp.cli.worded import Words, place_of, specified

        path = path or place_of(answers)
        words = Words(what or "", answers, confirm=not (yes or dry_run), as_json=as_json)
        what = str(specified(words, path, configured))
    config = configured(what)
    if dry_run:
        _show_plan(config, as_json)
        return
    from sharp.runs.directory import create_run
    from sharp.runs.progress import watching

    with watching() as progress:
        created = create_run(config, path or default_path(config), progress.on_data)
    carry_on(created, takeover=False, as_json=as_json)


@click.command(cls=Verb)
@run_argument
@click.option("--takeover", is_flag=True, help="Take the run over from a controller that still seems alive.")
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
    path: Path, takeover: bool, budgets: tuple[str, ...], servers: tuple[str, ...], as_json: bool
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
    from sharp.runs.amend import amended
    from sharp.runs.directory import load_run

    run = amended(load_run(path), budgets, servers)
    carry_on(run, takeover=takeover, as_json=as_json)


def carry_on(run: Run, *, takeover: bool, as_json: bool) -> None:
    """Carry a run on until it is finished, write its report and say what came of it."""
    from sharp.report import write_report
    from sharp.runs.directory import changed_prompts
    from sharp.runs.execute import execute
    from sharp.runs.progress import watching

    with watching(run) as progress, _advice(run.path):
        changed = changed_prompts(run)
        if changed:
            progress.on_warning(f"these prompts differ from the run's beginning: {', '.join(changed)}")
        state = execute(run, takeover=takeover, listener=progress.on_effect, warn=progress.on_warning)
        files = write_report(run, state)
    scores = state.test.scores if state.test is not None else None
    if as_json:
        echo_json(_summary(run.path, state.best, scores, files))
    else:
        click.echo(_in_words(state.best, scores, files))
    if state.best is None:
        raise click.exceptions.Exit(NO_SOLVER)


@contextmanager
def _advice(path: Path) -> Iterator[None]:
    """Add to an error that ends a run what was kept and how to go on."""
    command = f"sharp resume {shlex.quote(str(path))}"
    try:
        yield
    except _NOT_RESUMABLE:
        raise
    except BudgetExceeded as error:
        error.add_note(f"what was finished is kept; go on with: {command} --budget NAME=VALUE")
        raise
    except BaseException as error:
        error.add_note(f"what was finished is kept; go on with: {command}")
        raise


def _summary(path: Path, best: str | None, scores: Scores | None, files: ReportFiles) -> dict[str, Any]:
    return {
        "run": str(path),
        "best": best,
        "test_nrmse": scores.nrmse if scores else None,
        "test_nrmse_truth": scores.nrmse_truth if scores else None,
        "test_floor": scores.floor if scores else None,
        "report": str(files.html),
        "solver": str(files.solver) if files.solver else None,
    }


def _in_words(best: str | None, scores: Scores | None, files: ReportFiles) -> str:
    if best is None:
        return f"No candidate ran successfully.\nReport: {files.html}"
    lines = [f"Winner: {best}", *(_errors_in_words(scores) if scores else ())]
    return "\n".join([*lines, f"Report: {files.html}", f"Solver: {files.solver}"])


def _errors_in_words(scores: Scores) -> Iterator[str]:
    if scores.against_truth:
        yield f"Error on test data, against self-converged solutions: {scores.nrmse:.3e}"
        return
    yield f"Error on test data, against the data set:  {scores.nrmse:.3e}"
    if scores.nrmse_truth is not None:
        yield f"Error on test data, against the solution:  {scores.nrmse_truth:.3e}"
        yield f"The data set's own distance from it:       {scores.floor:.3e}"


def default_path(config: RunConfig) -> Path:
    """Return where a run goes that nobody gave a place."""
    return fresh_path(Path(config.problem).stem)


def _show_plan(config: RunConfig, as_json: bool) -> None:
    from sharp.runs.plan import plan, plan_in_words

    planned = plan(config)
    if as_json:
        echo_json(planned)
    else:
        click.echo(plan_in_words(planned))
