"""Shipped problems on small grids and short times, and the published files beside the checkout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sharp.problems import Problem, list_problems, parse_problem
from tests.helpers import ROOT

PUBLISHED = ROOT.parent / "shared" / "data" / "pdebench"


def small(problem: str, points: int = 64, times: int = 6, end: float = 0.05, **parameters: float) -> Problem:
    """Load a shipped problem with another grid, other output times and other parameters."""
    text = list_problems()[problem].read_text()
    text = re.sub(r"outputs: .*", f"outputs: {{grid: cells, points: {{x: {points}}}, times: {times}}}", text)
    text = re.sub(r"^time: .*", f"time: [0, {end}]", text, flags=re.MULTILINE)
    for name, value in parameters.items():
        text = re.sub(rf"^  {name}: .*", f"  {name}: {value}", text, flags=re.MULTILINE)
    return parse_problem(text, problem)


def published_file(name: str) -> Path:
    """Return a published file, or skip the test where it is not there."""
    path = PUBLISHED / name
    if not path.is_file():
        pytest.skip(f"no published data at {path}")
    return path
