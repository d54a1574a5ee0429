"""A problem on a periodic box from specification to verdict."""

from __future__ import annotations

import numpy as np

from sharp.problems import parse_problem
from sharp.solvers import SolveOptions, solve_problem
from tests.helpers.solvers.boxed import boxed

_PERIODIC = "boundary: [{type: periodic, axis: x}, {type: periodic, axis: y}]"
_BOX = "domain: {type: box, bounds: {x: [0, 2*pi], y: [0, 2*pi]}}"
_FLOW = f"""
pde_spec: 1
id: vortices
title: Vortices
coordinates: {{space: [x, y], time: t}}
fields: [w, psi]
equations: [w_t + psi_y*w_x - psi_x*w_y = 0.05*lap(w), lap(psi) = -w]
{_BOX}
time: [0, 1]
initial: {{w: sin(x)*cos(2*y) + 0.5*cos(x + y)}}
{_PERIODIC}
mean: {{psi: 0}}
"""


def test_a_flow_in_the_plane_is_solved_by_modes_and_verified() -> None:
    found = solve_problem(parse_problem(_FLOW, "made.yaml"), SolveOptions(accuracy=1e-5, cross_check=False))
    assert found.verdict.verified, found.verdict
    assert found.trial is not None
    assert found.trial.refinement.method == "etd"


def test_phases_that_separate_in_the_plane_are_solved_by_modes_and_verified() -> None:
    start = "0.1*(cos(2*pi*x)*cos(4*pi*y) + cos(4*pi*x)*sin(2*pi*y)**2)"
    equation = "u_t = lap(u**3 - u) - 0.0025*lap(lap(u))"
    sides = {"x": [0, 1], "y": [0, 1]}
    spec = {"time": [0, 0.02], "initial": {"u": start}, "accuracy": 1e-4}
    problem = boxed([equation], sides, ["periodic x", "periodic y"], **spec)
    found = solve_problem(problem, SolveOptions(time_limit=30, clock="cpu"))
    assert found.verdict.verified
    # Mass is kept: the mean stays that of the start, here 0.
    places = (np.arange(32) + 0.5) / 32
    grid = np.stack(np.meshgrid(places, places), axis=-1).reshape(-1, 2)
    assert abs(found.discrete.at(grid, 0.02)[0].mean()) < 1e-6
