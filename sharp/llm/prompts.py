"""Rendering prompts: Markdown files with Jinja2 placeholders, where an undefined name is an error."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateNotFound

from sharp.errors import ConfigurationError
from sharp.resources import list_resources, resource_dirs


def render(name: str, **values: Any) -> str:
    """Render the prompt `stage/name` with the given values.

    Raises ConfigurationError for an unknown prompt and jinja2.UndefinedError for a name without a value.
    """
    try:
        template = _environment(tuple(resource_dirs("prompts"))).get_template(f"{name}.md")
    except TemplateNotFound as error:
        known = ", ".join(sorted(prompt_hashes()))
        raise ConfigurationError(f"there is no prompt {name!r}; there are: {known}") from error
    return template.render(**values).strip() + "\n"


def prompt_hashes() -> dict[str, str]:
    """Return `{stage/name: sha256}` of all prompts in force, for the record of a run."""
    return {
        f"{path.parent.name}/{path.stem}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in _all_prompts()
    }


@cache
def _environment(folders: tuple[Path, ...]) -> Environment:
    # Prompts are plain text for a model: HTML escaping would corrupt code.
    return Environment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _all_prompts() -> list[Path]:
    stages = {path.parent.name for folder in resource_dirs("prompts") for path in folder.glob("*/*.md")}
    return [path for stage in sorted(stages) for path in list_resources("prompts", f"{stage}/*.md").values()]
