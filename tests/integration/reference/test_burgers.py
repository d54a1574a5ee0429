from __future__ import annotations

import numpy as np

from sharp.reference.burgers import FAMILY, viscosity
from sharp.reference.spectral import relative_l2
from tests.helpers.problems.small_problems import small

Array = np.ndarray


def cole_hopf(nu: float, drift: float, x: Array, t: Array) -> Array:
    """Return the solution [T, N] of potential 1 + a exp(-nu k^2 t) cos(k (x - drift t)); it travels."""
    k = 4 * np.pi
    wave, decay = k * (x - drift * t[:, None]), 0.9 * np.exp(-nu * k**2 * t)[:, None]
    return drift + 2 * nu * k * decay * np.sin(wave) / (1 + decay * np.cos(wave))


def test_truth_is_the_travelling_wave_of_cole_and_hopf() -> None:
    problem = small("burgers", points=128, times=11, end=1.0)
    nu, t = viscosity(problem), np.linspace(0, 1, 11)
    x = (np.arange(128) + 0.5) / 128

    def exact(points: Array, times: Array) -> Array:
        return np.stack([cole_hopf(nu, drift, points, times) for drift in (0.0, 0.7)])

    initial = {"u0_batch": exact(x, t[:1])[:, 0]}
    truth = FAMILY.solve_reference(
        problem, initial, t, evaluate=lambda points: {"u0_batch": exact(points, t[:1])[:, 0]}
    )
    assert relative_l2(truth.arrays["u"], exact(x, t)).max() < 1e-9
    assert truth.error.max() < 1e-8
    assert truth.arrays["u"].dtype == np.float64


def test_truth_keeps_the_mean_and_begins_with_what_it_was_given() -> None:
    problem = small("burgers", points=256, times=6, end=0.5, nu=0.1)
    drawn = FAMILY.sample_initial(problem, 9, 5)
    values = drawn.arrays["u0_batch"]
    u = FAMILY.solve_reference(problem, drawn.arrays, np.linspace(0, 0.5, 6)).arrays["u"]
    assert (u[:, 0] == values).all()
    means = values.mean(axis=1, dtype=float)
    np.testing.assert_allclose(u.mean(axis=2), np.repeat(means[:, None], 6, axis=1), atol=1e-9)


def test_error_estimate_covers_what_kinks_hide_between_values() -> None:
    problem = small("burgers", points=256, times=5, end=0.2, nu=0.1)
    drawn = FAMILY.sample_initial(problem, 24, 1)
    kinked = np.flatnonzero(np.abs(np.diff(drawn.arrays["u0_batch"], 2)).max(axis=1) > 0.05)
    assert len(kinked) >= 2
    t = np.linspace(0, 0.2, 5)
    known = FAMILY.solve_reference(problem, drawn.arrays, t, evaluate=drawn.evaluate)
    guessed = FAMILY.solve_reference(problem, drawn.arrays, t)
    off = relative_l2(guessed.arrays["u"], known.arrays["u"])
    assert (off[kinked] < 2 * guessed.error[kinked]).all()
    assert (guessed.error[kinked] < 100 * off[kinked]).all()


def test_progress_counts_samples() -> None:
    problem = small("burgers")
    seen: list[tuple[int, int, str]] = []
    drawn = FAMILY.sample_initial(problem, 17, 0)
    FAMILY.solve_pdebench(problem, drawn.arrays, np.linspace(0, 0.05, 6), lambda *call: seen.append(call))
    assert [total for _, total, _ in seen] == [17] * 5
    assert max(done for done, _, _ in seen) == 17
    assert "burgers" in seen[0][2]
