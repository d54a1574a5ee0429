"""Judging the arrays that a solver returned: of the agreed form, finite, how far from the reference?

The error is that of the benchmark the published tables use: for each sample the root mean square of the
difference over that of the reference, over all times, points and returned fields together; then the mean over
samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sharp.errors import DataError
from sharp.evaluation.protocol import Failure, Scores

if TYPE_CHECKING:
    from sharp.evaluation.datasets import Inputs
    from sharp.problems import Problem

Array = NDArray[Any]

_BLOCK = 1 << 15  # numbers that stay in the second-level cache while they are worked on
_DISTINCT = 1e-3
_RESIDUAL_SAMPLES = 16


@dataclass(frozen=True)
class Errors:
    """Relative 2-norm errors of each sample, and the largest absolute error of all."""

    per_sample: tuple[float, ...]
    max_error: float

    @property
    def mean(self) -> float:
        """The nRMSE: the mean over samples."""
        return mean(self.per_sample)


@dataclass(frozen=True)
class Target:
    """Arrays by return port that predictions are compared with, and the squared 2-norm of each sample [n]."""

    arrays: Mapping[str, Array]
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> Target:
        """Measure the arrays; raises `DataError` where a sample is zero everywhere."""
        squares = _over_samples(arrays, lambda field, n: _square(np.ravel(arrays[field][n])))
        if not squares.all():
            raise DataError(f"Sample {int(np.argmin(squares))} of the reference is zero everywhere.")
        return cls(arrays, squares)

    def errors(self, prediction: Mapping[str, Array]) -> Errors:
        """Return the relative 2-norm errors of a prediction, the fields of a sample stacked.

        Sums are taken in double precision; two numbers in single precision are subtracted in it, which
        rounds their difference by no more than 6e-8 of itself.
        """
        largest: list[float] = []

        def square(block: Array) -> float:
            largest.append(max(block.max(), -block.min()))
            return _square(block)

        per_sample = self._relative(prediction, square)
        return Errors(per_sample, float(np.max(largest)))

    def distances(self, prediction: Mapping[str, Array]) -> tuple[float, ...]:
        """Return the relative errors of the samples alone, which takes less time."""
        return self._relative(prediction, _square)

    def first(self, samples: int) -> Target:
        """Return the first samples alone."""
        return Target(
            {name: values[:samples] for name, values in self.arrays.items()}, self.squares[:samples]
        )

    def _relative(
        self, prediction: Mapping[str, Array], square: Callable[[Array], float]
    ) -> tuple[float, ...]:
        """Return the errors, given what takes the sum of squares of a block of differences."""

        def total(field: str, sample: int) -> float:
            return sum(map(square, _differences(prediction[field][sample], self.arrays[field][sample])))

        with np.errstate(over="ignore", invalid="ignore"):
            return tuple(np.sqrt(_over_samples(self.arrays, total) / self.squares).tolist())


@dataclass(frozen=True)
class Answers:
    """What is known of some samples; `floor` is the error of the truth, measured as a prediction's is."""

    reference: Target
    truth: Target | None
    floor: float | None

    @classmethod
    def of(cls, reference: Mapping[str, Array], truth: Mapping[str, Array] | None) -> Answers:
        """Measure once what does not depend on a prediction; raises `DataError` for samples that are zero."""
        target = Target.of(reference)
        if truth is None:
            return cls(target, None, None)
        return cls(target, Target.of(truth), mean(target.distances(truth)))


def mean(per_sample: Sequence[float]) -> float:
    """Return the mean over samples, correctly rounded."""
    return math.fsum(per_sample) / len(per_sample)


def relative_errors(prediction: Mapping[str, Array], reference: Mapping[str, Array]) -> Errors:
    """Return ||prediction - reference||_2 / ||reference||_2 of each sample, the fields of a sample stacked.

    The arrays of a field have the same shape, samples first; see `Target.errors`. Raises `DataError` where
    the reference of a sample is zero everywhere.
    """
    return Target.of(reference).errors(prediction)


def form_failure(
    returned: Mapping[str, tuple[str, tuple[int, ...]]], expected: Mapping[str, tuple[int, ...]]
) -> Failure | None:
    """Return what is wrong with the `{name: (dtype, shape)}` of the returned arrays, if anything is."""
    faults = [
        f"{name} has dtype {dtype}, expected a real floating-point array"
        for name, (dtype, _) in returned.items()
        if not dtype.startswith(("float", "bfloat", "int", "uint"))
    ]
    faults += [
        f"{name} has shape {_shape(returned[name][1])}, expected {_shape(shape)}"
        for name, shape in expected.items()
        if returned[name][1] != shape
    ]
    return Failure("shape", "; ".join(faults) + ".") if faults else None


