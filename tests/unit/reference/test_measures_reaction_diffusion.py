from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from sharp.reference.reaction_diffusion import FAMILY
from tests.helpers.problems.measured_cases import case, cells, found, number, shipped

Array = np.ndarray
PROBLEM = shipped("reaction-diffusion")
T = np.linspace(0, 1, 51)
N = 256


@cache
def truth(**parameters: float) -> Array:
    """Return two samples between 0 and 1, the second with a kink."""
    phase = 2 * np.pi * cells(N)
    start = np.stack([0.5 + 0.5 * np.sin(phase), np.abs(np.cos(2 * phase + 1))])
    problem = shipped("reaction-diffusion", **parameters)
    return FAMILY.solve_reference(problem, {"u0_batch": start}, T, tolerance=1e-6).arrays["u"]


def test_the_exact_solution_has_none() -> None:
    for dtype in (np.float64, np.float32):
        measured = case(PROBLEM, {"u": truth().astype(dtype)}, T)
        assert number("bounds_violation", measured) < 1e-6
        assert number("reaction_consistency", measured) < 2e-3


def test_random_starts_on_the_published_grid_have_none() -> None:
    start = FAMILY.sample_initial(PROBLEM, 3, 5)
    t = np.linspace(0, 0.2, 21)
    exact = FAMILY.solve_reference(PROBLEM, start.arrays, t, tolerance=1e-6).arrays["u"]
    assert number("reaction_consistency", case(PROBLEM, {"u": exact}, t)) < 2e-3


@pytest.mark.parametrize(("change", "seen"), [(0.07, 0.07), (-0.03, 0.03)])
def test_leaving_the_bounds_is_measured(change: float, seen: float) -> None:
    u = np.clip(truth(), 0, 1)
    u[0, 5, 7] = 1 + change if change > 0 else change
    # Means over two samples, of which one is off.
    assert number("bounds_violation", case(PROBLEM, {"u": u}, T)) == pytest.approx(seen / 2, rel=1e-9)


def test_the_upper_bound_is_that_of_the_start_if_larger() -> None:
    u = np.full((1, T.size, N), 0.5)
    start = np.full((1, N), 1.5)
    assert number("bounds_violation", case(PROBLEM, {"u": 2.9 * u}, T, {"u": start})) == 0
    assert number("bounds_violation", case(PROBLEM, {"u": 3.6 * u}, T, {"u": start})) == pytest.approx(
        0.3 / 1.5
    )


@pytest.mark.parametrize("factor", [0.7, 1.1, 1.5])
def test_a_wrong_rate_of_reaction_is_seen_by_its_size(factor: float) -> None:
    wrong = number("reaction_consistency", case(PROBLEM, {"u": truth(rho=factor)}, T))
    assert wrong == pytest.approx(abs(factor - 1), rel=0.05)


def test_growth_that_stalls_is_seen() -> None:
    stalled = truth() - (truth().mean(axis=2) - truth()[:, :1].mean(axis=2))[..., None]
    assert number("reaction_consistency", case(PROBLEM, {"u": stalled}, T)) == pytest.approx(1, abs=0.02)


def test_a_wrong_diffusivity_is_not_taken_for_reaction() -> None:
    assert number("reaction_consistency", case(PROBLEM, {"u": truth(nu=0.4)}, T)) < 0.02


def test_first_order_splitting_of_long_steps_is_seen() -> None:
    # Explicit Euler steps of the reaction alone: growth per step rho u (1 - u) dt instead of the exact one.
    dt, u = 0.2, np.full(N, 0.1)
    frames = [u]
    for _ in range(5):
        frames.append(frames[-1] + dt * frames[-1] * (1 - frames[-1]))
    exact = 1 / (1 + 9 * np.exp(-dt * np.arange(6)))
    assert (
        number("reaction_consistency", case(PROBLEM, {"u": np.stack(frames)[None]}, dt * np.arange(6))) > 0.05
    )
    steady = np.broadcast_to(exact[:, None], (6, N))[None]
    assert number("reaction_consistency", case(PROBLEM, {"u": steady}, dt * np.arange(6))) < 1e-12


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_the_rounding_of_a_steady_solution_counts_little(level: float) -> None:
    u = np.full((1, T.size, N), level) * (1 + 6e-8 * np.random.default_rng(0).uniform(-1, 1, (1, T.size, N)))
    assert number("reaction_consistency", case(PROBLEM, {"u": u}, T)) < 0.01


@pytest.mark.parametrize(("dt", "excess"), [(0.01, 0.0), (3.0, 2.0)])
def test_safe_step_of_the_reaction(dt: float, excess: float) -> None:
    assert number("reaction_step", case(PROBLEM, {"u": truth()}, T, internal_dt=dt)) == pytest.approx(excess)


@pytest.mark.parametrize(("share", "excess"), [(0.9, 0.0), (4.0, 3.0)])
def test_diffusion_number(share: float, excess: float) -> None:
    dt = share / (2 * 0.5 * N**2)
    measured = case(PROBLEM, {"u": truth()}, T, internal_dt=dt)
    assert number("diffusive_cfl", measured) == pytest.approx(excess, abs=1e-9)
    assert f"{share:.3g} with the internal step" in found("diffusive_cfl", measured).note
