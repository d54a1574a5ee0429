"""Every case of the benchmark is well-posed: its exact solution satisfies all that the specification says.

Equations, conditions and mean values are checked at random points of a fixed seed, by derivatives of the exact solution
and by no solver (`sharp.problems.well_posedness`), here up to rounding.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sympy
from scipy.special import jn_zeros

from sharp.errors import SpecificationError
from sharp.problems import Problem, exact_solution, parse_problem
from sharp.problems.analysis import order
from sharp.problems.cases import ILL_POSED, BenchmarkCase, list_cases, load_case
from sharp.problems.symbolic import to_sympy
from sharp.problems.well_posedness import check_well_posedness
from tests.helpers.problems.specifications import specification

# The hundred cases by category.
COMPOSITION = {
    "heat": 18,
    "diffusion": 6,
    "diffusion-reaction": 7,
    "wave": 19,
    "klein-gordon": 9,
    "advection": 6,
    "burgers": 4,
    "laplace": 9,
    "poisson": 8,
    "allen-cahn": 6,
    "others": 8,
}

every_case = pytest.mark.parametrize("name", list_cases())


@cache
def loaded(name: str) -> BenchmarkCase:
    return load_case(name)


@pytest.fixture
def _up_to_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users may give constants with seven digits; these cases have all of them."""
    monkeypatch.setattr(exact_solution, "_ROUNDING", 1e-9)


def slopes_repeat(problem: Problem) -> bool:
    """Whether initial states and exact solutions have the same derivatives at both ends of periodic axes."""
    spec = problem.specification
    texts = {**spec.reference.value, **{name: str(one.expression) for name, one in spec.initial.items()}}
    axes = [str(one.axis) for one in spec.boundary if one.axis is not None]
    inside = np.random.default_rng(0).uniform(0.1, 0.9, (4, 4))
    for field, axis in ((field, axis) for field in texts for axis in axes):
        formula = to_sympy(problem.tree(texts[field])).doit().subs(dict(problem.parameters))
        for count in range(1, order(problem.equations, field, axis, problem.space) or 1):
            found = formula.diff(sympy.Symbol(axis), count)
            bounds = {**problem.bounds, **({str(problem.time_name): problem.time} if problem.time else {})}
            slope = sympy.lambdify([sympy.Symbol(name) for name in bounds], found, ["scipy", "numpy"])
            for shares in inside:
                at = [
                    low + share * (high - low)
                    for (low, high), share in zip(bounds.values(), shares, strict=False)
                ]
                ends = [
                    slope(*({**dict(zip(bounds, at, strict=True)), axis: end}.values()))
                    for end in bounds[axis]
                ]
                if not np.isclose(*ends, rtol=1e-9, atol=1e-9 * (1 + abs(slope(*at)))):
                    return False
    return True


@every_case
def test_a_case_loads_and_has_statements_in_different_styles(name: str) -> None:
    case = loaded(name)
    styles = [statement.style for statement in case.statements]
    assert 2 <= len(styles) <= 3
    assert len(set(styles)) == len(styles)
    assert "incomplete" not in styles
    assert case.tags
    assert ("units" in case.tags) <= bool(case.problem.specification.units)


@every_case
@pytest.mark.usefixtures("_up_to_rounding")
def test_the_exact_solution_satisfies_all_that_is_stated(name: str) -> None:
    problem = loaded(name).problem
    assert list(check_well_posedness(problem)) == []
    assert slopes_repeat(problem)


def stated(problem: Problem, text: str) -> float:
    return float(to_sympy(problem.tree(text)).doit().subs(dict(problem.parameters)))


@every_case
def test_stated_eigenvalues_are_as_many_as_wanted_and_ascend(name: str) -> None:
    problem = loaded(name).problem
    wanted, texts = problem.specification.eigenvalue, problem.specification.reference.eigenvalues
    values = [stated(problem, text) for text in texts]
    assert not texts or (wanted is not None and len(values) == wanted.count)
    assert values == sorted(values)


def test_the_tones_of_the_drum_are_zeros_of_bessel_functions() -> None:
    problem = loaded("drum-tones").problem
    zeros = [zero for m in range(5) for zero in jn_zeros(m, 4) for _ in range(1 + (m > 0))]
    scale = problem.parameters["v"] / problem.parameters["R"]
    found = [stated(problem, text) for text in problem.specification.reference.eigenvalues]
    assert found == pytest.approx([(scale * zero) ** 2 for zero in sorted(zeros)[:6]], rel=1e-12)


