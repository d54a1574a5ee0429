from __future__ import annotations

import numpy as np
import pytest

from sharp.reference.advection import FAMILY
from tests.helpers.problems.measured_cases import case, cells, number, shipped

Array = np.ndarray
PROBLEM = shipped("advection")
BETA = PROBLEM.parameters["beta"]
T = np.linspace(0, 2, 41)
N = 128
NAMES = [measure.name for measure in FAMILY.metrics]


def waves(shift: float = 0.0, speed: float = BETA) -> Array:
    """Return modes 1 and 3 with amplitudes 1 and 1/2, shifted from the first output on."""
    place = cells(N) - speed * T[:, None] - shift * (T[:, None] > 0)
    return (0.2 + np.sin(2 * np.pi * place) + 0.5 * np.cos(6 * np.pi * place))[None]


def values(u: Array) -> dict[str, float]:
    measured = case(PROBLEM, {"u": u}, T, {"u": waves()[:, 0]})
    return {name: number(name, measured) for name in NAMES}


def test_the_exact_solution_has_none() -> None:
    assert max(values(waves()).values()) < 1e-13


def test_kinks_and_rounding_matter_little() -> None:
    start = FAMILY.sample_initial(PROBLEM, 40, 3)
    exact = np.stack([start.evaluate(cells(1024) - BETA * t)["u0_batch"] for t in T], axis=1)
    measured = case(PROBLEM, {"u": exact.astype(np.float32)}, T)
    assert {name: number(name, measured) < 1e-5 for name in NAMES} == dict.fromkeys(NAMES, True)


def test_a_shift_is_a_phase_error_and_nothing_else() -> None:
    shift = 0.01
    of = values(waves(shift))
    # Mode k is off by 2 pi k shift; energies 1 and 1/4 weigh modes 1 and 3.
    assert of["phase_error"] == pytest.approx(np.sqrt((2**2 + 0.25 * 6**2) / 1.25) * shift, rel=1e-9)
    assert max(value for name, value in of.items() if name != "phase_error") < 1e-13


def test_a_wrong_speed_is_a_phase_error_that_grows() -> None:
    of = [values(waves(speed=factor * BETA))["phase_error"] for factor in (1.0, 1.01, 1.1)]
    assert of[2] == pytest.approx(10 * of[1], rel=1e-6)
    assert of[1] > 1e-3 > 1e10 * of[0]


def test_upwind_differences_damp_and_delay_at_the_textbook_rate() -> None:
    # LeVeque 2002, section 8.3: g = 1 - c (1 - exp(-i theta)) a step, with the Courant number c.
    courant, steps = 0.8, T.size - 1
    t = courant / (N * BETA) * np.arange(steps + 1)
    u = [np.sin(2 * np.pi * cells(N))]
    for _ in range(steps):
        u.append(u[-1] - courant * (u[-1] - np.roll(u[-1], 1)))
    measured = case(PROBLEM, {"u": np.stack(u)[None]}, t)
    gain = (1 - courant * (1 - np.exp(-2j * np.pi / N))) ** np.arange(1, steps + 1)
    exact = np.exp(-2j * np.pi * courant / N * np.arange(1, steps + 1))
    assert number("damping", measured) == pytest.approx(np.sqrt(np.mean((1 - np.abs(gain)) ** 2)), rel=1e-9)
    late = np.angle(gain / exact) / np.pi
    assert number("phase_error", measured) == pytest.approx(np.sqrt(np.mean(late**2)), rel=1e-6)
    assert number("l2_drift", measured) == pytest.approx(1 - abs(gain[-1]), rel=1e-9)
    assert number("mass_drift", measured) < 1e-13


def test_decay_is_damping_and_no_phase_error() -> None:
    of = values(waves() * np.exp(-0.1 * T)[:, None])
    assert of["damping"] == pytest.approx(np.sqrt(np.mean((1 - np.exp(-0.1 * T[1:])) ** 2)), rel=1e-9)
    assert of["l2_drift"] == pytest.approx(1 - np.exp(-0.2), rel=1e-9)
    assert of["phase_error"] < 1e-13


def test_a_source_of_mass_drifts_by_its_size() -> None:
    of = values(waves() + 0.03 * T[:, None])
    assert of["mass_drift"] == pytest.approx(0.03 * T[-1] / np.abs(waves()[0, 0]).mean(), rel=1e-9)
    assert max(of["phase_error"], of["damping"]) < 1e-13


def test_the_mean_is_over_samples_and_the_worst_is_named() -> None:
    u = np.concatenate([waves(), waves(0.02)])
    measured = case(PROBLEM, {"u": u}, T, {"u": np.repeat(waves()[:, 0], 2, axis=0)})
    assert number("phase_error", measured) == pytest.approx(values(waves(0.02))["phase_error"] / 2, rel=1e-9)
    (phase,) = (measure for measure in FAMILY.metrics if measure.name == "phase_error")
    assert "sample 1" in phase.function(measured).note


@pytest.mark.parametrize("level", [0.0, 1.5])
def test_a_constant_has_neither_phase_nor_drift(level: float) -> None:
    measured = case(PROBLEM, {"u": np.full((1, T.size, N), level)}, T)
    assert {number(name, measured) for name in NAMES} == {0.0}
