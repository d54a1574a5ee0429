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
from sharp.reference.metrics import FeedbackMetric, MetricInput, MetricValue, metric, step_excess
from sharp.yaml_documents import hint

Array = NDArray[Any]

# How close to the wrap its jumps are taken, how far from it the interior ones that they are compared with, and by
# which factor they may exceed those: a captured shock on the wrap is twice as steep as beside it.
_WRAP = 2
_NEIGHBOURHOOD = 1 / 16
_FEWEST_NEIGHBOURS = 8
_ALLOWED = 2.0


@metric(
    "nRMSE",
    description="Distance from the reference solution on the validation samples.",
    source="Takamoto et al., PDEBench, NeurIPS 2022 (normalised RMSE); PDE-SHARP (arXiv 2511.00183), section 4.1",
    shape="all samples, times, points and fields",
    normalisation="2-norm of the difference over that of the reference, per sample, fields together; "
    "mean over samples",
    needs_data=True,
)
def nrmse(case: MetricInput) -> MetricValue:
    """Return the mean over samples of ||prediction - reference||_2 / ||reference||_2."""
    assert case.reference is not None
    return MetricValue(relative_errors(case.prediction, case.reference).mean)


@metric(
    "PDE residual",
    description="How far the solution is from satisfying the equations and the initial or boundary "
    "conditions, by fixed difference operators on the output grid; no reference data are used.",
    source="PDE-SHARP (arXiv 2511.00183), section 3.3; operators in `sharp.reference.residual`",
    shape="at most 16 samples and 32 output times, all points; with shocks the smooth part",
    normalisation="root mean square of the sum of all terms over the sum of those of each; "
    "the largest of all equations",
)
def residual(case: MetricInput) -> MetricValue:
    """Return the normalised residual of the equations by the scorer's own operators."""
    return MetricValue(*sampled_residual(case.problem, case.inputs, case.prediction))


@metric(
    "Initial condition mismatch",
    description="Distance of the first returned frame from the initial condition that the solver was given.",
    source="the initial value problem itself; LeVeque, Finite Difference Methods, 2007, chapter 9",
    shape="the first frame of every sample and field",
    normalisation="2-norm of the difference over that of the initial condition, per sample; "
    "mean over samples, the worst field",
)
def initial_condition(case: MetricInput) -> MetricValue:
    """Return the relative distance of the first frame [n, N] from what was given, of the worst field."""
    return _worst({field: _distance(u[:, 0], start) for field, u, start in _fields(case)})


@metric(
    "Periodicity mismatch",
    description="Jumps between the last and the first cells that neither the cells near them nor the "
    "initial condition account for: the mark of a boundary that is not treated as periodic.",
    source="LeVeque, Finite Volume Methods, 2002, section 7.1 (periodic boundary conditions by ghost cells)",
    shape="the cells within a sixteenth of the interval of its ends, in all frames",
    normalisation="what a jump has beyond twice the largest near it, over the range of the field; root "
    "mean square over times, mean over samples, the worst field",
)
def periodic_wrap(case: MetricInput) -> MetricValue:
    """Return by how much jumps across the ends of the interval exceed what the interior accounts for.

    In every frame [N] the jumps at the ends and next to them are compared with twice the largest jump within
    N/16 cells of them in any frame, and with those that the initial condition has there.
    """
    return _worst({field: _excess(u, start) for field, u, start in _fields(case)})


@metric(
    "Boundary condition mismatch",
    description="Values on the boundary, where the solution is zero.",
    source="LeVeque, Finite Difference Methods, 2007, chapter 3 (Dirichlet conditions)",
    shape="the boundary nodes of every sample",
    normalisation="root mean square on the boundary over that inside, per sample; mean over samples",
)
def boundary_condition(case: MetricInput) -> MetricValue:
    """Return the root mean square of u [n, N, N] on the walls over that inside, averaged over samples."""
    (u,) = case.prediction.values()
    walls = np.concatenate([u[:, 0], u[:, -1], u[:, 1:-1, 0], u[:, 1:-1, -1]], axis=1)
    return MetricValue(float(np.mean(_ratio(_rms(walls), _rms(u[:, 1:-1, 1:-1])))))


@metric(
    "Two-grid difference",
    description="Distance between the solver's solutions on the output grid and on one of half as many "
    "points a direction, compared on the latter. Of a scheme that converges with order p it is about "
    "2^p - 1 times the discretisation error, so from order 1 on it bounds that error; what does not depend on "
    "the grid, such as the error of a fixed time step, does not show.",
    source="Richardson, Phil. Trans. R. Soc. A 210, 1911; Roache, J. Fluids Eng. 116, 1994 (grid "
    "convergence index)",
    shape="all samples, times and fields at every second node, or interpolated to the coarse cell centres",
    normalisation="2-norm of the difference over that of the restricted solution, per sample, fields "
    "together; mean over samples",
    needs_coarse_run=True,
)
def two_grid(case: MetricInput) -> MetricValue:
    """Return the relative 2-norm distance of the coarse solution from the fine one on the coarse grid."""
    assert case.coarse is not None
    coarse = case.coarse[1]
    n = len(next(iter(coarse.values())))
    return MetricValue(float(np.mean([_apart(case, coarse, sample) for sample in range(n)])))


@metric(
    "Explicit stability limit exceeded",
    description="How far the internal time step that the program printed (`dt=...`, or `steps=...`) is "
    "beyond the limit of explicit schemes on the output grid: transport over one cell, diffusion, reaction. "
    "It says nothing against implicit, exact or spectral time stepping.",
    source="Courant, Friedrichs and Lewy, Math. Ann. 100, 1928; LeVeque, Finite Difference Methods, 2007, "
    "sections 7.2, 9.3 and 10.7",
    shape="the printed step, the grid and the initial condition",
    normalisation="step over the smallest limit, less 1; 0 within the limit",
)
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
    (residual, tuple(FAMILIES)),
    (initial_condition, _EVOLVING),
    (periodic_wrap, _EVOLVING),
    (boundary_condition, _STEADY),
    (two_grid, ()),
    (cfl, _EVOLVING),
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
