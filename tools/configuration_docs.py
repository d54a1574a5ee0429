"""Writes docs/configuration.md from the configuration's own definition: python tools/configuration_docs.py."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from hpc.slurm import Minutes
from sharp.config import RunConfig, Server

TARGET = Path(__file__).parent.parent / "docs" / "configuration.md"

HEAD = """# Configuration of a run

A run is described by one YAML file (`sharp run FILE.yaml`) or by a problem's id, with any key changed on the command line:
`sharp run burgers --set synthesis.max_rounds=3`. The resolved configuration is frozen into `RUN/run.yaml`. Only budgets may
change afterwards (`sharp resume RUN --budget calls=500`).

This page is generated from `sharp/config.py` by `tools/configuration_docs.py`; a test keeps it true. Sections are those of the
paper (arXiv 2511.00183); the defaults are its values where it gives any. What it leaves open is listed at the end.
"""

POINTS = """
## Points the paper leaves open

| question | default here |
| --- | --- |
| does saturation end the run or start a new cycle? | a cycle that hit its round limit is judged again, a saturated one ends the run |
| what is saturation? | best-so-far gains less than 1 % in 2 consecutive rounds (1 in later cycles, against the incumbent) |
| is the nominees' run a round? | yes, the first |
| how long is a short list? | half of the pool, at least 3 |
| two judges nominate the same program | it is run once, both keep it |
| which program may a patch start from? | any executed one, declared as `base_id` |
| format of patches, and what if one does not apply | SEARCH/REPLACE or unified diff; exact, whitespace-tolerant, unique fuzzy match, asked again twice (last time for the whole file), forfeit |
| a patch that changes nothing | an executed twin's result is reused, nothing is paid |
| who debugs? | the author model, at most 4 times, on a small smoke set first |
| a judge's memory | one conversation per cycle; shortened only by dropping marked code, with a notice |
| pool of later cycles | all hybrids with results, and originals that some judge short-listed |
| order of candidates | seeded shuffle per judge and cycle |
| feedback `none` | a short run that passes or fails; the judges' last programs decide by majority |
| splits | test: first samples of the file, validation: last ones; test is scored once |
| which program wins? | lowest validation metric of all that ran; ties by length, then id; measured times are noise and would make runs differ |
| unreadable analysis verdict | asked once more, then "continue" |
| analysis once or per candidate? | once a run |
| precision | as written in the program; the finalists (the winner and each judge's best) are scored once more in 64-bit mode |
| an earlier report as input | off; given, its digest stands in the prompts for programs, without anything of test data |
"""


def main() -> None:
    """Write the page."""
    TARGET.write_text(page())


def page() -> str:
    """Return the page's Markdown."""
    sections = "\n".join(_section(name, model, intro) for name, model, intro in _sections(RunConfig, ""))
    return f"{HEAD}\n{sections}{POINTS}"


def _sections(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, type[BaseModel], str]]:
    yield prefix, model, (model.__doc__ or "").strip()
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _sections(field.annotation, f"{prefix}{name}.")
    if prefix == "models.":
        yield "models.servers.CARD.", Server, (Server.__doc__ or "").strip()


def _section(prefix: str, model: type[BaseModel], intro: str) -> str:
    rows = [
        f"| `{prefix}{name}` | {_type(field.annotation)} | {_default(field)} | {field.description} |"
        for name, field in model.model_fields.items()
        if field.description
    ]
    if not rows:
        return ""
    title = prefix.rstrip(".") or "Top level"
    table = "\n".join(["| key | values | default | meaning |", "| --- | --- | --- | --- |", *rows])
    return f"## {title}\n\n{intro.splitlines()[0]}\n\n{table}\n"


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
    names = {"int": "whole number", "float": "number", "str": "text", "bool": "true, false", "Path": "file"}
    return names.get(getattr(annotation, "__name__", ""), "mapping")


def _default(field: Any) -> str:
    if field.default_factory is not None:
        return "none"
    if field.default is PydanticUndefined:
        return "required"
    if field.default is None:
        return "unset"
    if isinstance(field.default, tuple):
        return f"`[{', '.join(map(str, field.default))}]`"
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


if __name__ == "__main__":
    main()
