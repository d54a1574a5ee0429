"""`sharp problems`: list, show and check problem specifications."""

from __future__ import annotations

import click

from sharp.cli.options import Verbs, echo_json, json_option


@click.group(cls=Verbs)
def problems() -> None:
    """List, show and check problem specifications.

    A problem is named by its id or by the path of a YAML file.

    \b
    Examples:
      sharp problems list
      sharp problems show burgers
      sharp problems check my-problem.yaml
    """


@problems.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the shipped problems (and your own in $SHARP_RESOURCES/data/problems).

    \b
    Examples:
      sharp problems list
      sharp problems list --json
    """
    from sharp.problems import list_problems, load_problem

    loaded = [load_problem(path) for path in list_problems().values()]
    if as_json:
        echo_json([{"id": p.id, "title": p.title, "parameters": dict(p.parameters)} for p in loaded])
        return
    for problem in loaded:
        values = ", ".join(f"{name} = {value:g}" for name, value in problem.parameters.items())
        click.echo(f"{problem.id:20} {problem.title} ({values})")


@problems.command()
@click.argument("problem")
@json_option
def show(problem: str, as_json: bool) -> None:
    """Show a problem as models see it: its description and the solver template.

    \b
    Examples:
      sharp problems show reaction-diffusion
      sharp problems show my-problem.yaml --json
    """
    from sharp.problems import load_problem, render_description, render_template

    loaded = load_problem(problem)
    description, template = render_description(loaded), render_template(loaded)
    if as_json:
        echo_json({"id": loaded.id, "hash": loaded.hash, "description": description, "template": template})
    else:
        click.echo(f"{description}\n\n{template}")


@problems.command()
@click.argument("problem")
@json_option
def check(problem: str, as_json: bool) -> None:
    """Check a specification; every error names file, line and key.

    \b
    Examples:
      sharp problems check my-problem.yaml
    """
    from sharp.problems import load_problem

    loaded = load_problem(problem)
    if as_json:
        echo_json({"id": loaded.id, "hash": loaded.hash, "ok": True})
    else:
        click.echo(f"{loaded.id}: correct")
