"""What the verbs share: arguments, answers to unknown options and verbs, and output for programs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sharp.document import Block

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON value on standard output.")
run_argument = click.argument("path", metavar="RUN", type=click.Path(path_type=Path, file_okay=False))
prior_option = click.option(
    "--prior-run",
    metavar="RUN",
    type=click.Path(path_type=Path, file_okay=False),
    help="Tell those who write the programs what this earlier run on the same problem and data found.",
)

folder_argument = click.argument(
    "path", metavar="RUN|SWEEP", type=click.Path(path_type=Path, file_okay=False)
)


def echo_blocks(*blocks: Block) -> None:
    """Print blocks of a document: laid out for a terminal, and whole where there is none."""
    import shutil
    import sys

    from sharp.document import render_terminal

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    click.echo(render_terminal(*blocks, width=width))


def clock() -> Callable[[str], None]:
    """Return what says lines on standard error, each with the seconds from now on."""
    start = time.monotonic()

    def say(line: str) -> None:
        click.echo(f"[{time.monotonic() - start:6.1f} s] {line}", err=True)

    return say


class SharpCommand(click.Command):
    """A command that answers an unknown option with those it has."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line of the verb."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise _unknown("option", error.option_name, _options(self, ctx), ctx) from None


class SharpGroup(click.Group):
    """A group of commands that answers an unknown one with those it has."""

    command_class = SharpCommand

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names."""
        if args and args[0] not in self.list_commands(ctx):
            raise _unknown("command", args[0], self.list_commands(ctx), ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options before the command."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise _unknown("option", error.option_name, _options(self, ctx), ctx) from None


def echo_json(value: Any) -> None:
    """Print a value as JSON on one line; numbers that JSON does not have become null."""
    click.echo(json.dumps(_finite(value), ensure_ascii=False, allow_nan=False))


def _options(command: click.Command, ctx: click.Context) -> list[str]:
    return [name for parameter in command.get_params(ctx) for name in parameter.opts if name[:2] == "--"]


def _unknown(what: str, name: str, valid: Iterable[str], ctx: click.Context) -> click.UsageError:
    from sharp.yaml_documents import hint

    return click.UsageError(f"there is no {what} {name!r}{hint(name, valid)}", ctx)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value
