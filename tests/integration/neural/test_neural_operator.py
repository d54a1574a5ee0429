"""The operator against Fourier sums written out, and what follows from having weights for waves."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from sharp.neural.operator import (
    Architecture,
    apply,
    count_parameters,
    initial_parameters,
    spectral_convolution,
)

MODES = 3
SHAPE = Architecture(channels_in=2, channels_out=5, modes=MODES, width=4, layers=2, hidden=6)
DRAW = np.random.default_rng(0)
REAL, IMAGINARY = DRAW.normal(size=(2, 4, 2, MODES)).astype(np.float32)


def states(points: int, waves: int = 2, samples: int = 3) -> np.ndarray:
    """Two channels of random sums of the lowest waves, [samples, 2, points]; the same functions on every grid."""
    amplitude, phase = np.random.default_rng(1).normal(size=(2, samples, 2, waves + 1, 1))
    angle = 2 * np.pi * np.arange(waves + 1)[:, None] * np.arange(points) / points
    return (amplitude * np.cos(angle + phase)).sum(axis=2).astype(np.float32)


def by_sums(v: np.ndarray) -> np.ndarray:
    """The spectral convolution as sums over points and waves."""
    points = v.shape[-1]
    x = np.arange(points) / points
    out = np.zeros((len(v), len(REAL), points))
    for wave in range(MODES):
        coefficient = (v * np.exp(-2j * np.pi * wave * x)).sum(axis=-1) / points
        mixed = coefficient @ (REAL[..., wave] + 1j * IMAGINARY[..., wave]).T
        twice = 1 if wave == 0 else 2
        out += twice * (mixed[..., None] * np.exp(2j * np.pi * wave * x)).real
    return out


@pytest.mark.parametrize("points", [16, 17])
def test_a_spectral_convolution_is_the_sum_over_its_waves(points: int) -> None:
    v = DRAW.normal(size=(3, 2, points)).astype(np.float32)
    np.testing.assert_allclose(spectral_convolution(REAL, IMAGINARY, v), by_sums(v), atol=2e-6)


def test_waves_beyond_those_with_weights_are_dropped() -> None:
    short = np.cos(2 * np.pi * MODES * np.arange(16) / 16)
    v = np.broadcast_to(short, (1, 2, 16)).astype(np.float32)
    np.testing.assert_allclose(spectral_convolution(REAL, IMAGINARY, v), 0, atol=1e-6)


def test_a_spectral_convolution_is_the_same_function_on_every_grid() -> None:
    coarse = spectral_convolution(REAL, IMAGINARY, states(16))
    fine = spectral_convolution(REAL, IMAGINARY, states(64))
    np.testing.assert_allclose(fine[..., ::4], coarse, atol=1e-5)


def test_the_operator_knows_no_place() -> None:
    parameters, v = initial_parameters(SHAPE, seed=0), states(16)
    found = apply(parameters, np.roll(v, 5, axis=-1))
    assert found.shape == (3, 5, 16)
    np.testing.assert_allclose(found, np.roll(apply(parameters, v), 5, axis=-1), atol=1e-5)


def test_the_seed_decides_the_first_weights() -> None:
    first, again, other = (jax.tree.leaves(initial_parameters(SHAPE, seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_every_trained_number_is_counted() -> None:
    layer = 2 * 4 * 4 * MODES + 4 * 4 + 4
    expected = (2 * 4 + 4) + 2 * layer + (4 * 6 + 6) + (6 * 5 + 5)
    assert count_parameters(initial_parameters(SHAPE, seed=0)) == expected
