"""Writes docs/cli.md from the commands' own definitions: python tools/cli_docs.py."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sharp.cli import cli
from sharp.cli.exits import MEANINGS

TARGET = Path(__file__).parent.parent / "docs" / "cli.md"

HEAD = """# The command line

Every verb prints its result on standard output and what happens on the way on standard error: plain lines, and on a
terminal one live line of counters below them. With `--json` the result is one JSON value on one line (`sharp watch`
prints one whenever something has changed) and standard output holds nothing else; a number that JSON does not have is
`null`.

An argument `RUN` is a run's directory. What goes wrong is said in a sentence that begins with `sharp:` and names file,
line and key, or what is valid; where a run can go on, the next line says how. A traceback means that nobody foresaw the
error: please report it.

This page is generated from the commands themselves by `tools/cli_docs.py`; a test keeps it true.

## Exit codes

| code | meaning |
| --- | --- |
{codes}

What to do about each: [recovery.md](recovery.md).

## Environment variables

| variable | meaning |
| --- | --- |
| `SHARP_DATA` | folder of generated data sets; by default `pde-sharp` in `$XDG_CACHE_HOME` or `~/.cache` |
| `SHARP_CACHE` | folder of what earlier runs measured ([cache.md](cache.md)); the default is the same |
| `SHARP_RESOURCES` | your own `prompts/`, `models/`, `data/`, `slurm_templates/`, which come before the shipped ones |
| `XDG_CONFIG_HOME` | folder of `pde-sharp/clusters/`, your own cluster profiles; by default `~/.config` |
| the `api_key_env` of a model card | the key of that model's server; keys stand in no file |
| `TMPDIR` | where programs that are evaluated have their scratch space |
"""


def main() -> None:
    """Write the page."""
    TARGET.write_text(page())


def page() -> str:
    """Return the page's Markdown."""
    codes = "\n".join(f"| {code} | {text} |" for code, text in MEANINGS.items())
    return "\n".join([HEAD.format(codes=codes), *_sections(cli, "sharp")])


def _sections(group: click.Group, name: str) -> Iterator[str]:
    context = click.Context(group, info_name=name)
    for verb in group.list_commands(context):
        command = group.get_command(context, verb)
        assert command is not None
        yield _section(command, f"{name} {verb}")
        if isinstance(command, click.Group):
            yield from _sections(command, f"{name} {verb}")


def _section(command: click.Command, name: str) -> str:
    context = click.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    text, _, examples = inspect.cleandoc(command.help or "").partition("\b\nExamples:\n")
    code = inspect.cleandoc(f"\n{examples}")
    options = [_row(p) for p in command.params if isinstance(p, click.Option)]
    table = ["| option | meaning |", "| --- | --- |", *options, ""] if options else []
    level = "###" if name.count(" ") > 1 else "##"
    return "\n".join(
        [f"{level} {name}\n", text.rstrip(), f"\n```sh\n{code}\n```\n", f"Usage: `{usage}`\n", *table]
    )


def _row(option: click.Option) -> str:
    value = "" if option.is_flag else f" {option.metavar or _kind(option.type)}"
    default = f" (default: {option.default})" if option.show_default else ""
    required = " (required)" if option.required else ""
    names = "/".join([option.opts[0], *option.secondary_opts])
    return f"| `{names}{value}` | {option.help}{default}{required} |"


def _kind(kind: click.ParamType[Any]) -> str:
    if isinstance(kind, click.Choice):
        return " or ".join(map(str, kind.choices))
    return kind.name.removesuffix(" range").upper()


if __name__ == "__main__":
    main()
