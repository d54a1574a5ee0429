"""`sharp reproduce`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.exits import CELLS_FAILED
from sharp.cli.options import SharpCommand, echo_blocks, echo_json, json_option
from sharp.cli.sweeping import execute_sweep

if TYPE_CHECKING:
    from sharp.document import Block
    from sharp.experiments.studies.model_assignment import ModelAssignment
    from sharp.experiments.studies.study_file import PaperModels
    from sharp.experiments.studies.study_report import StudyPage


@click.command(cls=SharpCommand)
@click.argument("name", metavar="[NAME|FILE.yaml]", required=False)
@click.option("--list", "listed", is_flag=True, help="List the studies, and do nothing else.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    help="Directory of its sweep.  [default: named after the study]",
)
@click.option("--seeds", type=click.IntRange(1), help="Repeats, with the seeds 0, 1, and so on.")
@click.option("--model", "models", multiple=True, help="A model that writes programs. May be repeated.")
@click.option(
    "--judge", "judges", multiple=True, help="A judge of the jury. May be repeated.  [default: the models]"
)
@click.option("--paper-models", "as_published", is_flag=True, help="The models of the paper, in their roles.")
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
@click.option("--report-only", is_flag=True, help="Run nothing: write the page from what the sweep has.")
@click.option(
    "--steal-lease", is_flag=True, help="Take the sweep over from a process that still seems alive."
)
@json_option
def reproduce(
    name: str | None,
    listed: bool,
    folder: Path | None,
    seeds: int | None,
    models: tuple[str, ...],
    judges: tuple[str, ...],
    as_published: bool,
    quick: bool,
    overrides: tuple[str, ...],
    cluster_name: str | None,
    yes: bool,
    dry_run: bool,
    report_only: bool,
    steal_lease: bool,
    as_json: bool,
) -> None:
    """Make a table or a figure of the paper anew, beside the published one.

    A study (docs/studies.md) is a sweep with the tables and figures that are made of it. Without models the rule-based
    model plays all roles; --model and --judge name others, --paper-models takes those of the paper. What is finished is
    never run again; studies of the same runs share them. The page lies in the sweep's directory as NAME.html, NAME.md
    and NAME-1.svg, its records as NAME.csv and NAME.parquet. On a cluster the sweep is launched; once it is finished,
    --report-only writes the page.

    \b
    Examples:
      sharp reproduce --list
      sharp reproduce table2 --quick
      sharp reproduce table2 --paper-models --dry-run
      sharp reproduce feedback --model qwen3-32b --judge qwen3-32b --judge gpt-oss-120b --seeds 3
      sharp reproduce table2 --report-only --dir sweeps/table2-rule-based
    """
    from sharp.experiments.studies.model_assignment import assign_models, folder_of
    from sharp.experiments.studies.study_file import read_study
    from sharp.experiments.sweeps.fingerprint import ResourceCache
    from sharp.experiments.sweeps.plan import make_plan

    if listed or name is None:
        _list(as_json)
        return
    file = read_study(name)
    cast = _cast(file.models, models, judges, as_published=as_published)
    where = folder or folder_of(file, cast, quick=quick)
    if not report_only:
        library = ResourceCache()
        plan = make_plan(assign_models(file, cast, overrides, seeds=seeds, quick=quick), where, library)
        done = execute_sweep(
            plan,
            library,
            cluster_name,
            yes=yes,
            dry_run=dry_run,
            steal_lease=steal_lease,
            as_json=as_json,
            command=f"sharp sweep {_quoted(where)}, then {_rendering(name, where)}",
        )
        if done is None:
            if cluster_name is not None and not (dry_run or as_json):
                click.echo(f"Once it is finished, write its page with: {_rendering(name, where)}")
            return
    from sharp.experiments import render_study

    _show(render_study(file, where), where, as_json)


def _list(as_json: bool) -> None:
    from sharp.document import Table
    from sharp.experiments.studies.study_file import list_studies, read_study

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
    rows = (
        (
            file.study.name,
            f"{file.study.title}: {file.study.reproduces}",
            file.source.name if file.study.runs_from is not None else "",
        )
        for file in files
    )
    echo_blocks(Table(("study", "reproduces", "takes the runs of"), tuple(rows)))


def _cast(
    models: PaperModels, named: tuple[str, ...], judges: tuple[str, ...], *, as_published: bool
) -> ModelAssignment:
    from sharp.experiments.studies.model_assignment import of_models, paper_models, rule_based_models

    if as_published and (named or judges):
        raise click.UsageError("--paper-models says who plays; it goes with neither --model nor --judge")
    if judges and not named:
        raise click.UsageError("--judge needs --model: who writes the programs that they judge?")
    if named:
        return of_models(models, named, judges)
    return paper_models(models) if as_published else rule_based_models(models)


def _show(page: StudyPage, folder: Path, as_json: bool) -> None:
    from sharp.document import Heading, Paragraph
    from sharp.experiments import view_sweep
    from sharp.experiments.frame import plain_rows

    status = view_sweep(folder)
    if as_json:
        records = [
            {name: value for name, value in record.items() if value is not None}
            for record in plain_rows(page.records)
        ]
        echo_json({**status.to_json(), "files": page.files.to_json(), "records": records})
    else:
        tables: list[Block] = []
        for each in page.tables:
            tables += [Heading(each.title), *each.tables]
        paths = "\n".join(map(str, page.files.paths()))
        echo_blocks(
            Paragraph(f"{page.report.title}\n{page.report.headline.sentence}"),
            *tables,
            Paragraph(f"\n{paths}"),
        )
    if status.failed:
        raise click.exceptions.Exit(CELLS_FAILED)


def _rendering(name: str, folder: Path) -> str:
    return f"sharp reproduce {shlex.quote(name)} --report-only --dir {_quoted(folder)}"


def _quoted(folder: Path) -> str:
    return shlex.quote(str(folder))
