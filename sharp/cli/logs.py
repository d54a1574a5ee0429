"""`sharp logs`: what programs and jobs of a run printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.campaign import campaign_of, has_campaign
from sharp.cli.options import SharpCommand, echo_json, folder_argument, json_option
from sharp.errors import InputError

if TYPE_CHECKING:
    from hpc.slurm import Campaign
    from sharp.runs.evaluations import ProgramRun

_LOOK_S = 2.0


@click.command(cls=SharpCommand)
@folder_argument
@click.argument("name", metavar="[CANDIDATE|SUBMISSION|JOB]", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is printed, until it is over.")
@click.option("--code", is_flag=True, help="Show the candidate's program, too.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Lines of each file, counted from its end.",
)
@json_option
def logs(path: Path, name: str | None, follow: bool, code: bool, lines: int, as_json: bool) -> None:
    """Show what a candidate's evaluations printed, or what a job did.

    Of a candidate: how each of its evaluations went, where it ran, what it printed and how it failed. Of a submission
    or job on the cluster (as `sharp status --jobs` names them; an element of an array is JOB_INDEX): its log. Without a
    name: the newest log of the controller.

    \b
    Examples:
      sharp logs runs/first c003 --code
      sharp logs runs/first 481516_2 -f
      sharp logs runs/first -f
    """
    job = _job_of(path, name)
    if job is not None or name is None:
        _show_files(path, job, follow, lines, as_json)
    else:
        _show_candidate(path, name, follow, code, lines, as_json)


def _job_of(path: Path, name: str | None) -> str | None:
    """Return the id of the job that a name means; None where it means none."""
    if name is None or not has_campaign(path):
        return None
    from hpc.campaign import names_of
    from hpc.slurm import read_book

    known = names_of(read_book(campaign_of(path).book))
    if name.partition("_")[0] in known.values():
        return name
    return known.get(name)


def _show_files(path: Path, job: str | None, following: bool, lines: int, as_json: bool) -> None:
    from hpc.campaign import follow, tail

    campaign = _campaign(path)
    find = _finder(campaign, job)
    if not find() and not (following and not _is_over(campaign, job)()):
        raise InputError(
            f"{campaign.logs} holds nothing that {_who(job)} has printed (jobs that evaluate and end well leave "
            f"no log); jobs: {_jobs(campaign)}"
        )
    if as_json:
        echo_json([{"file": str(file), "text": tail(file, lines)} for file in find()])
    elif following:
        _print(follow(find, _is_over(campaign, job), lines))
    else:
        _print((file, tail(file, lines)) for file in find())


def _campaign(path: Path) -> Campaign:
    """Return the campaign of a folder; where it has none, say which candidates there are."""
    if not has_campaign(path) and (path / "run.yaml").exists():
        raise InputError(f"{path} runs on this machine, without jobs; name a candidate: {_candidates(path)}")
    return campaign_of(path)


def _finder(campaign: Campaign, job: str | None) -> Callable[[], tuple[Path, ...]]:
    from hpc.campaign import logs_of, newest_of_controller
    from hpc.slurm import read_book

    if job is not None:
        return lambda: logs_of(campaign, job)
    return lambda: newest_of_controller(campaign, read_book(campaign.book))


def _is_over(campaign: Campaign, job: str | None) -> Callable[[], bool]:
    """Return whether a job, or without one the whole chain of controllers, has ended, by the book."""
    from hpc.campaign import submission_of
    from hpc.slurm import read_book

    def over() -> bool:
        book = read_book(campaign.book)
        if job is None:
            return not any(s.role == "controller" for s in book.open)
        submission = submission_of(book, job)
        return submission is None or submission.ended is not None

    return over


def _print(pieces: Iterable[tuple[Path, str]]) -> None:
    last = None
    for file, text in pieces:
        if file != last:
            click.echo(click.style(f"==> {file} <==", bold=True))
            last = file
        if text:
            click.echo(text)


def _show_candidate(path: Path, name: str, following: bool, code: bool, lines: int, as_json: bool) -> None:
    shown = 0
    while True:
        runs, ended = _runs_of(path, name, may_come=following)
        for run in runs[shown:]:
            _show_run(run, code and not shown, lines, as_json)
            shown += 1
        if not following or ended:
            return
        import time

        time.sleep(_LOOK_S)


def _runs_of(path: Path, name: str, *, may_come: bool) -> tuple[tuple[ProgramRun, ...], bool]:
    """Return the evaluations of a candidate, and whether no more will come by itself."""
    from hpc.journal import read_run
    from sharp.experiments.sweeps.folder import begun_runs, is_sweep
    from sharp.runs.evaluations import candidates_of, program_runs
    from sharp.runs.manifest import read_manifest
    from sharp.yaml_documents import hint

    if is_sweep(path):
        cells = ", ".join(sorted(begun_runs(path)))
        raise InputError(
            f"{path} is a sweep, and {name!r} none of its jobs ({', '.join(_names(path)) or 'there are none'}); for a "
            f"candidate, name the run of a cell: sharp logs {path / 'runs'}/CELL {name}; cells: {cells or 'none yet'}"
        )
    read_manifest(path)
    record = read_run(path)
    every = program_runs(record)
    runs = tuple(run for run in every if run.candidate == name)
    ended = record.holder is None
    if not runs and (ended or not may_come):
        valid = [*candidates_of(every), *_names(path)]
        raise InputError(
            f"{path}: there is no candidate that has run, submission or job {name!r}{hint(name, valid)}"
        )
    return runs, ended


def _show_run(run: ProgramRun, code: bool, lines: int, as_json: bool) -> None:
    if as_json:
        echo_json(run.to_json() if code else {k: v for k, v in run.to_json().items() if k != "code"})
        return
    click.echo("\n".join(_run_lines(run, lines)))
    if code:
        click.echo(_block("program", run.code, None))


def _run_lines(run: ProgramRun, lines: int) -> Iterator[str]:
    job = f", job {run.job}" if run.job else ""
    known = ", known from an earlier run" if run.cached else ""
    verdict = f"failed ({run.failure}): {run.message}" if run.failure else _error(run)
    yield click.style(f"{run.path}: {verdict}", bold=True)
    yield f"  on {run.node or 'an unknown node'}{job}{known}; asked {run.started}, answered after {run.seconds:.1f} s"
    if run.folder:
        yield f"  files: {run.folder}"
    for title, text in (
        ("traceback", run.traceback),
        ("printed", run.stdout),
        ("standard error", run.stderr),
    ):
        if text.strip():
            yield _block(title, text, lines)


def _error(run: ProgramRun) -> str:
    return "done" if run.error is None else f"error {run.error:.3e}"


def _block(title: str, text: str, lines: int | None) -> str:
    kept = text.rstrip().splitlines()[-lines:] if lines else text.rstrip().splitlines()
    return "\n".join([f"  {title}:", *(f"    {line}" for line in kept)])


def _who(job: str | None) -> str:
    return "the controller" if job is None else f"job {job}"


def _candidates(path: Path) -> str:
    from hpc.journal import read_run
    from sharp.runs.evaluations import candidates_of, program_runs

    return ", ".join(candidates_of(program_runs(read_run(path)))) or "none has run yet"


def _names(path: Path) -> list[str]:
    """Return the submissions and jobs of a folder, if it has a campaign."""
    if not has_campaign(path):
        return []
    from hpc.campaign import names_of
    from hpc.slurm import read_book

    return list(names_of(read_book(campaign_of(path).book)))


def _jobs(campaign: Campaign) -> str:
    from hpc.campaign import names_of
    from hpc.slurm import read_book

    return ", ".join(names_of(read_book(campaign.book))) or "none"