def finiteness_failure(prediction: Mapping[str, Array], t: Array | None) -> Failure | None:
    """Return where the first NaN or Inf is (the earliest in time, then by sample), if there is one."""
    for name, values in prediction.items():
        bad = ~np.isfinite(values)
        if bad.any():
            message = f"{name} has {bad.sum()} values that are NaN or Inf, of {bad.size}; {_first(bad, t)}."
            return Failure("non_finite", message)
    return None


def independence_failure(
    inputs: Inputs, prediction: Mapping[str, Array], reference: Mapping[str, Array]
) -> Failure | None:
    """Return a failure where all samples have one and the same solution though their inputs and references differ.

    The first output time does not count: there solvers return their input.
    """
    later = slice(None) if inputs.t is None else slice(1, None)
    found = {name: values[:, later] for name, values in prediction.items()}
    if not _all_alike(found) or _all_alike(inputs.arrays) or not _distinct(reference, later):
        return None
    return Failure(
        "policy", "It returned the same solution for all samples, though they differ: it ignores its input."
    )


def score(
    problem: Problem, inputs: Inputs, prediction: Mapping[str, Array], answers: Answers
) -> Scores | Failure:
    """Score arrays of the agreed form against the reference, the true solution if known, and the equation."""
    errors = answers.reference.errors(prediction)
    if not math.isfinite(errors.mean):
        overflow = Failure("non_finite", "The returned values are so large that their error overflows.")
        return finiteness_failure(prediction, inputs.t) or overflow
    if (failure := independence_failure(inputs, prediction, answers.reference.arrays)) is not None:
        return failure
    true_errors = answers.truth.distances(prediction) if answers.truth else ()
    residual, note = sampled_residual(problem, inputs, prediction)
    return Scores(
        nrmse=errors.mean,
        nrmse_per_sample=errors.per_sample,
        max_error=errors.max_error,
        nrmse_truth=mean(true_errors) if true_errors else None,
        nrmse_truth_per_sample=true_errors,
        residual=residual,
        residual_note=note,
        floor=answers.floor,
    )


def _over_samples(arrays: Mapping[str, Array], square: Callable[[str, int], float]) -> NDArray[np.float64]:
    samples = len(next(iter(arrays.values())))
    return np.array([sum(square(field, n) for field in arrays) for n in range(samples)])


def _square(values: Array) -> float:
    """Return the sum of squares of a vector."""
    exact = values.astype(np.float64, copy=False)
    return float(exact @ exact)


def _differences(found: Array, wanted: Array) -> Iterator[Array]:
    """Yield `found - wanted` block by block, in the more exact of their types."""
    found, wanted, exact = np.ravel(found), np.ravel(wanted), np.result_type(found, wanted)
    for start in range(0, found.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        yield found[part].astype(exact, copy=False) - wanted[part].astype(exact, copy=False)


def _all_alike(arrays: Mapping[str, Array]) -> bool:
    return all(np.array_equal(one, other) for values in arrays.values() for one, other in pairwise(values))


def _distinct(reference: Mapping[str, Array], later: slice) -> bool:
    """Whether any two neighbouring samples differ by more than rounding and the like."""
    return any(
        sum(map(_square, _differences(one, other))) > _DISTINCT**2 * _square(np.ravel(one))
        for values in reference.values()
        for one, other in pairwise(np.ascontiguousarray(values[:, later]))
    )


def sampled_residual(
    problem: Problem, inputs: Inputs, prediction: Mapping[str, Array]
) -> tuple[float | None, str]:
    """Return residual and note of 16 samples spread evenly: of all it would cost more than the rest of the scoring.

    None, and why, where there is no finite one.
    """
    from sharp.numerics.residual import FEWEST_TIMES, has_residual, residual  # loads scipy

    if not has_residual(problem):
        return None, f"no residual is defined for the family {problem.family}"
    if inputs.t is not None and len(inputs.t) < FEWEST_TIMES:
        return None, f"a residual takes at least {FEWEST_TIMES} output times, and there are {len(inputs.t)}"
    samples = len(next(iter(prediction.values())))
    step = -(-samples // _RESIDUAL_SAMPLES)
    some = replace(inputs, arrays={name: values[::step] for name, values in inputs.arrays.items()})
    with np.errstate(all="ignore"):
        found = residual(problem, some, {name: values[::step] for name, values in prediction.items()})
    if not math.isfinite(found.value):
        return None, "the residual overflows"
    return found.value, found.note


def _first(bad: NDArray[np.bool_], t: Array | None) -> str:
    if t is None:
        by_sample = bad.reshape(len(bad), -1).any(axis=1)
        return f"the first is in sample {by_sample.argmax()}"
    by_time = np.logical_or.reduce(bad.reshape(*bad.shape[:2], -1), axis=2)
    step = by_time.any(axis=0).argmax()
    return f"the first is at time index {step} (t = {t[step]:.4g}) in sample {by_time[:, step].argmax()}"


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"
