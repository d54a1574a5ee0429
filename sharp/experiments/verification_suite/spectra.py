"""Eigenvalue problems with known spectra: wells, degenerate and nearly degenerate pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator

_BISECTIONS = 200


@dataclass(frozen=True)
class Spectrum:
    """An eigenvalue problem: equation, domain and boundary of its specification, and its lowest eigenvalues.

    `values` are more than the `count` that is asked for, ascending; `width` is that of the narrowest well, as a share
    of the domain.
    """

    kind: str
    width: float
    equation: str
    space: tuple[str, ...]
    domain: Mapping[str, Any]
    boundary: tuple[Mapping[str, Any], ...]
    count: int
    values: tuple[float, ...]


def draw_spectrum(random: Generator) -> Spectrum:
    """Return a random problem of a random kind."""
    kinds = (_square_wells, _square_wells, _smooth_well, _rectangle, _periodic, _well_in_the_plane, _disk)
    return kinds[int(random.integers(len(kinds)))](random)


HELD = ({"where": "all", "type": "dirichlet", "field": "u", "value": 0},)


def _interval(equation: str, kind: str, width: float, count: int, values: Sequence[float]) -> Spectrum:
    domain = {"type": "box", "bounds": {"x": [0, 1]}}
    return Spectrum(kind, width, equation, ("x",), domain, HELD, count, tuple(values))


def _square_wells(random: Generator) -> Spectrum:
    """One to three wells of finite depth; two equal ones have a nearly degenerate pair of states."""
    number = int(random.integers(1, 4))
    width = float(f"{10 ** random.uniform(-3, -1.2):.3g}")
    # States in a well of depth (s/width)**2 are bound from about s = pi/2 on.
    depth = float(f"{(random.uniform(0.5, 6) / width) ** 2:.4g}")
    places = _apart(random, number, 2.5 * width)
    ends = [0.0, *(float(f"{p + s * width / 2:.6g}") for p in places for s in (-1, 1)), 1.0]
    heights = [0.0 if index % 2 == 0 else -depth for index in range(len(ends) - 1)]
    count = int(random.integers(1, 6))
    pieces = ", ".join(
        f"{height:.17g}, x < {end:.17g}" for height, end in zip(heights, ends[1:-1], strict=False)
    )
    equation = f"-u_xx + piecewise({pieces}, 0)*u = lam*u"
    return _interval(
        equation, "square wells", width, count, square_well_eigenvalues(ends, heights, count + 4)
    )


def _apart(random: Generator, number: int, least: float) -> list[float]:
    while True:
        places = np.sort(random.uniform(0.1, 0.9, number))
        if np.all(np.diff(places) > least):
            return [float(f"{place:.5g}") for place in places]


def square_well_eigenvalues(ends: Sequence[float], heights: Sequence[float], count: int) -> list[float]:
    """Return the lowest eigenvalues of -u'' + V u between zero values, for a potential that is constant by pieces.

    The number of eigenvalues below some value is the number of zeros of the solution that starts with zero (Sturm's
    oscillation theorem: E. Coddington and N. Levinson, Theory of Ordinary Differential Equations, 1955, ch. 8), which
    is known exactly on every piece.
    """
    lowest, highest = min(heights), max(heights) + ((count + 2) * math.pi / (ends[-1] - ends[0])) ** 2
    found = []
    for number in range(1, count + 1):
        low, high = lowest, highest
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (low, middle) if _zeros(ends, heights, middle) >= number else (middle, high)
        found.append(high)
    return found


def _zeros(ends: Sequence[float], heights: Sequence[float], value: float) -> int:
    """Return the number of zeros beyond the start of the solution with value 0 and slope 1 there."""
    u, slope, zeros = 0.0, 1.0, 0
    for (start, end), height in zip(pairwise(ends), heights, strict=True):
        length, square = end - start, value - height
        if square > 0:
            wave = math.sqrt(square)
            angle = math.atan2(wave * u, slope) % math.pi
            sign = 1.0 if math.sin(angle) * u + math.cos(angle) * slope >= 0 else -1.0
            zeros += int((angle + wave * length) // math.pi)
            u, slope = sign * math.sin(angle + wave * length), sign * wave * math.cos(angle + wave * length)
        else:
            decay = math.sqrt(-square)
            reach = math.tanh(decay * length)
            if u and slope and 0 < -decay * u / slope <= reach:
                zeros += 1
            over = length if decay == 0 else reach / decay
            ahead = u + slope * over, slope + u * decay * reach
            # What only decays vanishes by rounding; it may go on as it was.
            u, slope = ahead if any(ahead) else (u, slope)
        size = math.hypot(u, slope / max(1.0, math.sqrt(abs(square))))
        u, slope = u / size, slope / size
    return zeros


def _smooth_well(random: Generator) -> Spectrum:
    """A Pöschl-Teller well: the bound states of depth l(l + 1)/w**2 are at -(l - n)**2/w**2.

    S. Flügge, Practical Quantum Mechanics, 1971, problem 39; walls far away change them by exp(-2 (l - n) d/w).
    """
    width = float(f"{10 ** random.uniform(-3, -1.9):.3g}")
    place, level = float(f"{random.uniform(0.25, 0.75):.5g}"), int(random.integers(1, 5))
    values = [-(((level - n) / width) ** 2) for n in range(level)]
    depth = f"{level * (level + 1)}/{width:.17g}**2"
    equation = f"-u_xx - {depth}/cosh((x - {place:.17g})/{width:.17g})**2*u = lam*u"
    return _interval(equation, "smooth well", width, int(random.integers(1, level + 1)), values)


def _rectangle(random: Generator) -> Spectrum:
    """A drum: square, with degenerate pairs, or nearly so."""
    longer = 1.0 + (0.0 if random.random() < 0.3 else float(f"{10 ** random.uniform(-4, -0.5):.3g}"))
    pairs = [(math.pi * m) ** 2 + (math.pi * n / longer) ** 2 for m in range(1, 12) for n in range(1, 12)]
    bounds = {"x": [0, 1], "y": [0, longer]}
    domain = {"type": "box", "bounds": bounds}
    count = int(random.integers(2, 9))
    return Spectrum(
        "drum", 1.0, "-lap(u) = lam*u", ("x", "y"), domain, HELD, count, tuple(sorted(pairs)[: count + 4])
    )


def _periodic(random: Generator) -> Spectrum:
    """A ring: all eigenvalues but the first are double."""
    count = int(random.integers(2, 8))
    values = sorted((2 * math.pi * n) ** 2 for n in range(-8, 9))
    domain = {"type": "box", "bounds": {"x": [0, 1]}}
    ring = ({"type": "periodic", "axis": "x"},)
    return Spectrum("ring", 1.0, "-u_xx = lam*u", ("x",), domain, ring, count, tuple(values[: count + 4]))


def _well_in_the_plane(random: Generator) -> Spectrum:
    """A square with a trench along one axis: sums of two spectra of intervals."""
    width = float(f"{10 ** random.uniform(-1.6, -0.8):.3g}")
    depth = float(f"{(random.uniform(1.5, 4) / width) ** 2:.4g}")
    place = float(f"{random.uniform(0.2, 0.8):.4g}")
    ends = [0.0, float(f"{place - width / 2:.6g}"), float(f"{place + width / 2:.6g}"), 1.0]
    along = square_well_eigenvalues(ends, [0.0, -depth, 0.0], 10)
    sums = sorted(value + (math.pi * n) ** 2 for value in along for n in range(1, 12))
    count = int(random.integers(1, 5))
    trench = f"piecewise(0, x < {ends[1]:.17g}, {-depth:.17g}, x < {ends[2]:.17g}, 0)"
    domain = {"type": "box", "bounds": {"x": [0, 1], "y": [0, 1]}}
    equation = f"-lap(u) + {trench}*u = lam*u"
    return Spectrum("trench", width, equation, ("x", "y"), domain, HELD, count, tuple(sums[: count + 4]))


def _disk(random: Generator) -> Spectrum:
    """A round drum: squares of zeros of Bessel functions, double but for those of order 0."""
    from scipy.special import jn_zeros

    zeros = [float(zero) for order in range(12) for zero in np.repeat(jn_zeros(order, 6), 2 if order else 1)]
    count = int(random.integers(2, 8))
    values = tuple(sorted(zero**2 for zero in zeros)[: count + 4])
    domain = {"type": "disk", "radius": 1}
    return Spectrum("round drum", 1.0, "-lap(u) = lam*u", ("x", "y"), domain, HELD, count, values)
