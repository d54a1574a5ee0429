from __future__ import annotations

import pytest

from sharp.errors import SpecificationError
from sharp.problems import parse_problem, render_description, to_text
from tests.helpers.problems.specifications import specification

GAS = specification("gas")


def test_definitions_are_put_into_the_equations() -> None:
    problem = parse_problem(GAS, "gas")
    assert to_text(problem.equations[1]) == "m_t + (m*(m/rho) + k*rho**2)_x = 0"
    assert "where v = m/rho" in render_description(problem)


def test_the_expression_of_a_definition_is_part_of_the_hash() -> None:
    assert parse_problem(GAS, "gas").hash != parse_problem(GAS.replace("k*rho**2", "k*rho**3"), "gas").hash


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"v: m/rho": "v: m/rh"}, "definitions.v: column 3 of 'm/rh': unknown name 'rh'"),
        ({"v: m/rho": "v: p/rho"}, "unknown name 'p'"),
        ({"v: m/rho": "k: m/rho"}, "the name 'k' is declared 2 times"),
        ({"v: m/rho": "rho_x: m/rho"}, "'rho_x' reads as a derivative of 'rho'"),
        ({"flux: m*v + p": "flux: 9**(9**p)", "p: k*rho**2": "p: 90"}, "not a finite real number"),
    ],
)
def test_definitions_that_are_wrong_are_named(change: dict[str, str], part: str) -> None:
    text = GAS
    for old, new in change.items():
        text = text.replace(old, new)
    with pytest.raises(SpecificationError) as caught:
        parse_problem(text, "gas")
    assert part in str(caught.value)


def test_definitions_that_grow_without_bound_are_refused() -> None:
    lines = "".join(f"  a{i + 1}: a{i}*a{i}\n" for i in range(30))
    text = GAS.replace("definitions:\n", f"definitions:\n  a0: rho\n{lines}")
    with pytest.raises(SpecificationError, match="more than 1500 symbols"):
        parse_problem(text, "gas")
