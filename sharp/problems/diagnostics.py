"""What may be wrong with a problem, as opposed to its text: a kind, a verdict, a place and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sharp.yaml_source import Path

# refuse: no solution exists or none depends continuously on the data; clarify: something is missing or ambiguous;
# warn: solvable as it is, and worth knowing.
Verdict = Literal["reject", "clarify", "warn"]


@dataclass(frozen=True)
class Diagnostic:
    """One thing that is or may be wrong with a problem, at a path of its specification.

    `kind` is a stable word, `message` a sentence without its final stop; `question` is there where the verdict is
    `ask`, and whoever put the problem can answer it.
    """

    kind: str
    verdict: Verdict
    path: Path
    message: str
    question: str = ""
