"""The suite that tries to make "verified" a lie, and the checks that it is aimed at."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sharp.cli.bench import bench
from sharp.experiments.verification_suite.generator import generate, of_spectrum
from sharp.experiments.verification_suite.sabotage import draw_sabotage
from sharp.experiments.verification_suite.spectra import draw_spectrum, square_well_eigenvalues
from sharp.experiments.verification_suite.suite import WRONG, counts, list_trials, run_suite
from sharp.experiments.verification_suite.trials import VerificationResult, run_trial, true_error
from sharp.solvers import Deadline, SolveOptions, comparison, solve_problem, system_of
from sharp.solvers.comparison import solution_distance
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.eigenvalue_count import count_eigenvalues
from sharp.solvers.exact import exact_errors
from sharp.solvers.grid import Array
from sharp.solvers.other_solutions import other_solutions
from tests.helpers.solvers.boxed import boxed

HELD = ["x = 0: dirichlet u = 0", "x = 1: dirichlet u = 0"]


def test_a_seed_gives_the_same_problems_and_another_seed_others() -> None:
    assert generate(4, 3).problem.specification == generate(4, 3).problem.specification
    assert generate(4, 3).problem.specification != generate(5, 3).problem.specification


@pytest.mark.parametrize("index", range(4))
def test_generated_solutions_satisfy_their_problems(index: int) -> None:
    problem = generate(9, index)
    for known in problem.known_solutions[:1]:
        texts = getattr(known, "texts", None)
        if texts is None:
            continue
        specification = problem.problem.specification
        given = specification.model_copy(
            update={"reference": specification.reference.model_copy(update={"kind": "exact", "value": texts})}
        )
        exact = DiscreteSolution("exact", 1, known.values(problem.problem), 1)
        errors = exact_errors(replace(problem.problem, specification=given), exact)
        assert errors is not None
        assert errors.maximum < 1e-12
    if problem.known_solutions:
        assert true_error(problem, problem.known_solutions[0].values(problem.problem)) == 0


def test_a_slope_is_not_given_where_conductivity_depends_on_the_solution() -> None:
    problem = generate(20261124, 24)
    assert problem.family == "conductivity 1 + u**2, 1D box"
    assert [each.type for each in problem.problem.specification.boundary] == ["dirichlet", "dirichlet"]


def test_spectra_are_known() -> None:
    empty = square_well_eigenvalues([0, 1], [0], 3)
    assert empty == pytest.approx([(math.pi * n) ** 2 for n in (1, 2, 3)])
    # A deep well is a box of its own: the lowest state of a box of width w is (pi/w)**2 above the ground.
    deep = square_well_eigenvalues([0, 0.45, 0.55, 1], [0, -1e8, 0], 1)
    assert deep[0] + 1e8 == pytest.approx((math.pi / 0.1) ** 2, rel=5e-3)
    for seed in range(6):
        found = draw_spectrum(np.random.default_rng(seed)).values
        assert list(found) == sorted(found)


def test_sabotaged_solutions_are_wrong() -> None:
    random = np.random.default_rng(3)
    for index in range(1, 8, 2):
        problem = generate(6, index)
        sabotage = draw_sabotage(problem, random)
        error = true_error(problem, sabotage.values, sabotage.eigenvalues, sabotage)
        # A solution that is zero stays right when it is scaled.
        assert error > problem.problem.specification.accuracy or "several" in problem.family


@pytest.mark.parametrize(("index", "seed"), [(5, 3), (11, 3), (18, 3), (45, 3)])
def test_no_wrong_solution_is_called_verified(index: int, seed: int) -> None:
    row = run_trial(list_trials(seed, index + 1, 6.0)[index])
    assert row.verdict not in (WRONG, "failed"), row.sentence


def test_a_suite_counts_its_rows_and_goes_on_where_it_ended(tmp_path: Path) -> None:
    lines: list[str] = []
    rows = run_suite(tmp_path, list_trials(3, 1, 5.0), 1, lines.append)
    assert len(rows) == len(lines) == 1
    assert run_suite(tmp_path, list_trials(3, 1, 5.0), 1, lines.append) == rows
    assert len(lines) == 1
    bad = VerificationResult("1-1-5-cpu", 1, 1, verdict=WRONG)
    assert counts([*rows, bad])[WRONG] == 1


def test_the_command_writes_rows_and_fails_on_a_wrong_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sharp.experiments.verification_suite import suite

    rows = (VerificationResult("0-0-20-cpu", 0, 0, accuracy=1e-3, error=0.5, verdict=WRONG),)
    monkeypatch.setattr(suite, "run_suite", lambda *_: rows)
    arguments = ["verify", "--count", "1", "--dir", str(tmp_path), "--json"]
    found = CliRunner().invoke(bench, arguments)
    assert found.exit_code == 3
    assert json.loads(found.stdout)["counts"][WRONG] == 1
    assert (tmp_path / "verification.csv").read_text().splitlines()[1].startswith("0-0-20-cpu,0,0,")


# What the suite has found, and what is to find it


def bump(center: float, width: float, height: float = 1.0) -> DiscreteSolution:
    def values(points: Array, times: Array) -> Array:
        away = ((points - center) / width) ** 2
        found = np.sin(np.pi * points[:, 0]) + height * np.exp(-away.sum(axis=1))
        return np.broadcast_to(found, (1, len(times), len(points)))

    return DiscreteSolution("given", 1, values, 1)


def brief(moment: float, duration: float) -> DiscreteSolution:
    def values(points: Array, times: Array) -> Array:
        shape = 1 + np.exp(-(((times - moment) / duration) ** 2))
        return (shape[:, None] * np.sin(np.pi * points[:, 0]))[None]

    return DiscreteSolution("given", 1, values, 1)


def test_solutions_that_differ_in_a_narrow_place_or_for_a_short_time_are_told_apart() -> None:
    line = boxed(["-u_xx = 1"], {"x": [0, 1]}, HELD)
    norm = math.sqrt(1e-3 * math.sqrt(math.pi / 2) / 0.5)
    assert solution_distance(line, bump(0.4321, 1e-3), bump(0.4321, 1e-3, 0.0)) == pytest.approx(
        norm, rel=0.5
    )
    rod = boxed(["u_t = u_xx"], {"x": [0, 1]}, HELD, time=[0, 1], initial={"u": "sin(pi*x)"})
    assert solution_distance(rod, brief(0.4321, 4e-3), brief(9.0, 4e-3)) > 0.03
    assert solution_distance(rod, brief(9.0, 4e-3), brief(9.0, 4e-3)) == 0


@pytest.mark.parametrize("axes", ["xy", "xyz"])
def test_a_needle_of_a_function_that_is_known_by_its_values_alone_is_found(axes: str) -> None:
    box = boxed(["-lap(u) = 1"], {axis: [0, 1] for axis in axes}, ["all: dirichlet u = 0"])
    width, height = 0.002, 100.0
    norm = height * (width * math.sqrt(math.pi / 2)) ** (len(axes) / 2) / math.sqrt(0.5)
    own = replace(bump(0.4321, width, 0.0), method="chebyshev")
    assert solution_distance(box, bump(0.4321, width, height), own) == pytest.approx(norm, rel=0.8)
    assert solution_distance(box, bump(0.4321, width, 0.0), own) == 0


def test_a_function_that_is_too_slow_to_be_scanned_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "SCAN_SECONDS", 0.0)
    box = boxed(["-lap(u) = 1"], {axis: [0, 1] for axis in "xyz"}, ["all: dirichlet u = 0"])
    own = replace(bump(0.4321, 0.1), method="chebyshev")
    assert solution_distance(box, bump(0.4321, 0.1), own) == math.inf
    assert solution_distance(box, own, own) == 0


@pytest.mark.parametrize("kind", ["smooth well", "square wells", "ring", "round drum"])
def test_a_missed_eigenvalue_is_counted_and_none_is_invented(kind: str) -> None:
    spectra = (draw_spectrum(np.random.default_rng(seed)) for seed in range(200))
    chosen = next(each for each in spectra if each.kind == kind and each.count < len(each.values))
    problem = of_spectrum("drawn", chosen)
    assert problem.problem.specification.eigenvalue is not None
    count = problem.problem.specification.eigenvalue.count
    right = count_eigenvalues(problem.problem, problem.eigenvalues[:count], 1e-5)
    assert right is not None
    assert (right.missed, right.unknown) == (0, 0)
    # Without the lowest one, unless others are so near that it is no mistake.
    lacking = problem.eigenvalues[1 : count + 1]
    if abs(lacking[0] - problem.eigenvalues[0]) > 1e-3 * abs(lacking[0]):
        missed = count_eigenvalues(problem.problem, lacking, 1e-5)
        assert missed is not None
        assert missed.missed >= 1


@pytest.mark.parametrize(
    ("equation", "number"), [("-u_xx = 20*(u - u**3)", 3), ("-u_xx = 2*exp(u)", 2), ("-u_xx = -u**3 + 1", 1)]
)
def test_other_solutions_are_found_and_told(equation: str, number: int) -> None:
    found = solve_problem(boxed([equation], {"x": [0, 1]}, HELD), SolveOptions(time_limit=20, clock="cpu"))
    assert found.verdict.verified
    assert len(found.alternatives) + 1 == number
    assert (f"one of at least {number} solutions" in found.verdict.reason) == (number > 1)


def test_linear_problems_have_no_other_solutions() -> None:
    problem = boxed(["-u_xx = 1"], {"x": [0, 1]}, HELD)
    assert other_solutions(system_of(problem), bump(0.5, 0.1), Deadline.within(5)) == ()


def test_a_component_that_starts_at_the_tail_of_a_gaussian_does_not_stop_the_clock() -> None:
    exact = {"u": "sin(pi*x)*cos(t) + exp(-(20*(t - 0.6))**2)*sin(pi*x)"}
    source = (
        "(pi**2 - 1)*sin(pi*x)*cos(t) + (pi**2 + (800*(t - 0.6))**2 - 800)*exp(-(20*(t - 0.6))**2)*sin(pi*x)"
    )
    rate = {"u_t": "480*exp(-144)*sin(pi*x)"}
    problem = boxed(
        [f"u_tt = u_xx + {source}"], {"x": [0, 1]}, HELD, exact, time=[0, 1], initial=rate, accuracy=1e-4
    )
    assert solve_problem(
        problem, SolveOptions(time_limit=30, clock="cpu", cross_check=False)
    ).verdict.verified
