"""The residual on domains that are no box: what it tells apart on disks, rings, an L and others, steady and in time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sharp.problems import Problem, parse_problem
from sharp.reference.datasets import Inputs
from sharp.reference.equation_residual import equation_residual, why_none
from sharp.reference.plane_grid import inside_mask

Array = np.ndarray
Exact = Callable[[Array, Array, Array | float], Array]
HEAD = "pde_spec: 1\nid: some-problem\ntitle: Some problem\nfields: [u]\n"
PLANE = "coordinates: {space: [x, y]}\noutputs: {points: {x: 33, y: 33}}\n"
TIMED = "coordinates: {space: [x, y], time: t}\ntime: [0, 1]\noutputs: {points: {x: 33, y: 33}, times: 9}\n"
SMOOTH = "exp(x)*sin(2*y)"
L_SHAPE = "{type: polygon, vertices: [[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]]}"

PROBLEMS: dict[str, tuple[str, Exact]] = {
    "disk": (
        f"{PLANE}equations: ['lap(u) = -3*{SMOOTH}']\ndomain: {{type: disk, center: [0, 0], radius: 1}}\n"
        f"boundary: [{{type: dirichlet, where: all, field: u, value: '{SMOOTH}'}}]\n",
        lambda x, y, _: np.exp(x) * np.sin(2 * y),
    ),
    "ring": (
        f"{PLANE}equations: ['lap(u) - u = -x']\n"
        "domain: {type: annulus, center: [0, 0], inner: 0.4, outer: 1}\n"
        "boundary: [{type: dirichlet, where: inner, field: u, value: x},"
        " {type: robin, where: outer, field: u, a: 1, b: 1, value: 2*x}]\n",
        lambda x, _, __: x,
    ),
    "radiating disk": (
        f"{PLANE}equations: ['lap(u) - u = -x - 2']\ndomain: {{type: disk, center: [0, 0], radius: 1}}\n"
        "boundary: [{type: neumann, where: all, field: u, value: '(u - 2)**3 + u - 2 - x**3'}]\n",
        lambda x, _, __: x + 2,
    ),
    "l": (
        f"{PLANE}equations: ['-div((1 + x)*grad(u)) = -6*x - 4']\ndomain: {L_SHAPE}\nboundary:\n"
        "- {type: flux, where: edge 0, field: u, value: 0}\n"
        + "".join(
            f"- {{type: dirichlet, where: edge {number}, field: u, value: 'x**2 + y**2'}}\n"
            for number in range(1, 6)
        ),
        lambda x, y, _: x**2 + y**2,
    ),
    "heated disk": (
        f"{TIMED}equations: ['u_t = lap(u)/4 - 2*u']\ndomain: {{type: disk, center: [0, 0], radius: 1}}\n"
        "initial: {u: x + exp(2*y)}\nboundary: [{type: dirichlet, where: all, field: u, "
        "value: 'x*exp(-2*t) + exp(2*y - t)'}]\n",
        lambda x, y, t: x * np.exp(-2 * t) + np.exp(2 * y - t),
    ),
}


def stated(name: str) -> tuple[Problem, Inputs, Array, Array]:
    """A problem, the inputs of a solver, the exact solution, and which points count."""
    text, exact = PROBLEMS[name]
    problem = parse_problem(HEAD + text, name)
    axes = [np.linspace(*problem.bounds[axis], 33) for axis in problem.space]
    x, y = np.meshgrid(*axes, indexing="ij")
    t = np.linspace(0, 1, 9) if problem.time else None
    moments: Array | float = 0.0 if t is None else t[:, None, None]
    inside = inside_mask(problem, (33, 33))
    u = np.where(inside, exact(x, y, moments), 0.0)[None]
    given = {port.name: u[:, 0] for port in problem.interface.inputs}
    return problem, Inputs(given, t, axes[0]), u, inside


@pytest.mark.parametrize("name", PROBLEMS)
def test_errors_show_in_proportion_and_what_lies_outside_counts_nothing(name: str) -> None:
    problem, inputs, u, inside = stated(name)
    assert why_none(problem, inputs) == ""
    right = equation_residual(problem, inputs, {"u": u})
    assert right.value < 2e-3, right
    x, y = np.meshgrid(*(np.linspace(-1, 1, 33),) * 2, indexing="ij")
    wrong = [
        equation_residual(problem, inputs, {"u": u + inside * size * np.cos(3 * x + y)}).value
        for size in (0.03, 0.3)
    ]
    assert wrong[0] > 5 * right.value
    assert 5 < wrong[1] / wrong[0] < 12
    outside = equation_residual(problem, inputs, {"u": u + 7.0 * ~inside})
    assert outside.per_equation == right.per_equation


def test_a_condition_that_is_missed_is_named() -> None:
    problem, inputs, u, _ = stated("ring")
    found = equation_residual(problem, inputs, {"u": 0 * u}).per_equation
    assert found["dirichlet condition of u at inner"] > 0.5
    assert found["robin condition of u at outer"] > 0.5


def test_a_grid_on_which_too_little_lies_within_the_domain_says_so() -> None:
    text = PROBLEMS["ring"][0].replace("x: 33, y: 33", "x: 9, y: 9")
    problem = parse_problem(HEAD + text, "ring")
    x = np.linspace(-1, 1, 9)
    assert "in a row and in a column within the domain" in why_none(problem, Inputs({}, None, x))
