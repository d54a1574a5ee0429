"""The verdict on solutions that were computed elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sharp
from sharp.errors import InputError
from sharp.experiments.verification_suite.known_solutions import JacobiSolution
from sharp.problems import Problem, parse_problem
from tests.helpers.problems.specifications import specification
from tests.helpers.solvers.boxed import boxed

ROD = specification("rod", outputs=None, accuracy=1e-4)
PAIR = specification("pair")
MODES = specification("modes", accuracy=1e-6)
SQUARES = np.pi**2 * np.array([1.0, 4.0, 9.0])


def problem(text: str) -> Problem:
    return parse_problem(text, "test.yaml")


def decay(x: Any, t: Any, rate: float = 0.1) -> Any:
    return np.exp(-rate * np.pi**2 * t) * np.sin(np.pi * x)


def statuses(verdict: sharp.Verdict) -> dict[str, str]:
    return {check.name: check.verdict for check in verdict.checks}


def test_a_right_function_is_verified_with_a_bound_on_its_error() -> None:
    verdict = sharp.verify(problem(ROD), decay)
    assert verdict.verified
    assert verdict.error <= 1e-4
    assert {"residual of the equations", "initial state", "boundary conditions", "cross-check"} <= set(
        statuses(verdict)
    )
    assert "Verified: relative error at most" in str(verdict)


def test_a_function_of_another_equation_fails_by_its_residual_and_by_the_second_method() -> None:
    verdict = sharp.verify(problem(ROD), lambda x, t: decay(x, t, rate=0.2))
    found = statuses(verdict)
    assert verdict.status == "failed"
    assert (found["residual of the equations"], found["cross-check"]) == ("failed", "failed")
    assert found["initial state"] == "verified"
    assert "Not verified: residual of the equations" in verdict.reason


def test_a_small_error_is_told_from_none() -> None:
    """The error is 1e-3 in every value: too large for an accuracy of 1e-4, small enough for 1e-2."""
    off = problem(ROD)
    wrong = sharp.verify(off, lambda x, t: 1.001 * decay(x, t))
    assert not wrong.verified
    assert wrong.error == pytest.approx(1e-3, rel=0.1)
    assert sharp.verify(off, lambda x, t: 1.001 * decay(x, t), accuracy=1e-2).verified


def test_systems_are_given_as_sequences_or_mappings() -> None:
    both = lambda x, t: (np.sin(2 * np.pi * x) * np.cos(t), -np.sin(2 * np.pi * x) * np.sin(t))  # noqa: E731
    assert sharp.verify(problem(PAIR), both).verified
    assert sharp.verify(problem(PAIR), lambda x, t: dict(zip("uv", both(x, t), strict=True))).verified
    swapped = sharp.verify(problem(PAIR), lambda x, t: both(x, t)[::-1])
    assert swapped.status == "failed"


def test_arrays_are_compared_at_their_own_points() -> None:
    x, t = np.linspace(0, 1, 21), np.linspace(0, 1, 6)
    right = {"x": x, "t": t, "u": decay(x, t[:, None])}
    verdict = sharp.verify(problem(ROD), right)
    assert verdict.verified
    assert statuses(verdict) == {"cross-check": "verified"}
    wrong = sharp.verify(problem(ROD), {**right, "u": decay(x, t[:, None], rate=0.2)})
    assert wrong.status == "failed"


def test_a_solution_is_compared_with_another_method_than_its_own() -> None:
    solution = sharp.solve(problem(ROD), cross_check=False)
    verdict = sharp.verify(problem(ROD), solution)
    assert verdict.verified
    (second,) = (check for check in verdict.checks if check.name == "cross-check")
    assert f"the distance from {solution.method}" not in second.note
    assert sharp.verify(problem(ROD), solution.to_xarray()).verified
    assert not sharp.verify(problem(ROD.replace("k: 0.1", "k: 0.2")), solution).verified


def test_eigenvalues_are_compared_with_those_computed_here() -> None:
    assert sharp.verify(problem(MODES), {"mu": SQUARES}).verified
    assert sharp.verify(problem(MODES), {"mu": SQUARES[1:]}).status == "failed"
    with pytest.raises(InputError, match="expected the eigenvalues as"):
        sharp.verify(problem(MODES), lambda x: x)
    with pytest.raises(InputError, match="mu: expected eigenvalues, found none"):
        sharp.verify(problem(MODES), {"mu": []})


def test_without_a_verified_solution_to_compare_with_nothing_is_verified() -> None:
    verdict = sharp.verify(problem(ROD), decay, time_limit=1e-9)
    assert verdict.status == "inconclusive"
    assert "no verified solution to compare with" in str(verdict)


@pytest.mark.parametrize(
    ("candidate", "complaint"),
    [
        (lambda x: x, r"the function failed for arrays x, t of shape .*: TypeError"),
        (lambda x, t: (x, t), r"the function gave 2 fields; expected 1 \(u\) for arrays x, t"),
        ({"x": [0, 1], "u": [[0, 0]]}, "expected arrays x, t, u; 't' is missing"),
        ({"x": [0, 0.5], "t": [0], "u": [0, 0]}, r"u: expected an array \[1, 2\], found \[2\]"),
        ({"x": [0, 0.5], "t": [2.0], "u": [[0, 0]]}, "times inside the time interval"),
        (3, "expected a solution, a function or a mapping of arrays, found int"),
    ],
)
def test_candidates_of_another_form_are_refused_with_what_was_expected(
    candidate: Any, complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        sharp.verify(problem(ROD), candidate)


def steady(equation: str, **more: Any) -> Problem:
    ends = ["x = 0: dirichlet u = 0", "x = 1: dirichlet u = 0"]
    return boxed([equation], {"x": [0, 1]}, ends, **more)


def test_fewer_eigenvalues_than_are_asked_for_are_not_verified() -> None:
    string = steady("-u_xx = lam*u", eigenvalue={"name": "lam", "count": 3})
    right = [(k * np.pi) ** 2 for k in (1, 2, 3)]
    assert sharp.verify(string, {"lam": right}).verified
    assert sharp.verify(string, {"lam": right[:2]}).status == "inconclusive"


def test_a_claim_near_another_solution_is_a_doubt_and_neither_right_nor_wrong() -> None:
    """-u'' = 12 (u - u**3) with u = 0 at both ends has two humps beside u = 0, which is found."""
    problem = steady("-u_xx = 12*(u - u**3)")
    hump = JacobiSolution(12.0, 1, 1).values(problem)
    verdict = sharp.verify(problem, lambda x: hump(x.reshape(-1, 1), np.zeros(1))[0].reshape(x.shape))
    assert verdict.status == "inconclusive"
    assert any("another solution" in check.note for check in verdict.checks)