def test_the_set_has_as_many_cases_of_each_category_as_it_should() -> None:
    paths = list(list_cases().values())
    files = [path for path in paths[0].parents[1].glob("*/*.yaml") if path.parent.name != ILL_POSED]
    assert sorted(paths) == sorted(files)
    assert Counter(path.parent.name for path in paths) == COMPOSITION


def test_about_two_in_five_statements_are_plain() -> None:
    styles = [statement.style for name in list_cases() for statement in loaded(name).statements]
    assert 0.33 <= styles.count("plain") / len(styles) <= 0.47


WAVE = specification("free-string")
PLATE = specification("warm-annulus")
MEAN = specification("mean-square")
SQUARE = specification("square")
RING = specification("ring")


@pytest.mark.parametrize("text", [WAVE, PLATE, MEAN, SQUARE, RING])
@pytest.mark.usefixtures("_up_to_rounding")
def test_problems_that_are_right_pass_every_check(text: str) -> None:
    problem = parse_problem(text, "right")
    assert list(check_well_posedness(problem)) == []
    assert slopes_repeat(problem)


@pytest.mark.parametrize(
    ("text", "right", "wrong", "where"),
    [
        (WAVE, "c**2*u_xx", "c**2*u_xx + 1e-6", "equations"),
        (WAVE, "neumann, field: u, value: 0", "neumann, field: u, value: 1e-6", "boundary"),
        (WAVE, "u_t: 1 +", "u_t: 1.000001 +", "initial"),
        (MEAN, "mean: {u: 0}", "mean: {u: 1e-6}", "mean"),
        (PLATE, "value: x/2*exp(x)", "value: -x/2*exp(x)", "boundary"),
        (PLATE, "value: (3 - x)*exp(x)", "value: (3 + x)*exp(x)", "boundary"),
        (SQUARE, "neumann, field: u, value: -1", "neumann, field: u, value: 1", "boundary"),
        (SQUARE, "value: E", "value: E + y", "boundary"),
        (SQUARE, "value: E", "value: E + 1e-6", "boundary"),
        (RING, "u: sin(x)", "u: sin(x) + x/1e6", "initial"),
    ],
)
@pytest.mark.usefixtures("_up_to_rounding")
def test_problems_that_are_wrong_are_told_what_is_wrong(
    text: str, right: str, wrong: str, where: str
) -> None:
    assert text.count(right) == 1
    concerns = list(check_well_posedness(parse_problem(text.replace(right, wrong), "wrong")))
    assert where in {concern.path[0] for concern in concerns}


def test_a_slope_that_jumps_where_an_axis_closes_is_found() -> None:
    assert not slopes_repeat(parse_problem(RING.replace("u: sin(x)", "u: sin(x/2)"), "wrong"))


# ---------------------------------------------------------------------------------------------- the loader


@pytest.fixture
def own_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's own case, which is right; returns its file."""
    monkeypatch.setenv("SHARP_RESOURCES", str(tmp_path))
    path = tmp_path / "data" / "problems" / "own" / "ring.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(RING + "statements: [{style: words, text: A ring}]\ntags: [easy]\n", encoding="utf-8")
    return path


def test_a_users_own_case_has_the_category_of_its_folder(own_case: Path) -> None:
    case = load_case("ring")
    assert (case.id, case.category, case.tags) == ("ring", "own", ("easy",))
    assert case.statements[0].text == "A ring"
    assert list_cases()["ring"] == own_case


def test_what_is_ill_posed_is_no_case(own_case: Path) -> None:
    own_case.parent.rename(own_case.parents[1] / "ill-posed")
    assert "ring" not in list_cases()
    with pytest.raises(SpecificationError, match="unknown case 'ring'"):
        load_case("ring")


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("id: ring", "id: rung", r"ring\.yaml: expected the id 'ring', .*found 'rung'"),
        ("statements: [{style: words, text: A ring}]", "", r"ring\.yaml: statements: expected the problem"),
        (
            "reference: {kind: computed, method: fourier, resolution: 32, tolerance: 1e-9}",
            "",
            r"ring\.yaml: reference: expected one of kind exact or computed, found none",
        ),
        ("u_t = u_xx", "u_t = u_yy", r"ring\.yaml:6: equations\[0\]"),
    ],
)
def test_what_is_wrong_with_a_case_is_named(own_case: Path, right: str, wrong: str, message: str) -> None:
    own_case.write_text(own_case.read_text(encoding="utf-8").replace(right, wrong), encoding="utf-8")
    with pytest.raises(SpecificationError, match=message):
        load_case("ring")


def test_an_unknown_case_is_answered_with_those_alike() -> None:
    with pytest.raises(SpecificationError, match=r"unknown case 'heat-rod-two-end'; .*heat-rod-two-ends"):
        load_case("heat-rod-two-end")
