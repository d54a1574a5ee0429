"""Relative error norms of predictions, sample by sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.errors import DataError

Array = NDArray[Any]

_BLOCK = 1 << 15  # numbers that stay in the second-level cache while they are worked on


@dataclass(frozen=True)
class SampleErrors:
    """Relative 2-norm errors of each sample, and the largest absolute error of all."""

    per_sample: tuple[float, ...]
    max_error: float

    @property
    def mean(self) -> float:
        """The nRMSE: the mean over samples."""
        return mean(self.per_sample)


@dataclass(frozen=True)
class TargetArrays:
    """Arrays by return port that predictions are compared with, and the squared 2-norm of each sample [n]."""

    arrays: Mapping[str, Array]
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> TargetArrays:
        """Measure the arrays; raises `DataError` where a sample is zero everywhere."""
        squares = _over_samples(arrays, lambda field, n: sum_of_squares(np.ravel(arrays[field][n])))
        if not squares.all():
            raise DataError(f"Sample {int(np.argmin(squares))} of the reference is zero everywhere.")
        return cls(arrays, squares)

    def errors(self, prediction: Mapping[str, Array]) -> SampleErrors:
        """Return the relative 2-norm errors of a prediction, the fields of a sample stacked.

        Sums are taken in double precision; two numbers in single precision are subtracted in it, which
        rounds their difference by no more than 6e-8 of itself.
        """
        largest: list[float] = []

        def square(block: Array) -> float:
            largest.append(max(block.max(), -block.min()))
            return sum_of_squares(block)

        per_sample = self._relative(prediction, square)
        return SampleErrors(per_sample, float(np.max(largest)))

    def distances(self, prediction: Mapping[str, Array]) -> tuple[float, ...]:
        """Return the relative errors of the samples alone, which takes less time."""
        return self._relative(prediction, sum_of_squares)

    def first(self, samples: int) -> TargetArrays:
        """Return the first samples alone."""
        return TargetArrays(
            {name: values[:samples] for name, values in self.arrays.items()}, self.squares[:samples]
        )

    def _relative(
        self, prediction: Mapping[str, Array], square: Callable[[Array], float]
    ) -> tuple[float, ...]:
        """Return the errors, given what takes the sum of squares of a block of differences."""

        def total(field: str, sample: int) -> float:
            return sum(map(square, block_differences(prediction[field][sample], self.arrays[field][sample])))

        with np.errstate(over="ignore", invalid="ignore"):
            return tuple(np.sqrt(_over_samples(self.arrays, total) / self.squares).tolist())


def mean(per_sample: Sequence[float]) -> float:
    """Return the mean over samples, correctly rounded."""
    return math.fsum(per_sample) / len(per_sample)


def relative_errors(prediction: Mapping[str, Array], reference: Mapping[str, Array]) -> SampleErrors:
    """Return ||prediction - reference||_2 / ||reference||_2 of each sample, the fields of a sample stacked.

    The arrays of a field have the same shape, samples first; see `TargetArrays.errors`. Raises `DataError` where
    the reference of a sample is zero everywhere.
    """
    return TargetArrays.of(reference).errors(prediction)


def _over_samples(arrays: Mapping[str, Array], square: Callable[[str, int], float]) -> NDArray[np.float64]:
    samples = len(next(iter(arrays.values())))
    return np.array([sum(square(field, n) for field in arrays) for n in range(samples)])


def sum_of_squares(values: Array) -> float:
    """Return the sum of squares of a vector."""
    exact = values.astype(np.float64, copy=False)
    return float(exact @ exact)


def block_differences(found: Array, wanted: Array) -> Iterator[Array]:
    """Yield `found - wanted` block by block, in the more exact of their types."""
    found, wanted, exact = np.ravel(found), np.ravel(wanted), np.result_type(found, wanted)
    for start in range(0, found.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        yield found[part].astype(exact, copy=False) - wanted[part].astype(exact, copy=False)
