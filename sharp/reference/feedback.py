"""Feedback metrics: what can be said of a run besides its error (PDE-SHARP, appendix B.2.6).

Here are those that any problem, or any that evolves in time, may be judged by, and the table of all of them; those of
one family are defined beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.errors import ConfigurationError
from sharp.plugins import load_plugins
from sharp.problems import Problem
from sharp.reference.coarse_grid import restricted
from sharp.reference.error_norms import relative_errors
from sharp.reference.families import FAMILIES, sampled_residual, tightest_limit
from sharp.reference.metrics import FeedbackMetric, MetricInput, MetricValue, run_metric, step_excess
from sharp.yaml_documents import hint

Array = NDArray[Any]

# How close to the wrap its jumps are taken, how far from it the interior ones that they are compared with, and by
# which factor they may exceed those: a captured shock on the wrap is twice as steep as beside it.
_WRAP = 2
_NEIGHBOURHOOD = 1 / 16
_FEWEST_NEIGHBOURS = 8
_ALLOWED = 2.0


@run_metric(needs_data=True)
def nrmse(case: MetricInput) -> MetricValue:
    """Return the mean over samples of ||prediction - reference||_2 / ||reference||_2."""
    assert case.reference is not None
    return MetricValue(relative_errors(case.prediction, case.reference).mean)


@run_metric()
def residual(case: MetricInput) -> MetricValue:
    """Return the normalised residual of the equations by the scorer's own operators."""
    return MetricValue(*sampled_residual(case.problem, case.inputs, case.prediction))


@run_metric()
def initial_condition(case: MetricInput) -> MetricValue:
    """Return the relative distance of the first frame [n, N] from what was given, of the worst field."""
    return _worst({field: _distance(u[:, 0], start) for field, u, start in _fields(case)})


@run_metric()
def periodic_wrap(case: MetricInput) -> MetricValue:
    """Return by how much jumps across the ends of the interval exceed what the interior accounts for.

    In every frame [N] the jumps at the ends and next to them are compared with twice the largest jump within
    N/16 cells of them in any frame, and with those that the initial condition has there.
    """
    return _worst({field: _excess(u, start) for field, u, start in _fields(case)})


@run_metric()
def boundary_condition(case: MetricInput) -> MetricValue:
    """Return the root mean square of u [n, N, N] on the walls over that inside, averaged over samples."""
    (u,) = case.prediction.values()
    walls = np.concatenate([u[:, 0], u[:, -1], u[:, 1:-1, 0], u[:, 1:-1, -1]], axis=1)
    return MetricValue(float(np.mean(_ratio(_rms(walls), _rms(u[:, 1:-1, 1:-1])))))


@run_metric(needs_coarse_run=True)
def two_grid(case: MetricInput) -> MetricValue:
    """Return the relative 2-norm distance of the coarse solution from the fine one on the coarse grid."""
    assert case.coarse is not None
    coarse = case.coarse[1]
    n = len(next(iter(coarse.values())))
    return MetricValue(float(np.mean([_apart(case, coarse, sample) for sample in range(n)])))


@run_metric()
def agreement(_case: MetricInput) -> MetricValue:
    """Return nothing: a run alone agrees with none. The tournament fills in what it knows from other runs."""
    return MetricValue(None, "no independent program has run yet")


@run_metric()
def cfl(case: MetricInput) -> MetricValue:
    """Return by how much the printed time step exceeds the explicit stability limit, relative to the limit."""
    tightest = tightest_limit(case.problem, case.inputs)
    if tightest is None:
        return MetricValue(None, "no part of the equations limits an explicit step")
    return step_excess(case, tightest.rate, f"share of the limit {tightest.length:.3g} of {tightest.part}")


def _apart(case: MetricInput, coarse: Mapping[str, Array], sample: int) -> float:
    """Return the relative 2-norm distance of one sample's solutions; one at a time stays in the cache."""
    squares = np.zeros(2)
    for name, values in coarse.items():
        fine = restricted(case.problem, case.prediction[name][sample].astype(np.float64))
        squares += _rms(np.stack([values[sample] - fine, fine])) ** 2
    return float(_ratio(*np.sqrt(squares)))


def _fields(case: MetricInput) -> Iterator[tuple[str, Array, Array]]:
    """Yield field, prediction [n, T, N] and initial condition [n, N] of every field that is given."""
    returned = {port.field: case.prediction[port.name] for port in case.problem.interface.returns}
    for port in case.problem.interface.inputs:
        yield port.field, returned[port.field], case.inputs.arrays[port.name]


def _worst(found: Mapping[str, float]) -> MetricValue:
    """Return the largest value of all fields, and whose it is where there are several."""
    field = max(found, key=lambda name: np.nan_to_num(found[name], nan=np.inf))
    return MetricValue(found[field], f"largest for {field}" if len(found) > 1 and found[field] > 0 else "")


