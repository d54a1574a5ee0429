"""`sharp reproduce`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.exits import CELLS_FAILED
from sharp.cli.options import Verb, echo_json, json_option
from sharp.cli.sweeping import carry_out

if TYPE_CHECKING:
    from sharp.studies.cast import Cast
    from sharp.studies.form import PaperModels
    from sharp.studies.publish import StudyPage


@click.command(cls=Verb)
@click.argument("name", metavar="[NAME|FILE.yaml]", required=False)
@click.option("--list", "listed", is_flag=True, help="List the studies, and do nothing else.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Directory of its sweep.  [default: named after the study]",
)
@click.option("--seeds", type=click.IntRange(1), help="Repeats, with the seeds 0, 1, and so on.")
@click.option("--model", "models", multiple=True, help="A model that writes programs. May be repeated.")
@click.option(
    "--judge", "judges", multiple=True, help="A judge of the jury. May be repeated.  [default: the models]"
)
@click.option("--paper-models", is_flag=True, help="The models of the paper, in their roles.")
@click.option(
    "--quick",
    is_flag=True,
    help="Few samples, coarse grids and short limits, as the study says; marked on the page.",
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one key of the base, for example --set genesis.candidates=8. May be repeated.",
)
@click.option(
    "--cluster", "cluster_name", metavar="NAME", help="Carry it out by jobs on this cluster, not here."
)
@click.option("--yes", is_flag=True, help="Do not ask before anything is paid for or submitted.")
@click.option("--dry-run", is_flag=True, help="Show the plan, its graph and what it would cost; do nothing.")
@click.option("--render", is_flag=True, help="Run nothing: write the page from what the sweep has.")
@click.option("--takeover", is_flag=True, help="Take the sweep over from a process that still seems alive.")
@json_option
def reproduce(
    name: str | None,
    listed: bool,
    folder: Path | None,
    seeds: int | None,
    models: tuple[str, ...],
    judges: tuple[str, ...],
    paper_models: bool,
    quick: bool,
    overrides: tuple[str, ...],
    cluster_name: str | None,
    yes: bool,
    dry_run: bool,
    render: bool,
    takeover: bool,
    as_json: bool,
) -> None:
    """Make a table or a figure of the paper anew, beside the published one.

    A study (docs/studies.md) is a sweep with the tables and figures that are made of it. Without models the playbook
    plays everybody; --model and --judge name others, --paper-models takes those of the paper. What is finished is
    never run again; studies of the same runs share them. The page lies in the sweep's directory as NAME.html, NAME.md,
    NAME.csv and NAME-1.svg. On a cluster the sweep is launched; once it is finished, --render writes the page.

    \b
    Examples:
      sharp reproduce --list
      sharp reproduce table2 --quick
      sharp reproduce table2 --paper-models --dry-run
      sharp reproduce feedback --model qwen3-32b --judge qwen3-32b --judge gpt-oss-120b --seeds 3
      sharp reproduce table2 --render --folder sweeps/table2-playbook
    """
    from sharp.studies.cast import folder_of, with_cast
    from sharp.studies.form import read_study
    from sharp.studies.publish import render_study
    from sharp.sweeps.library import Library
    from sharp.sweeps.plan import make_plan

    if listed or name is None:
        _list(as_json)
        return
    file = read_study(name)
    cast = _cast(file.models, models, judges, paper_models=paper_models)
    where = folder or folder_of(file, cast, quick=quick)
    if not render:
        library = Library()
        plan = make_plan(with_cast(file, cast, overrides, seeds=seeds, quick=quick), where, library)
        done = carry_out(
            plan,
            library,
            cluster_name,
            yes=yes,
            dry_run=dry_run,
            takeover=takeover,
            as_json=as_json,
            command=f"sharp sweep {_quoted(where)}, then {_rendering(name, where)}",
        )
        if done is None:
            if cluster_name is not None and not (dry_run or as_json):
                click.echo(f"Once it is finished, write its page with: {_rendering(name, where)}")
            return
    _show(render_study(file, where), where, as_json)


def _list(as_json: bool) -> None:
    from sharp.studies.form import list_studies, read_study

    files = [read_study(name) for name in list_studies()]
    if as_json:
        echo_json(
            [
                {
                    "name": f.study.name,
                    "reproduces": f.study.reproduces,
                    "title": f.study.title,
                    "runs": f.source.name,
                }
                for f in files
            ]
        )
        return
    width = max(len(file.study.name) for file in files)
    for file in files:
        runs = f" (the runs of {file.source.name})" if file.study.of is not None else ""
        click.echo(f"{file.study.name:{width}}  {file.study.title}: {file.study.reproduces}{runs}")


def _cast(
    models: PaperModels, named: tuple[str, ...], judges: tuple[str, ...], *, paper_models: bool
) -> Cast:
    from sharp.studies.cast import of_models, of_the_paper, of_the_playbook

    if paper_models and (named or judges):
        raise click.UsageError("--paper-models says who plays; it goes with neither --model nor --judge")
    if judges and not named:
        raise click.UsageError("--judge needs --model: who writes the programs that they judge?")
    if named:
        return of_models(models, named, judges)
    return of_the_paper(models) if paper_models else of_the_playbook(models)


def _show(page: StudyPage, folder: Path, as_json: bool) -> None:
    from sharp.report.markdown import table
    from sharp.sweeps.status import view_sweep

    status = view_sweep(folder)
    files = {"html": page.html, "markdown": page.markdown, "csv": page.csv}
    if as_json:
        named = {name: str(path) for name, path in files.items()}
        records = [record for each in page.shown for record in each.records]
        figures = [str(path) for path in page.figures]
        echo_json({**status.to_json(), "files": {**named, "figures": figures}, "records": records})
    else:
        click.echo(f"{page.report.title}\n{page.report.verdict.sentence}")
        for each in page.shown:
            for block in each.tables:
                click.echo(f"\n{each.title}: {block.caption}\n{table(block)}")
        click.echo("\n" + "\n".join(str(path) for path in (*files.values(), *page.figures)))
    if status.failed:
        raise click.exceptions.Exit(CELLS_FAILED)


def _rendering(name: str, folder: Path) -> str:
    return f"sharp reproduce {shlex.quote(name)} --render --folder {_quoted(folder)}"


def _quoted(folder: Path) -> str:
    return shlex.quote(str(folder))
