"""`sharp problems`, `sharp models` and `sharp metrics`: what there is to run, to ask and to judge by."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sharp.cli.exits import NEEDS_ANSWER, REFUSED
from sharp.cli.options import FILE, FOLDER, MODEL, PROBLEM, SharpCommand, SharpGroup, json_option, show
from sharp.cli.progress import work_log

if TYPE_CHECKING:
    from sharp.document import Block

_VERDICTS = {"reject": "wrong", "clarify": "open", "warn": "warning"}
_RESULTS = {"solve": "correct", "clarify": "needs an answer", "reject": "rejected"}


@click.group(cls=SharpGroup)
def problems() -> None:
    """List, show and check problem specifications.

    A problem is an id or the path of a YAML file.

    \b
    Examples:
      sharp problems list
      sharp problems show burgers
      sharp problems check my-problem.yaml
      sharp problems import benchmark_v2.jsonl
    """


@problems.command("list")
@click.option(
    "--kind",
    type=click.Choice(["dataset", "case", "ill-posed"]),
    help="Only problems with data sets, well-posed cases, or ill-posed ones.",
)
@click.option("--tag", help="Only this tag or category, such as `units` or `heat`.")
@json_option
def list_problems(kind: str | None, tag: str | None, as_json: bool) -> None:
    """List problems (yours are in $SHARP_RESOURCES/data/problems).

    \b
    Examples:
      sharp problems list
      sharp problems list --kind dataset
      sharp problems list --tag heat --json
    """
    from sharp.document import Table
    from sharp.problems import list_entries

    chosen = [
        entry
        for entry in list_entries()
        if kind in (None, entry.kind) and (tag is None or tag in (entry.category, *entry.tags))
    ]
    # Problems with data sets are told apart by the values of their parameters.
    values = {
        entry.id: ", ".join(f"{name} = {value}" for name, value in entry.parameters.items())
        for entry in chosen
        if entry.kind == "dataset"
    }
    rows = tuple((e.id, e.kind, e.category, e.title, values.get(e.id, "")) for e in chosen)
    table = Table(("problem", "kind", "category", "title", "parameters"), rows)
    show(as_json, [asdict(entry) for entry in chosen], [table])


@problems.command("show")
@click.argument("problem", type=PROBLEM)
@json_option
def show_problem(problem: str, as_json: bool) -> None:
    """Show a problem as models see it: description and solver template.

    \b
    Examples:
      sharp problems show reaction-diffusion
      sharp problems show my-problem.yaml --json
    """
    from sharp.problems import load_problem, render_description, render_template

    loaded = load_problem(problem)
    description, template = render_description(loaded), render_template(loaded)
    facts = {"id": loaded.id, "hash": loaded.hash, "description": description, "template": template}
    show(as_json, facts, f"{description}\n\n{template}")


@problems.command("check")
@click.argument("problem", type=PROBLEM)
@json_option
def check_problem(problem: str, as_json: bool) -> None:
    """Check a specification and the well-posedness of its problem.

    Every finding names file, line and key. Exit code 9: something is missing; 2: wrong, contradictory or ill-posed.

    \b
    Examples:
      sharp problems check my-problem.yaml
      sharp problems check my-problem.yaml --json
    """
    from sharp.problems import diagnose_file

    with work_log("checking the problem"):
        found = diagnose_file(problem)
    known, concerns = found.problem, tuple(zip(found.places, found.concerns, strict=True))
    facts = {
        "id": known.id if known else None,
        "hash": known.hash if known else None,
        "ok": found.verdict == "solve",
        "verdict": found.verdict,
        "concerns": [{"place": place, **asdict(concern)} for place, concern in concerns],
    }
    lines = []
    for place, concern in concerns:
        lines.append(f"{place}: {_VERDICTS[concern.verdict]} ({concern.kind}): {concern.message}")
        if concern.question:
            lines.append(f"  {concern.question}")
    show(as_json, facts, "\n".join([*lines, f"{known.id if known else problem}: {_RESULTS[found.verdict]}"]))
    if found.verdict != "solve":
        raise click.exceptions.Exit(NEEDS_ANSWER if found.verdict == "clarify" else REFUSED)


@problems.command("import")
@click.argument("file", type=FILE)
@click.option(
    "--dir",
    "folder",
    type=FOLDER,
    default=Path("pde-agent-bench"),
    show_default=True,
    help="Directory of the specifications.",
)
@json_option
def import_problems(file: Path, folder: Path, as_json: bool) -> None:
    """Import the cases of PDEAgent-Bench as specifications.

    FILE is a case file in JSON lines. Rejected cases are counted by reason, with --json listed. Existing files that
    differ are kept. Exit code 2: nothing was imported.

    \b
    Examples:
      sharp problems import benchmark_v2.jsonl
      sharp problems import benchmark_v2.jsonl --dir cases --json
    """
    from sharp.document import Paragraph, Table
    from sharp.experiments.agent_benchmark.pde_agent_bench import RejectedCase, import_cases, save_case

    with work_log(f"importing the cases of {file}") as log:
        results = [(found.case, save_case(found, folder)) for found in import_cases(file, log.on_work)]
    written = [{"case": case, "file": str(path)} for case, path in results if isinstance(path, Path)]
    refused = [result for _, result in results if isinstance(result, RejectedCase)]
    rows = []
    for reason, number in Counter(one.reason for one in refused).most_common():
        first = next(one for one in refused if one.reason == reason)
        rows.append((str(number), reason, f"{first.case}: {first.detail}" if first.detail else first.case))
    blocks: list[Block] = [
        Paragraph(f"{len(written)} of {len(written) + len(refused)} cases imported into {folder}"),
        *([Table(("cases", "left out because", "such as"), tuple(rows), ("cases",))] if rows else []),
    ]
    show(as_json, {"imported": written, "rejected": [asdict(one) for one in refused]}, blocks)
    if not written:
        raise click.exceptions.Exit(REFUSED)


@click.group(cls=SharpGroup)
def models() -> None:
    """List and show model cards.

    \b
    Examples:
      sharp models list
      sharp models show qwen3-32b
    """


@models.command("list")
@json_option
def list_models(as_json: bool) -> None:
    """List model cards (yours are in $SHARP_RESOURCES/models).

    \b
    Examples:
      sharp models list
      sharp models list --json
    """
    from sharp.document import Table
    from sharp.llm import list_cards, load_card

    cards = [load_card(path) for path in list_cards().values()]
    columns = ("model", "kind", "context", "GPUs", "description")
    rows = tuple(
        (c.name, c.kind, f"{c.context} tokens", str(c.vllm.gpus) if c.vllm else "", c.description)
        for c in cards
    )
    table = Table(columns, rows, columns[2:4])
    show(as_json, [card.model_dump(mode="json") for card in cards], [table])


@models.command("show")
@click.argument("model", type=MODEL)
@json_option
def show_model(model: str, as_json: bool) -> None:
    """Show one model card, by name or file.

    \b
    Examples:
      sharp models show local
      sharp models show my-model.yaml --json
    """
    import yaml

    from sharp.llm import load_card

    card = load_card(model).model_dump(mode="json")
    show(as_json, card, yaml.safe_dump(card, sort_keys=False, allow_unicode=True).rstrip())


@click.command(cls=SharpCommand)
@click.argument("name", required=False)
@click.option("--problem", metavar="PROBLEM", help="Only for this problem (id or file).")
@click.option("--propose", metavar="MODEL", help="Let a model choose for --problem.")
@click.option("--without-data", is_flag=True, help="With --propose: only metrics without reference data.")
@json_option
def metrics(
    name: str | None, problem: str | None, propose: str | None, without_data: bool, as_json: bool
) -> None:
    """List feedback metrics, or let a model propose some.

    With a name, its description. Use names in `feedback.metrics`: `--set feedback.metrics=[residual,two_grid]`.

    \b
    Examples:
      sharp metrics
      sharp metrics --problem burgers
      sharp metrics two_grid --json
      sharp metrics --problem burgers --propose gpt-4o
    """
    if propose is not None or without_data:
        if propose is None or problem is None or name is not None:
            raise click.UsageError("--propose MODEL goes with --problem PROBLEM and no name")
        _propose(problem, propose, without_data=without_data, as_json=as_json)
        return
    from sharp.document import Facts, Paragraph, Table
    from sharp.problems import load_problem
    from sharp.reference import all_metrics, metrics_for
    from sharp.yaml_documents import hint

    known = dict(all_metrics()) if problem is None else metrics_for(load_problem(problem))
    if name is not None and name not in known:
        raise click.UsageError(f"there is no feedback metric {name!r}{hint(name, known)}")
    chosen = list(known.values()) if name is None else [known[name]]
    families = {each.name: ", ".join(each.families) or "every problem" for each in chosen}
    plain = [
        {field.name: getattr(each, field.name) for field in fields(each) if field.name != "function"}
        for each in chosen
    ]
    if name is None:
        rows = tuple((each.name, each.title, families[each.name]) for each in chosen)
        show(as_json, plain, [Table(("measure", "title", "for"), rows)])
        return
    one = chosen[0]
    needs = {"reference data": one.needs_data, "a second run on a coarser grid": one.needs_coarse_run}
    needed = " and ".join(what for what, needed in needs.items() if needed)
    facts = {
        "for": families[one.name],
        "looks at": one.shape,
        "measured as": one.normalisation,
        "needs": needed or "neither reference nor second run",
        "source": one.source,
    }
    about = Paragraph(f"{one.name}: {one.title}\n{one.description}\n")
    show(as_json, plain[0], [about, Facts(tuple(facts.items()))])


def _propose(problem: str, model: str, *, without_data: bool, as_json: bool) -> None:
    """Print what a model proposes as feedback, in the form of a run's options."""
    from sharp.event_loop import run_coroutine
    from sharp.llm import load_card, make_backend
    from sharp.problems import load_problem
    from sharp.tournament import FeedbackProposal, propose_feedback

    async def proposed() -> FeedbackProposal:
        card = load_card(model)
        backend = make_backend(card)
        try:
            return await propose_feedback(load_problem(problem), card, backend, without_data=without_data)
        finally:
            await backend.aclose()

    with work_log(f"asking {model}"):
        found = run_coroutine(proposed())
    option = f"--set feedback.metrics=[{','.join(found.metrics)}]"
    show(as_json, {"metrics": list(found.metrics), "reason": found.reason}, f"{found.reason}\n\n{option}")
