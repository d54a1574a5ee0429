"""Shipped problems on small grids and short times, and the published files beside the checkout."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from sharp.problems import Problem, list_problems, parse_problem
from tests.helpers import ROOT

PUBLISHED = ROOT.parent / "shared" / "data" / "pdebench"


PORTS = {"Vx": "Vx0", "density": "density0", "pressure": "pressure0"}
"""The ports of the Navier-Stokes problem: initial values by field."""


def small(
    problem: str, points: int = 64, times: int = 6, end: float = 0.05, momentum: str = "", **lines: object
) -> Problem:
    """Load a shipped problem with another grid, other output times and other lines (parameters, `domain`)."""
    text = list_problems()[problem].read_text()
    grid = f"{{grid: cells, points: {{x: {points}}}, times: {times}}}"
    if problem == "darcy":
        grid = f"{{grid: nodes, points: {{x: {points}, y: {points}}}}}"
    text = re.sub(r"^time: .*", f"time: [0, {end}]", text, flags=re.MULTILINE)
    for key, value in {"outputs": grid, **lines}.items():
        text = re.sub(rf"^( *){key}: .*", rf"\g<1>{key}: {value}", text, flags=re.MULTILINE)
    if momentum:
        text = re.sub(r"  - density\*\(Vx_t.*", f"  - {momentum}", text)
    return parse_problem(text, problem)


def gas_problem(kinematic: bool = False, points: int = 64, times: int = 6, end: float = 0.05) -> Problem:
    """Return the Navier-Stokes problem on another grid, with the viscosity of either law."""
    stress = "(zeta + 4/3*eta)*density" if kinematic else "(zeta + 4/3*eta)"
    momentum = f"density*(Vx_t + Vx*Vx_x) = -pressure_x + ({stress}*Vx_x)_x"
    return small("navier-stokes", points, times, end, momentum)


def together(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return all fields of samples, [n, fields, ...], in double precision."""
    return np.stack([np.asarray(values, float) for values in arrays.values()], axis=1)


def published_file(name: str) -> Path:
    """Return a published file, or skip the test where it is not there."""
    path = PUBLISHED / name
    if not path.is_file():
        pytest.skip(f"no published data at {path}")
    return path
