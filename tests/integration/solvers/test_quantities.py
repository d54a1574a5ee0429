"""Numbers that are asked for of a solution, against exact values; no true error is above its estimate."""

from __future__ import annotations

import json
from dataclasses import replace
from math import exp, pi, sin

import numpy as np
import pytest
from scipy.special import jn_zeros

from sharp.problems import parse_problem
from sharp.solvers import SolveOptions, solve_problem
from sharp.solvers.quantities import compute_all, estimate_all
from tests.helpers.problems.specifications import specification

RODS = specification("warm-rod")
MEMBRANE = specification("membrane")
PLATE = specification("graded-plate")
BRACKET = specification("bracket")
DRUM = specification("drum")
_DECAY = exp(-(pi**2) * 0.1)
EXACT = {
    RODS: {
        "middle": 293.15 + 5 * _DECAY,
        "slope": 5 * pi * exp(-(pi**2) * 0.05),
        "cooling": -5 * pi**2,
        "heat": 20 + 5 * _DECAY * 2 / pi,
        "loss": 10 * (1 - _DECAY) / pi,
        "hottest": 20 + 5 * _DECAY,
        "steepest": 5 * pi,
        "where_it_is_late": 20 + 5 * _DECAY * sin(0.3 * pi),
    },
    MEMBRANE: {"sag": 1.0, "volume": pi / 2, "load": -4 * pi, "slope": 0.0, "edge": -1.6},
    PLATE: {"flux": 2.0, "insulated": 0.0, "mean": 2 * np.log(2) - 1},
    BRACKET: {
        "volume": 0.0,
        "area": 3 - pi / 16,
        "hottest": 10.0,
        "through_hole": 0.0,
        "edge": 5.0,
    },
    DRUM: {"tone": 340 * jn_zeros(1, 1)[0] / (2 * pi)},
}


@pytest.mark.parametrize("text", list(EXACT), ids=["rods", "membrane", "plate", "bracket", "drum"])
def test_quantities_and_their_errors(text: str) -> None:
    solution = solve_problem(parse_problem(text, "asked.yaml"), SolveOptions(time_limit=60, clock="cpu"))
    assert solution.verdict.verified, solution.verdict
    assert solution.quantities.keys() == EXACT[text].keys()
    for name, exact in EXACT[text].items():
        found = solution.quantities[name]
        assert abs(found.value - exact) <= found.error + 1e-12, found
        assert found.verified, found
        assert found.relative <= solution.accuracy


FEW = RODS.partition("  cooling")[0]


def test_a_coarse_solution_says_so_of_its_numbers() -> None:
    problem = parse_problem(FEW, "asked.yaml")
    options = SolveOptions(method="fv", resolution=12, time_limit=20, clock="cpu")
    solution = solve_problem(problem, options)
    found = solution.quantities["slope"]
    assert not found.verified
    assert "not verified" in str(found)
    assert abs(found.value - EXACT[RODS]["slope"]) <= found.error


def test_a_second_method_that_contradicts_is_heard() -> None:
    problem = parse_problem(FEW, "asked.yaml")
    solution = solve_problem(problem, SolveOptions(method="chebyshev", time_limit=20, clock="cpu"))
    assert solution.trial is not None
    assert solution.cross_check is not None
    other = solution.cross_check.study
    assert other is not None
    assert other.solution is not None
    evaluate = other.solution.evaluate
    off = replace(other.solution, evaluate=lambda points, times: 1.1 * evaluate(points, times))
    wrong = replace(other, solution=off, coarser=off)
    own, second = (compute_all(problem, study, 1e-5) for study in (solution.trial.refinement, wrong))
    found = estimate_all(problem, own, 1e-5, second)["middle"]
    assert not found.verified
    assert found.error == pytest.approx(0.1 * (found.value - 273.15), rel=1e-3)


def test_numbers_can_be_asked_later_and_are_in_the_files(tmp_path) -> None:
    from sharp.solvers import Folder
    from sharp.solvers.export import export

    text = FEW.replace("accuracy", "outputs: {at: {t: [0, 0.1]}, probes: {p: {x: 0.5}}}\naccuracy")
    solution = solve_problem(parse_problem(text, "asked.yaml"), SolveOptions(time_limit=20, clock="cpu"))
    later = solution.quantity("u", at={"x": 0.25, "t": 0.1})
    assert later.value == pytest.approx(20 + 5 * _DECAY * sin(pi / 4), abs=later.error)
    assert solution.probe("p")[0] == pytest.approx([25.0, 20 + 5 * _DECAY], abs=1e-4)
    export(solution, Folder(tmp_path / "out", text))
    written = json.loads((tmp_path / "out" / "solve_result.json").read_text())
    assert {each["name"] for each in written["quantities"]} == {"middle", "slope"}
    rows = (tmp_path / "out" / "quantities.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["name", "middle", "slope"]
    assert len((tmp_path / "out" / "probes.csv").read_text().splitlines()) == 4
    assert list(np.load(tmp_path / "out" / "solution.npz")["t"]) == [0.0, 0.1]
    assert "Requested numbers" in (tmp_path / "out" / "report.md").read_text()
