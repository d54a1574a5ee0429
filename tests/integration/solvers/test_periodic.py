"""A problem on a periodic box from specification to verdict."""

from __future__ import annotations

from sharp.problems import parse_problem
from sharp.solvers import SolveOptions, solve_problem

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
