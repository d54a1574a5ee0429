"""Differences with implicit-explicit steps: they agree with exponential steps of modes, at their own order."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.solvers.exponential import ExponentialFourier
from sharp.solvers.imex import PeriodicDifferences
from sharp.solvers.method import NEVER, Deadline
from sharp.solvers.recommend import recommend
from sharp.solvers.refine import distance
from tests.unit.solvers.test_exponential import system

CASES = {
    "ks": ("u", ["u_t = -u*u_x - u_xx - 0.2*u_xxxx"], {"u": "cos(x) + 0.3*sin(2*x)"}),
    "nls": (
        "p, q",
        ["p_t = -q_xx - (p**2 + q**2)*q", "q_t = p_xx + (p**2 + q**2)*p"],
        {"p": "1 + 0.1*cos(x)", "q": "0"},
    ),
    "kdv": ("u", ["u_t + u*u_x + 0.3*u_xxx = 0"], {"u": "cos(x)"}),
    "wave": ("u", ["u_tt = u_xx - u**3"], {"u": "sin(x)", "u_t": "0"}),
}


@pytest.mark.parametrize("name", CASES)
def test_exponential_steps_of_modes_agree(name: str) -> None:
    case = system(*CASES[name])
    exact = ExponentialFourier().solve(case, 32, 1e-9, NEVER)
    found = PeriodicDifferences().solve(case, 96, 1e-7, NEVER)
    assert distance(case, found, exact) < 1e-6


def test_the_error_falls_with_the_order_of_the_differences() -> None:
    """Of a wave that is carried along, whose speed differences of order 8 get wrong by (k h)^8 / 630."""
    case = system("u", ["u_t + u_x = 0"], {"u": "sin(3*x)"}, 6.0)
    points = np.linspace(0, 6, 13)[:, None]
    expected = np.sin(3 * (points[:, 0] - 6))
    errors = [
        np.abs(PeriodicDifferences().solve(case, n, 1e-12, NEVER).at(points, 6.0)[0] - expected).max()
        for n in (25, 49)
    ]
    assert errors[0] == pytest.approx(18 * (3 * 2 * np.pi / 25) ** 8 / 630, rel=0.5)
    assert 150 < errors[0] / errors[1] < 400


@pytest.mark.parametrize("method", [PeriodicDifferences(), ExponentialFourier()])
def test_states_that_are_not_kept_are_found_again_after_the_limit_of_time(
    method: PeriodicDifferences | ExponentialFourier, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, case, places = [0.0], system(*CASES["kdv"]), np.array([[0.3], [2.0]])
    all_kept = method.solve(case, 32, 1e-6, NEVER).at(places, 0.123)
    monkeypatch.setattr("sharp.solvers.modal_stepping._KEPT", 100)
    found = method.solve(case, 32, 1e-6, Deadline(1.0, lambda: now[0]))
    now[0] = 2.0
    assert found.at(places, 0.123) == pytest.approx(all_kept, rel=1e-12)


def test_it_is_there_to_be_compared_with() -> None:
    case = system("u", ["u_t = 0.1*lap(u) + u - u**3"], {"u": "sin(x)*cos(y)"}, space="x y")
    choice = recommend(case, [PeriodicDifferences(), ExponentialFourier()])
    assert [each.method.name for each in choice.recommendations] == ["etd", "imex"]
    assert [each.method.name for each in choice.first_ones] == ["etd"]
