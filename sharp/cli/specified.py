"""Finding the specification that a user names: a file, or the id of a problem or a case."""

from __future__ import annotations

from pathlib import Path

from sharp.agentbench.cases import list_cases
from sharp.errors import SpecificationError
from sharp.problems.loader import list_problems, names_file, read_text
from sharp.problems.wording import valid_values


def find_specification(name: str) -> tuple[Path, str]:
    """Return the file of a specification and its text.

    A text with a slash or ending in .yaml or .yml names a file, anything else a shipped problem or case by its id.
    Raises `SpecificationError` where there is none.
    """
    path = _path(name)
    return path, read_text(path)


def in_words(name: str) -> bool:
    """Return whether a text states a problem, rather than naming one."""
    return len(name.split()) > 1 and not _is_file(name)


def _is_file(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # longer than a file's name can be
        return False


def _path(name: str) -> Path:
    if names_file(name):
        return Path(name)
    known = {**list_cases(), **list_problems()}
    if name not in known:
        raise SpecificationError(
            f"expected a specification file or the id of a problem; {valid_values('problems', name, known)}"
        )
    return known[name]