def _distance(found: Array, given: Array) -> float:
    difference = found.astype(np.float64) - given
    return float(np.mean(_ratio(_rms(difference), _rms(given))))


def _excess(u: Array, start: Array) -> float:
    """Return the root mean square over frames of the excess jump over the range of the field, over samples."""
    at_wrap, beside = _jumps(u)
    given, _ = _jumps(start[:, None])
    allowed = np.maximum(_ALLOWED * beside.max(axis=1), given[:, 0])
    excess = np.maximum(at_wrap - allowed[:, None], 0.0)
    span = u.max(axis=(1, 2)).astype(np.float64) - u.min(axis=(1, 2))
    return float(np.mean(_ratio(_rms(excess), span)))


def _jumps(u: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest jumps [n, T] between neighbours at the wrap, and between those near to it."""
    reach = min(max(_FEWEST_NEIGHBOURS, round(_NEIGHBOURHOOD * u.shape[-1])), u.shape[-1] // 2 - 1)
    around = np.concatenate([u[..., -reach:], u[..., :reach]], axis=-1).astype(np.float64)
    jumps = np.abs(np.diff(around, axis=-1))
    first, last = reach - _WRAP, reach + _WRAP - 1
    beside = np.maximum(jumps[..., :first].max(axis=-1), jumps[..., last:].max(axis=-1))
    return jumps[..., first:last].max(axis=-1), beside


def _rms(values: Array) -> NDArray[np.float64]:
    """Return the root mean square of each sample [n, ...]."""
    axes = tuple(range(1, values.ndim))
    return np.asarray(np.sqrt(np.mean(np.square(values, dtype=np.float64), axis=axes)))


def _ratio(values: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide; where the scale is zero a value counts as 1, and as 0 if it is zero, too."""
    nothing = scale == 0
    return np.where(nothing, (values != 0) * 1.0, values / np.where(nothing, 1.0, scale))


_STEADY = tuple(name for name, family in FAMILIES.items() if family.steady)
_EVOLVING = tuple(name for name in FAMILIES if name not in _STEADY)
# By the families that they are for; none means every problem.
_GENERAL: tuple[tuple[FeedbackMetric, tuple[str, ...]], ...] = (
    (nrmse, ()),
    (residual, ()),
    (initial_condition, _EVOLVING),
    (periodic_wrap, _EVOLVING),
    (boundary_condition, _STEADY),
    (two_grid, ()),
    (cfl, _EVOLVING),
    (agreement, ()),
)
BUILT_IN = tuple(
    replace(each, families=names)
    for each, names in (
        *_GENERAL,
        *((each, (family.name,)) for family in FAMILIES.values() for each in family.metrics),
    )
)


@cache
def all_metrics() -> Mapping[str, FeedbackMetric]:
    """Return all metrics by name: those of every collection of the group `sharp.feedback_metrics`.

    A collection that holds anything but metrics, or a name that is taken already, is left out with a warning.
    """
    found: dict[str, FeedbackMetric] = {}

    def added(collection: Iterable[FeedbackMetric]) -> None:
        new = {each.name: each for each in collection}
        if taken := sorted(new.keys() & found.keys()):
            raise ValueError(f"there are metrics of these names already: {', '.join(taken)}")
        found.update(new)

    load_plugins("sharp.feedback_metrics", added)
    return found


def metrics_for(problem: Problem) -> dict[str, FeedbackMetric]:
    """Return the metrics that a solver of this problem may be judged by, by name."""
    return {
        name: each
        for name, each in all_metrics().items()
        if not each.families or problem.family in each.families
    }


def compute(names: Collection[str], case: MetricInput) -> dict[str, MetricValue]:
    """Return what the named metrics find in a run; a number that overflows is None, with a note.

    Raises `ConfigurationError` for a name that is no metric of the problem.
    """
    valid = metrics_for(case.problem)
    wrong = [name for name in names if name not in valid]
    if wrong:
        raise ConfigurationError(
            f"{case.problem.id}: there is no feedback measure {wrong[0]!r}{hint(wrong[0], valid)}"
        )
    return {name: _computed(valid[name], case) for name in names}


def _computed(each: FeedbackMetric, case: MetricInput) -> MetricValue:
    """Let a metric see what it needs and no more."""
    if each.needs_coarse_run and case.coarse is None:
        return MetricValue(None, "there is no solution on the coarser grid")
    if each.needs_data and case.reference is None:
        return MetricValue(None, "there is no reference solution")
    seen = replace(
        case,
        reference=case.reference if each.needs_data else None,
        coarse=case.coarse if each.needs_coarse_run else None,
    )
    with np.errstate(all="ignore"):
        found = each.function(seen)
    return (
        found if found.value is None or isfinite(found.value) else MetricValue(None, "the numbers overflow")
    )
