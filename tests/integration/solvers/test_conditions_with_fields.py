"""Conditions whose fluxes depend on fields, and fields that algebraic equations give, against exact solutions."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.errors import SpecificationError
from sharp.problems import check_well_posedness, parse_problem
from sharp.solvers import solve_problem

HEAD = "pde_spec: 1\nid: made\ntitle: made\n"
ROD = "domain: {type: box, bounds: {x: [0, 1]}}\n"

# A disk that is heated throughout and radiates: u = c + (1 - r**2)/4, where c**4 - 1/16 = 1.
DISK = (
    HEAD
    + """
coordinates: {space: [x, y]}
fields: [u]
equations: ["-lap(u) = 1"]
domain: {type: disk, radius: 1}
boundary: [{where: outer, type: flux, field: u, value: -0.5*(u**4 - 0.5**4)}]
accuracy: 1e-6
"""
)
# Two layers that exchange heat at an end: u - v falls there by itself; u + v is kept.
EXCHANGE = (
    HEAD
    + ROD
    + """
coordinates: {space: [x], time: t}
fields: [u, v]
equations: [u_t = u_xx, v_t = v_xx]
time: [0, 0.2]
initial: {u: cos(0.8*x), v: -cos(0.8*x)}
boundary:
  - {where: x = 0, type: neumann, field: u, value: 0}
  - {where: x = 0, type: neumann, field: v, value: 0}
  - {where: x = 1, type: flux, field: u, value: 0.4*tan(0.8)*(v - u)}
  - {where: x = 1, type: robin, field: v, a: 0.4*tan(0.8), b: 1, value: 0.4*tan(0.8)*u}
reference: {kind: exact, value: {u: exp(-0.64*t)*cos(0.8*x), v: -exp(-0.64*t)*cos(0.8*x)}}
"""
)
# A factor that depends on the field: (1 + u**2) u + u_x = exp(-3*t)*sin(1)**3 + … with u = exp(-t)*sin(x).
FACTOR = (
    HEAD
    + ROD
    + """
coordinates: {space: [x], time: t}
fields: [u]
equations: [u_t = u_xx]
time: [0, 1]
initial: {u: sin(x)}
boundary:
  - {where: x = 0, type: dirichlet, field: u, value: 0}
  - {where: x = 1, type: robin, field: u, a: 1 + u**2, b: 1, value: exp(-3*t)*sin(1)**3 + exp(-t)*(sin(1) + cos(1))}
reference: {kind: exact, value: {u: exp(-t)*sin(x)}}
"""
)
# Fields without a time derivative: one that an algebraic equation gives, and a potential.
SLAVED = (
    HEAD
    + ROD
    + """
coordinates: {space: [x], time: t}
fields: [u, w]
equations:
  - u_t = u_xx + pi**2*(w + w**3) - pi**2*u
  - w + w**3 = u
time: [0, 0.3]
initial: {u: sin(pi*x) + sin(pi*x)**3}
boundary: [{where: all, type: dirichlet, field: u, value: 0}]
"""
)


def test_a_disk_radiates_what_it_is_given() -> None:
    found = solve_problem(parse_problem(DISK, "made.yaml"))
    assert found.verdict.verified
    assert found.discrete is not None
    values = found.discrete.at(np.array([[0.0, 0.0], [0.6, 0.8]]), 0.0)[0]
    assert np.abs(values) == pytest.approx([1.0625**0.25 + 0.25, 1.0625**0.25], rel=1e-7)


@pytest.mark.parametrize("text", [EXCHANGE, FACTOR], ids=["exchange", "factor"])
def test_conditions_that_hold_fields_are_met(text: str) -> None:
    found = solve_problem(parse_problem(text, "made.yaml"))
    assert found.verdict.verified, found.verdict
    assert {check.name for check in found.verdict.checks} >= {
        "exact solution",
        "boundary conditions with derivatives",
    }


def test_an_exact_solution_that_breaks_such_a_condition_is_seen() -> None:
    wrong = FACTOR.replace("a: 1 + u**2", "a: 1 + u**4")
    concerns = check_well_posedness(parse_problem(wrong, "made.yaml"))
    assert [each.kind for each in concerns] == ["wrong-reference"]


def test_a_field_that_an_algebraic_equation_gives_begins_with_its_solution() -> None:
    found = solve_problem(parse_problem(SLAVED, "made.yaml"))
    assert found.verdict.verified, found.verdict
    assert found.discrete is not None
    points = np.linspace(0.1, 0.9, 5)[:, None]
    u, w = (found.discrete.evaluate(points, np.array([0.0, 0.3]))[index] for index in (0, 1))
    assert w + w**3 == pytest.approx(u, abs=1e-6)
    assert w[0] == pytest.approx(np.sin(np.pi * points[:, 0]), abs=1e-6)


def test_what_gives_a_field_itself_may_not_depend_on_fields() -> None:
    text = EXCHANGE.replace(
        "{where: x = 0, type: neumann, field: u, value: 0}",
        "{where: x = 0, type: dirichlet, field: u, value: v}",
    )
    with pytest.raises(
        SpecificationError,
        match="'v' depends on v: conditions of type neumann, robin, flux may, found dirichlet",
    ):
        parse_problem(text, "made.yaml")
