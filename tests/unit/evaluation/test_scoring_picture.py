"""Pictures are small and show both ends of every axis."""

from __future__ import annotations

import io

import numpy as np

from sharp.evaluation.task import preview_arrays


def _load(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        return dict(stored)


def test_curves_in_time_are_thinned_out_with_both_ends():
    t, x = np.linspace(0, 2, 201), (np.arange(1024) + 0.5) / 1024
    u = np.sin(2 * np.pi * (x - t[:, None]))[None].repeat(2, axis=0)
    drawn = _load(preview_arrays({"prediction": {"u": u + 1}, "data": {"u": u}, "reference": None}, t, x))
    assert drawn.keys() == {"prediction.u", "data.u", "t", "x"}
    assert {array.dtype for array in drawn.values()} == {np.dtype("float32")}
    assert drawn["data.u"].shape == (5, 256)
    np.testing.assert_allclose(drawn["t"], [0, 0.5, 1, 1.5, 2])
    assert (drawn["x"][0], drawn["x"][-1]) == (np.float32(x[0]), np.float32(x[-1]))
    expected = np.sin(2 * np.pi * (drawn["x"] - drawn["t"][:, None]))
    np.testing.assert_allclose(drawn["data.u"], expected, atol=1e-5)


def test_few_points_are_kept_as_they_are():
    u = np.arange(24.0).reshape(2, 3, 4)
    drawn = _load(preview_arrays({"prediction": {"u": u}}, np.arange(3.0), np.arange(4.0)))
    np.testing.assert_array_equal(drawn["prediction.u"], u[0])


def test_largest_pictures_stay_below_100_kb():
    noise = np.random.default_rng(0).standard_normal
    states = {name: noise((1, 101, 1024)) for name in ("Vx", "density", "pressure")}
    assert (
        len(preview_arrays(dict.fromkeys(("prediction", "data", "reference"), states), np.arange(101), None))
        < 100_000
    )
    plane = {"u": noise((1, 421, 421))}
    drawn = preview_arrays(
        dict.fromkeys(("prediction", "data", "reference"), plane), None, np.linspace(0, 1, 421)
    )
    assert len(drawn) < 100_000
    assert _load(drawn)["data.u"].shape == (64, 64)
    assert _load(drawn)["x"].shape == (64,)
    box = {"u": noise((1, 11, 17, 17, 19))}
    kinds = dict.fromkeys(("prediction", "data", "reference"), box)
    drawn = preview_arrays(kinds, np.arange(11.0), np.linspace(0, 1, 17))
    assert len(drawn) < 100_000
    assert _load(drawn)["data.u"].shape == (5, 9, 9, 9)
    assert _load(drawn)["x"].shape == (9,)
