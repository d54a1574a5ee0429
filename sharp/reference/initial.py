"""Random initial conditions: sums of sines, some folded to one sign, some cut out by a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Evaluate = Callable[[Array], dict[str, Array]]

# Fitted to the published data, see `sine_sums`.
TERMS, PICKS = 4, 2
FOLDED_SHARE = 0.1
WINDOWED_SHARE = 0.1
WINDOW_EDGE = 0.01


@dataclass(frozen=True)
class InitialSet:
    """Initial conditions on the data grid: `arrays[port]` is float32 [n, N].

    `evaluate(x)` gives the same functions in double precision at any points [m] as {port: [n, m]}; it is None
    where they are known on the grid only.
    """

    arrays: Mapping[str, NDArray[np.float32]]
    evaluate: Evaluate | None = None


@dataclass(frozen=True)
class SineSums:
    """n random functions of period 1: `(window * fold(sum_j A_j sin(2 pi k_j x + phi_j)) - offset) / scale`.

    Sines: `amplitude`, `wave`, `phase` [n, terms, 1]. Folding: `sign` [n, 1] is 0 where the sum is left as it
    is, else its absolute value is taken with that sign. Window: about 1 between `left` and `right` [n, 1] and
    about 0 outside; infinite ends mean none.
    """

    amplitude: Array
    wave: Array
    phase: Array
    sign: Array
    left: Array
    right: Array
    offset: Array | float = 0.0
    scale: Array | float = 1.0

    def __call__(self, x: Array) -> Array:
        """Evaluate at points [m], giving [n, m]."""
        sums = np.sum(self.amplitude * np.sin(2 * np.pi * self.wave * x + self.phase), axis=1)
        folded = np.where(self.sign == 0, sums, self.sign * np.abs(sums))
        return np.asarray((self._window(x % 1.0) * folded - self.offset) / self.scale)

    def text(self, place: str) -> str:
        """Return the first function as an expression of specifications; `place` is that of a coordinate in [0, 1]."""
        terms = zip(self.amplitude[0, :, 0], self.wave[0, :, 0], self.phase[0, :, 0], strict=True)
        text = " + ".join(
            f"{amplitude:.6g}*sin({2 * wave:g}*pi*{place} + {phase:.6g})" for amplitude, wave, phase in terms
        )
        if sign := self.sign[0, 0]:
            text = f"{sign:g}*abs({text})"
        if np.isfinite(self.left[0, 0]):
            rise, fall = (
                f"tanh(({place} - {end[0, 0]:.6g})/{WINDOW_EDGE})" for end in (self.left, self.right)
            )
            text = f"({rise} - {fall})/2*({text})"
        offset, scale = (float(np.ravel(value)[0]) for value in (self.offset, self.scale))
        return text if (offset, scale) == (0, 1) else f"({text} - {offset!r})/{scale!r}"

    def _window(self, x: Array) -> Array:
        rise, fall = np.tanh((x - self.left) / WINDOW_EDGE), np.tanh((x - self.right) / WINDOW_EDGE)
        return np.asarray(0.5 * (rise - fall))

    def scaled_to_unit(self, x: Array) -> SineSums:
        """Shift and stretch each function so that its values at `x` span [0, 1]."""
        values = self(x)
        lowest, highest = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
        return replace(self, offset=lowest, scale=highest - lowest)


def sine_sums(n: int, seed: int) -> SineSums:
    """Draw n functions of the family of the published data (found by fitting sines to them).

    Two wave numbers are drawn from 1..4 for four terms A_j sin(2 pi k_j x + phi_j), A_j in [0, 1): a term
    drawn once has its wave number j, drawn twice 2j, and is constant otherwise. One function in ten is
    folded, one in ten windowed. The first functions stay the same when more are drawn from the same seed.
    Published functions have the period 1 - 1/N, so that their first and last values are equal; these have the
    period 1.
    """
    draws = np.random.default_rng(seed).random((n, 2 * TERMS + PICKS + 5))
    amplitude, phase, picks, choices = np.split(draws, [TERMS, 2 * TERMS, 2 * TERMS + PICKS], axis=1)
    number = np.arange(TERMS)[:, None]
    picked = np.count_nonzero(np.floor(TERMS * picks)[:, None] == number, axis=-1)[..., None]
    return SineSums(
        amplitude=amplitude[..., None],
        wave=(number + 1.0) * picked,
        phase=2 * np.pi * phase[..., None],
        **folds_and_windows(choices, WINDOWED_SHARE, (0.1, 0.6), 0.3),
    )


def folds_and_windows(
    choices: Array, windowed: float, lowest: tuple[float, float], width: float
) -> dict[str, Array]:
    """Return sign, left and right end of `SineSums` from uniform numbers [n, 5].

    One function in ten is folded; a share is `windowed`, with ends drawn from intervals of a width.
    """
    folding, sign, windowing, *ends = choices.T[..., None]
    left, right = (low + width * end for low, end in zip(lowest, ends, strict=True))
    return {
        "sign": np.where(folding < FOLDED_SHARE, np.where(sign < 0.5, -1.0, 1.0), 0.0),
        "left": np.where(windowing < windowed, left, -np.inf),
        "right": np.where(windowing < windowed, right, np.inf),
    }
