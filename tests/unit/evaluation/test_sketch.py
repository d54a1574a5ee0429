"""Sketches are as far apart as what they are of."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.evaluation.sketch import SAMPLES, SUMS, sketch_distance, sketch_of

RANDOM = np.random.default_rng(3)
U = {"u": RANDOM.standard_normal((10, 7, 50)), "v": RANDOM.standard_normal((10, 7, 50))}


@pytest.mark.parametrize("size", [1e-9, 1e-3, 0.3])
def test_distances_are_kept(size: float) -> None:
    other = {name: values + size * RANDOM.standard_normal(values.shape) for name, values in U.items()}
    assert sketch_distance(sketch_of(U), sketch_of(other)) == pytest.approx(size, rel=0.2)


def test_the_same_arrays_have_the_same_sketch_in_any_precision_that_holds_them() -> None:
    single = {name: values.astype(np.float32) for name, values in U.items()}
    assert sketch_of(single) == sketch_of(
        {name: values.astype(np.float64) for name, values in single.items()}
    )
    assert sketch_distance(sketch_of(U), sketch_of(U)) == 0


def test_a_sketch_is_small_and_zeros_are_no_distance_from_each_other() -> None:
    assert len(sketch_of(U)) < 1.4 * 8 * SAMPLES * SUMS
    nothing = sketch_of({"u": np.zeros((2, 5))})
    assert sketch_distance(nothing, nothing) == 0
