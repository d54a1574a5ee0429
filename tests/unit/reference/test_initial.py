from __future__ import annotations

import numpy as np
import pytest

from sharp.problems.grammar import Scope, evaluate_tree, parse_tree
from sharp.reference.initial import sine_sums

X = (np.arange(256) + 0.5) / 256


def test_same_seed_gives_same_functions_however_many_are_drawn() -> None:
    assert (sine_sums(3, 7)(X) == sine_sums(10, 7)(X)[:3]).all()
    assert not np.allclose(sine_sums(3, 7)(X), sine_sums(3, 8)(X))


def test_functions_have_period_one() -> None:
    functions = sine_sums(50, 0)
    np.testing.assert_allclose(functions(X), functions(X + 1), atol=1e-11)


def test_about_one_in_ten_is_folded_and_one_in_ten_windowed() -> None:
    functions = sine_sums(4000, 1)
    folded, windowed = functions.sign[:, 0] != 0, np.isfinite(functions.left[:, 0])
    spread = 4 * np.sqrt(0.1 * 0.9 / 4000)
    assert abs(folded.mean() - 0.1) < spread
    assert abs(windowed.mean() - 0.1) < spread
    values = functions(X)[folded]
    signs = functions.sign[folded]
    assert (signs * values >= -1e-12).all()
    assert {*signs.ravel()} == {-1.0, 1.0}


def test_windows_leave_nothing_outside() -> None:
    functions = sine_sums(300, 2)
    windowed = np.isfinite(functions.left[:, 0])
    ends = functions(np.array([0.0, 0.03, 0.97]))[windowed]
    assert np.abs(ends).max() < 1e-4
    assert (functions.left[windowed] >= 0.1).all()
    assert (functions.right[windowed] <= 0.9).all()


def test_plain_functions_are_two_sines_or_one_of_even_wave_number() -> None:
    functions = sine_sums(400, 3)
    plain = (functions.sign[:, 0] == 0) & ~np.isfinite(functions.left[:, 0])
    spectrum = np.abs(np.fft.rfft(functions(X)[plain], norm="forward"))
    assert spectrum[:, 9:].max() < 1e-14
    for waves in (np.flatnonzero(row[1:] > 1e-10) + 1 for row in spectrum):
        assert (len(waves) == 2 and waves.max() <= 4) or (len(waves) == 1 and waves[0] in {2, 4, 6, 8})


def test_scaled_functions_span_the_unit_interval() -> None:
    values = sine_sums(100, 4).scaled_to_unit(X)(X)
    assert values.min(axis=1) == pytest.approx(0, abs=1e-15)
    assert values.max(axis=1) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("scaled", [False, True])
def test_a_function_as_text_has_its_values(scaled: bool) -> None:
    folded, windowed = 0, 0
    for seed in range(30):
        functions = sine_sums(1, seed)
        functions = functions.scaled_to_unit(X) if scaled else functions
        folded, windowed = folded + abs(functions.sign[0, 0]), windowed + np.isfinite(functions.left[0, 0])
        tree = parse_tree(functions.text("((x - 2)/3)"), Scope.of(["x"]))
        for place in (0.05, 0.4, 0.81):
            expected = functions(np.array([place]))[0, 0]
            assert evaluate_tree(tree, {"x": 2 + 3 * place}) == pytest.approx(expected, abs=1e-4)
    assert folded
    assert windowed
