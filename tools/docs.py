"""Writes the generated parts of pages in docs/: python tools/docs.py.

They come from the definitions of commands, configuration and feedback metrics, and stand between comments in the pages,
whose other text is written by hand.
"""

from __future__ import annotations

import inspect
import re
import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from hpc.slurm import Minutes
from sharp.cli import cli
from sharp.cli.exits import MEANINGS
from sharp.config import RunConfig, SamplingByRole, SamplingParams, Server
from sharp.reference import FeedbackMetric, all_metrics

DOCS = Path(__file__).parent.parent / "docs"


def main() -> None:
    """Write the pages."""
    for name in PAGES:
        (DOCS / name).write_text(page(name))


def page(name: str) -> str:
    """Return the Markdown of a page with its generated parts renewed."""
    text = (DOCS / name).read_text()
    for part, write in PAGES[name].items():
        begin, end = f"<!-- generated: {part} -->\n", f"<!-- end of {part} -->\n"
        assert 0 <= text.find(begin) < text.find(end), f"{name} has no place for {part}"
        before, after = text.partition(begin)[0], text.partition(end)[2]
        text = "".join([before, begin, *write(), end, after])
    return text


def exit_codes() -> Iterator[str]:
    """Yield the table of exit codes."""
    yield "| code | meaning |\n| --- | --- |\n"
    for code, text in MEANINGS.items():
        yield f"| {code} | {text} |\n"


def commands(group: click.Group = cli, name: str = "sharp") -> Iterator[str]:
    """Yield a section for each command."""
    context = click.Context(group, info_name=name)
    for verb in group.list_commands(context):
        command = group.get_command(context, verb)
        assert command is not None
        yield _command(command, f"{name} {verb}")
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {verb}")


def _command(command: click.Command, name: str) -> str:
    context = click.Context(command, info_name=name)
    usage = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    takes = [f"Arguments: `{' '.join(usage)}`\n"] if usage and not isinstance(command, click.Group) else []
    text, _, examples = inspect.cleandoc(command.help or "").partition("\b\nExamples:\n")
    code = "\n".join(inspect.cleandoc(f"\n{examples}").splitlines()[:4])
    shown = [""] if isinstance(command, click.Group) else [f"\n```sh\n{code}\n```\n"]
    listed = [p for p in command.params if isinstance(p, click.Option) and p.name != "as_json"]
    options = [*map(_option, listed), ""] if listed else []
    level = "###" if name.count(" ") > 1 else "##"
    parts = [f"{level} {name}\n", _linked(text.rstrip()), *shown, *takes, *options]
    return "\n".join(parts) + "\n"


def _linked(text: str) -> str:
    """Make links of the pages that a help text names."""
    return re.sub(r"docs/((?:\w+/)?([\w-]+)\.md)", r"[\2](../\1)", text)


def _option(option: click.Option) -> str:
    value = "" if option.is_flag else f" {option.metavar or _kind(option.type)}"
    default = f" (default: {option.default})" if option.show_default else ""
    required = " (required)" if option.required else ""
    names = "/".join([option.opts[0], *option.secondary_opts])
    return f"- `{names}{value}`: {_linked(option.help or '')}{default}{required}"


def _kind(kind: click.ParamType[Any]) -> str:
    if isinstance(kind, click.Choice):
        return " or ".join(map(str, kind.choices))
    return kind.name.removesuffix(" range").upper()


def keys() -> Iterator[str]:
    """Yield a table for each section of the configuration."""
    tables = filter(None, (_keys(*section) for section in _models(RunConfig, "")))
    yield "\n".join(tables)


def _models(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, type[BaseModel], str]]:
    yield prefix, model, (model.__doc__ or "").strip()
    if model is SamplingByRole:
        yield "sampling.ROLE.", SamplingParams, (SamplingParams.__doc__ or "").strip()
        return
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _models(field.annotation, f"{prefix}{name}.")
    if prefix == "models.":
        yield "models.servers.CARD.", Server, (Server.__doc__ or "").strip()


def _keys(prefix: str, model: type[BaseModel], intro: str) -> str:
    items = [
        f"- `{prefix}{name}` ({_type(field.annotation)}{_default(field)}): {_linked(field.description)}"
        for name, field in model.model_fields.items()
        if field.description
    ]
    title = prefix.rstrip(".") or "Top level"
    return "\n".join([f"## {title}\n", f"{intro.splitlines()[0]}\n", *items, ""]) if items else ""


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if annotation is Minutes:
        return "time"
    if origin in (Union, types.UnionType):
        return " or ".join(_type(a) for a in arguments if a is not type(None))
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is not None and arguments and isinstance(annotation, type(origin[Any])) is False:
        return "mapping"
    names = {"int": "integer", "float": "number", "str": "text", "bool": "true, false", "Path": "file"}
    return names.get(getattr(annotation, "__name__", ""), "mapping")


def _default(field: Any) -> str:
    if field.default is PydanticUndefined and field.default_factory is None:
        return "; required"
    if field.default is None or field.default_factory is not None:
        return ""
    if isinstance(field.default, tuple):
        return f"; default `[{', '.join(map(str, field.default))}]`"
    return f"; default `{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


def metrics() -> Iterator[str]:
    """Yield what feedback metrics say of themselves, by the problems that they are for."""
    groups: dict[str, list[FeedbackMetric]] = defaultdict(list)
    for measure in all_metrics().values():
        groups[", ".join(measure.families) or "every problem"].append(measure)
    for whom, measures in groups.items():
        yield f"## For {whom}\n\n"
        yield from map(_metric, measures)


def _metric(measure: FeedbackMetric) -> str:
    needs = ["reference data"] * measure.needs_data
    needs += ["a second call on a coarser grid"] * measure.needs_coarse_run
    needed = f" Needs {' and '.join(needs)}." * bool(needs)
    return f"`{measure.name}`\n:   {measure.description}{needed}\n\n"


PAGES: Mapping[str, Mapping[str, Callable[[], Iterable[str]]]] = {
    "reference/cli.md": {"exit codes": exit_codes, "commands": commands},
    "reference/configuration.md": {"keys": keys},
    "reference/feedback.md": {"metrics": metrics},
}

if __name__ == "__main__":
    main()
