"""The folder that a user has opened to a client: nothing outside it is read or written in the client's name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sharp.config import RunConfig
from sharp.errors import ConfigurationError, InputError
from sharp.problems import (
    Diagnosis,
    Problem,
    diagnose,
    names_file,
    parse_problem,
    read_specification,
)
from sharp.runs import FILES, models_of
from sharp.solvers import Candidate, claim_of, read_claim

INLINE = "specification.yaml"
# What decides how programs are confined, and where requests and keys go, is the user's to say, not a client's.
_USERS = ("evaluation.sandbox", "evaluation.require_sandbox", "evaluation.mpi", "models.servers")


@dataclass(frozen=True)
class Workspace:
    """A folder, with links resolved."""

    root: Path

    def inside(self, name: str) -> Path:
        """Return the path of a name relative to the folder; raises `InputError` for one that leads out of it."""
        path = (self.root / name).resolve()
        if not path.is_relative_to(self.root):
            raise InputError(
                f"{name}: expected a file below {self.root}, the folder that this server works in"
            )
        return path

    def specification(self, problem: str) -> tuple[str, str]:
        """Return the name and the text of a specification: an id, a file below the folder, or YAML itself.

        Raises `SpecificationError` where it cannot be read, and `InputError` where it or its mesh lies elsewhere.
        """
        if "\n" not in problem and not names_file(problem):
            shipped, text = read_specification(problem)
            return str(shipped), text
        path = self.root / INLINE if "\n" in problem else self.inside(problem)
        text = problem if "\n" in problem else read_specification(path)[1]
        for mesh in _meshes(text):
            self.inside(str(path.parent / mesh))
        return str(path), text

    def diagnosed(self, problem: str) -> tuple[Diagnosis, str]:
        """Return what is to be done with a problem, and its text; raises like `specification`."""
        name, text = self.specification(problem)
        return diagnose(text, name), text

    def problem(self, problem: str) -> Problem:
        """Return a problem; raises like `specification`, and `SpecificationError` where it is wrong."""
        name, text = self.specification(problem)
        return parse_problem(text, name)

    def claim(self, problem: Problem, claim: str | Mapping[str, Any]) -> Candidate:
        """Return a claimed solution: a file of arrays, arrays, or an expression for each field.

        Raises `InputError` where it is neither, `SpecificationError` for expressions outside the grammar.
        """
        if isinstance(claim, str):
            return read_claim(self.inside(claim))
        if not any(isinstance(value, str) for value in claim.values()):
            return {name: np.asarray(value, dtype=float) for name, value in claim.items()}
        return claim_of(problem, {name: str(value) for name, value in claim.items()})

    def check_config(self, config: RunConfig) -> None:
        """Raise `InputError` where a configuration names a file that lies elsewhere."""
        given: list[Any] = [reduce(getattr, map(str, place), config) for place in FILES]
        names = [config.problem, *models_of(config)]
        files = [*given[1:], *config.genesis.start, *filter(names_file, names)]
        for path in filter(None, files):
            self.inside(str(path))


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise `ConfigurationError` for a key that is not a client's to set."""
    for key in settings:
        if any(key == users or key.startswith((f"{users}.", f"{users}_")) for users in _USERS):
            raise ConfigurationError(f"{key}: the user of this server decides this, not its client")


def _meshes(text: str) -> Iterator[str]:
    """Yield the names of mesh files in a specification; none where it is no YAML, which others say."""
    try:
        found: list[Any] = [yaml.safe_load(text)]
    except yaml.YAMLError:
        return
    while found:
        value = found.pop()
        if isinstance(value, Mapping):
            if value.get("type") == "mesh" and isinstance(value.get("file"), str):
                yield value["file"]
            found.extend(value.values())
        elif isinstance(value, list):
            found.extend(value)
