from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from sharp.reference.burgers import FAMILY
from tests.helpers.problems.measured_cases import case, cells, number, shipped

Array = np.ndarray
PROBLEM = shipped("burgers")
INVISCID = shipped("burgers", nu=1e-7)
T = np.linspace(0, 0.5, 51)
N = 256
NAMES = ("entropy_violation", "tv_growth", "mean_drift")


@cache
def truth(nu: float = 0.01 / np.pi) -> Array:
    """Return two smooth samples that steepen to shocks, at twice the points of the tests."""
    phase = 2 * np.pi * cells(2 * N)
    start = np.stack([np.sin(phase), 0.3 + 0.8 * np.cos(phase + 1) + 0.3 * np.sin(2 * phase)])
    t, problem = T, shipped("burgers", nu=nu)
    return FAMILY.solve_reference(problem, {"u0_batch": start}, t, tolerance=1e-6).arrays["u"]


def rarefaction() -> Array:
    """Return the entropy solution from -1 and 1 on the two halves of a period, at the centres of its cells."""
    place = cells(N) - 0.5
    place = np.where(np.abs(place) > 0.5, place - np.sign(place), place)
    spread = np.clip(place / np.maximum(T[:, None], 1e-12), -1, 1)
    return spread[None]


def conservative(u: Array, dt: float, lax_wendroff: bool) -> Array:
    """Return one step of u_t + (u^2/2)_x = 0 on a period, by the fluxes of Lax and Wendroff or of Godunov."""
    right = np.roll(u, -1)
    if lax_wendroff:
        middle = 0.5 * (u + right) - 0.5 * dt * N * 0.5 * (right**2 - u**2)
        flux = 0.5 * middle**2
    else:
        flux = 0.5 * np.maximum(np.maximum(u, 0) ** 2, np.minimum(right, 0) ** 2)
    return u - dt * N * (flux - np.roll(flux, 1))


def marched(lax_wendroff: bool) -> Array:
    frames = [np.sin(2 * np.pi * cells(N))]
    for _ in range(T.size - 1):
        u = frames[-1]
        for _ in range(5):
            u = conservative(u, (T[1] - T[0]) / 5, lax_wendroff)
        frames.append(u)
    return np.stack(frames)[None]


def test_the_viscous_solution_has_none() -> None:
    for every in (1, 2):  # on half the points the shocks are 3 cells wide
        measured = case(PROBLEM, {"u": truth()[..., ::every].astype(np.float32)}, T)
        assert number("entropy_violation", measured) < 5e-4
        assert number("tv_growth", measured) < 1e-5
        assert number("mean_drift", measured) < 1e-6


def test_shocks_thinner_than_the_grid_do_not_count_as_production() -> None:
    problem, u = shipped("burgers", nu=0.002 / np.pi), truth(0.002 / np.pi)
    for every, left in ((1, 5e-3), (8, 0.05)):
        assert number("entropy_violation", case(problem, {"u": u[..., ::every]}, T)) < left


def test_too_little_viscosity_violates_the_inequality() -> None:
    # A shock loses the same whatever its width; half as wide, viscosity should have taken twice that.
    u = truth(0.005 / np.pi)
    lost = np.mean((u[:, 0] ** 2).mean(axis=1) - (u[:, -1] ** 2).mean(axis=1)) / np.mean(u[:, 0] ** 2)
    seen = number("entropy_violation", case(PROBLEM, {"u": u}, T))
    assert seen == pytest.approx(lost, rel=0.25)
    assert seen > 100 * number("entropy_violation", case(shipped("burgers", nu=0.005 / np.pi), {"u": u}, T))


def test_an_expansion_shock_violates_the_inequality_by_what_it_produces() -> None:
    start = np.sign(rarefaction()[:, :1])
    frozen = case(INVISCID, {"u": np.repeat(start, T.size, axis=1)}, T)
    # The jump from -1 to 1 produces 2/3 a unit of time, that back as much less; the entropy is 1/2. The parts
    # of the period overlap a little.
    assert number("entropy_violation", frozen) == pytest.approx(2 / 3 * T[-1] / 0.5, rel=0.05)
    right = case(INVISCID, {"u": rarefaction()}, T)
    assert number("entropy_violation", right) < 0.02


def test_a_shock_that_dissipates_does_not_violate_the_inequality() -> None:
    assert number("entropy_violation", case(INVISCID, {"u": marched(lax_wendroff=False)}, T)) < 2e-3


def test_growth_is_production() -> None:
    grown = case(PROBLEM, {"u": truth() * np.exp(0.5 * T)[:, None]}, T)
    assert number("entropy_violation", grown) > 0.1


def test_wiggles_of_a_central_scheme_are_growth_of_variation() -> None:
    wiggles, monotone = (case(INVISCID, {"u": marched(scheme)}, T) for scheme in (True, False))
    assert number("tv_growth", wiggles) > 0.1
    assert number("tv_growth", monotone) < 1e-12


def test_variation_is_measured_from_its_smallest_value() -> None:
    # A variation of 4 falls to 2, and a sawtooth of 0.05, steeper than the sine, makes it 0.05 N.
    u = np.repeat(np.sin(2 * np.pi * cells(N))[None, None], T.size, axis=1)
    u[0] *= np.where(T < 0.25, 1, 0.5)[:, None]
    u[0, -1] += 0.05 * (np.arange(N) % 2)
    assert number("tv_growth", case(PROBLEM, {"u": u}, T)) == pytest.approx((0.05 * N - 2) / 4, rel=1e-3)


def test_a_source_drifts_by_its_size() -> None:
    drifting = case(PROBLEM, {"u": truth() + 0.02 * T[:, None]}, T)
    sizes = np.abs(truth()[:, 0]).mean(axis=1)
    assert number("mean_drift", drifting) == pytest.approx(np.mean(0.02 * T[-1] / sizes), rel=1e-3)


@pytest.mark.parametrize(("courant", "excess"), [(0.4, 0.0), (2.5, 1.5)])
def test_courant_number(courant: float, excess: float) -> None:
    u = np.full((1, T.size, N), 0.5)
    u[0, 7, 3] = -2.0
    dt = courant / (2.0 * N)
    exact = number("characteristic_cfl", case(PROBLEM, {"u": u}, T, internal_dt=dt))
    assert exact == pytest.approx(excess, abs=1e-12)
    steps = round(0.5 / dt)
    counted = number("characteristic_cfl", case(PROBLEM, {"u": u}, T, internal_steps=steps))
    assert counted == pytest.approx(excess, abs=0.02)


def test_nothing_is_nothing() -> None:
    still = case(PROBLEM, {"u": np.zeros((1, T.size, N))}, T, internal_dt=1.0)
    assert {number(measure.name, still) for measure in FAMILY.metrics} == {0.0}
