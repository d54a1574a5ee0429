"""Problems as specifications again: plain values, and YAML that reads as the same problem."""

from __future__ import annotations

from typing import Any

from sharp.problems.problem import Problem


def to_document(problem: Problem) -> dict[str, Any]:
    """Return the specification as plain values, without what is left to defaults."""
    return problem.specification.model_dump(mode="json", exclude_defaults=True)


def to_yaml(problem: Problem) -> str:
    """Return a problem as the text of a specification that reads as the same problem."""
    import yaml

    return yaml.safe_dump(to_document(problem), sort_keys=False, allow_unicode=True, width=110)
