"""Measures for steady Darcy flow: its equation inside the phases, fluxes between cells, and their balances.

All take the coefficient for constant on the dual cell of each node, the square of side h around it, as the reference
solutions do. On coefficients whose phases meet in steps of one cell, the exact solution has a corner at every step
that no difference resolves: what it leaves is told below for random coefficients on 121 x 121 nodes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sharp.feedback.measure import Case, Measure, Value
from sharp.feedback.samples import Array, Sample, mean_over_samples, ratio
from sharp.numerics.residual import harmonic

Norm = Callable[[Array], float]
Mask = NDArray[np.bool_]
_NOWHERE_CONSTANT = "the coefficient is nowhere constant over 5 x 5 nodes"


def residual_l2(case: Case) -> Value:
    """Return the root mean square of -a (u_xx + u_yy) - beta over those of the three terms (u [n, N, N]).

    Central differences, at nodes in the middle of 5 x 5 of the same coefficient. Of order h^2 where u is smooth; the
    exact solution leaves 5e-3.
    """
    return _strong_residual(case, _rms)


def residual_max(case: Case) -> Value:
    """Return the same as `residual_l2` with largest values; the exact solution leaves 3e-2, next to corners."""
    return _strong_residual(case, _largest)


def cell_balance(case: Case) -> Value:
    """Return the mean over dual cells of what flows in, out and arises, over the sum of their sizes (u [n, N, N]).

    Fluxes between cells have the harmonic mean of their coefficients. 0 for the five-point scheme with that mean,
    of order h^2 for smooth solutions; the exact solution leaves 2e-3, from the cells at the edge of a phase.
    """
    beta = case.problem.parameters["beta"]

    def measure(sample: Sample) -> float:
        a, u, source = *_arrays(sample), beta * sample.dx**2
        x, y = _fluxes(a, u)[:, 1:-1], _fluxes(a.T, u.T)[:, 1:-1].T
        surplus = np.abs(np.diff(x, axis=0) + np.diff(y, axis=1) - source)
        passing = np.abs(x[1:]) + np.abs(x[:-1]) + np.abs(y[:, 1:]) + np.abs(y[:, :-1]) + abs(source)
        return float(np.mean(surplus / passing))

    return mean_over_samples(case, measure)


def compatibility(case: Case) -> Value:
    """Return how far the flux out through the walls is from the integral of beta, relative to that (u [n, N, N]).

    The flux is that between the nodes on the walls and their neighbours, out of the square that ends half a cell before
    the walls. 0 for schemes that conserve; else of order h^2, and the exact solution leaves 4e-4, from phases that end
    at a wall. A solution that is 10 % too large gives 0.1.
    """
    beta = case.problem.parameters["beta"]

    def measure(sample: Sample) -> float:
        a, u = _arrays(sample)
        outflow = 0.0
        for flux in (_fluxes(a, u)[:, 1:-1], _fluxes(a.T, u.T)[:, 1:-1]):
            outflow += float(flux[-1].sum() - flux[0].sum())
        source = beta * ((len(u) - 2) * sample.dx) ** 2
        return ratio(abs(outflow - source), abs(source))

    return mean_over_samples(case, measure)


def jump_estimator(case: Case) -> Value:
    """Return the residual-jump estimate of the error in the energy norm, over the energy norm of u [n, N, N].

    The squares of h (beta + a (u_xx + u_yy)) / sqrt(a) in the cells, and of jumps of the normal flux over
    sqrt(a + a') at their faces, are added up. Fluxes on the two sides of a face are extrapolated from three nodes of
    one coefficient each, so that jumps of the coefficient cause none; faces without are left out. Of order h^2 for
    smooth solutions; the exact solution leaves 5e-2, falling with the root of h.
    """
    beta = case.problem.parameters["beta"]

    def measure(sample: Sample, a: Array, u: Array, inside: Mask) -> float:
        x, y = _second_differences(a, u)
        cells = np.square(x + y + beta * sample.dx**2)[inside] / a[2:-2, 2:-2][inside]
        estimate = cells.sum() + _squared_jumps(a, u) + _squared_jumps(a.T, u.T)
        return float(np.sqrt(ratio(estimate, _energy(a, u) + _energy(a.T, u.T))))

    return _mean_where_constant(case, measure)


def energy_change(case: Case) -> Value:
    """Return by how much the integral of u [n, N, N] changes from the coarse grid to the fine one, relative to that.

    Times beta, the integral is the energy, which converges twice as fast as the solution in the energy norm. A coarse
    grid knows every second value of the coefficient only: with random ones the exact solution changes by 1e-3.
    """
    assert case.coarse is not None
    (fine,), (coarse,) = case.prediction.values(), case.coarse[1].values()
    means = [_trapezoidal_mean(u) for u in (coarse, fine)]
    return Value(float(np.mean(np.abs(means[0] - means[1]) / np.abs(means[1]))))


def _strong_residual(case: Case, norm: Norm) -> Value:
    beta = case.problem.parameters["beta"]

    def measure(sample: Sample, a: Array, u: Array, inside: Mask) -> float:
        x, y = (-term[inside] / sample.dx**2 for term in _second_differences(a, u))
        return ratio(norm(x + y - beta), norm(x) + norm(y) + abs(beta))

    return _mean_where_constant(case, measure)


def _mean_where_constant(case: Case, measure: Callable[[Sample, Array, Array, Mask], float]) -> Value:
    """Return the mean of a measure that is told where the coefficient is constant, over samples where it is."""

    def of_sample(sample: Sample) -> float | None:
        a, u = _arrays(sample)
        inside = _constant(a)
        return measure(sample, a, u, inside) if inside.any() else None

    return mean_over_samples(case, of_sample, _NOWHERE_CONSTANT)


def _arrays(sample: Sample) -> tuple[Array, Array]:
    """Return coefficient and solution [N, N]."""
    (a,), (u,) = sample.given.values(), sample.fields.values()
    return a, u


def _constant(a: Array) -> Mask:
    """Return at which nodes [N-4, N-4] the coefficient is the same at all of the 5 x 5 nodes around."""
    along_x, along_y = _runs(a[1:] == a[:-1], 4), _runs((a[:, 1:] == a[:, :-1]).T, 4).T
    return along_x[:, 2:-2] & _runs(along_y, 5)


def _runs(flags: NDArray[np.bool_], length: int) -> NDArray[np.bool_]:
    """Return where so many flags in a row are set, along the first axis."""
    last = len(flags) - length + 1
    return np.asarray(np.logical_and.reduce([flags[start : start + last] for start in range(length)]))


def _second_differences(a: Array, u: Array) -> tuple[Array, Array]:
    """Return a h^2 u_xx and a h^2 u_yy [N-4, N-4]."""
    a, u = a[2:-2, 2:-2], u[1:-1, 1:-1]
    return a * np.diff(u, 2, axis=0)[:, 1:-1], a * np.diff(u, 2, axis=1)[1:-1]


def _fluxes(a: Array, u: Array) -> Array:
    """Return the fluxes between neighbours along the first axis, through faces of length h [N-1, N]."""
    return harmonic(a[1:], a[:-1]) * -np.diff(u, axis=0)


def _energy(a: Array, u: Array) -> float:
    return float((harmonic(a[1:], a[:-1]) * np.diff(u, axis=0) ** 2).sum())


def _squared_jumps(a: Array, u: Array) -> float:
    """Return the sum of squared jumps of the flux over a + a' at the faces between neighbours along the first axis.

    Slopes at the face from its two sides are extrapolated linearly from those between the three nodes there.
    """
    steps, left, right = np.diff(u, axis=0), a[2:-3], a[3:-2]
    constant = (a[:-5] == left) & (a[1:-4] == left) & (a[4:-1] == right) & (a[5:] == right)
    jump = right * (2 * steps[3:-1] - steps[4:]) - left * (2 * steps[1:-3] - steps[:-4])
    return float((constant * jump**2 / (left + right)).sum())


def _trapezoidal_mean(u: NDArray[np.floating]) -> Array:
    """Return the means [n] of u [n, N, N] over the square."""
    weights = np.ones(u.shape[-1])
    weights[[0, -1]] = 0.5
    return np.asarray(np.einsum("nij,i,j->n", u, weights, weights) / weights.sum() ** 2)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _largest(values: Array) -> float:
    return float(np.abs(values).max())


def _measure(name: str, title: str, function: Callable[[Case], Value], **words: str) -> Measure:
    return Measure(
        name=name,
        title=title,
        families=("darcy-2d",),
        needs_reference=False,
        needs_coarse=function is energy_change,
        function=function,
        **words,
    )


MEASURES: tuple[Measure, ...] = (
    _measure(
        "residual_l2",
        "Residual inside the phases (L2)",
        residual_l2,
        description="How far the solution is from satisfying the equation where the coefficient is constant, in the "
        "mean.",
        source="LeVeque, Finite Difference Methods for Ordinary and Partial Differential Equations, 2007, section 3.2",
        shape="the nodes in the middle of 5 x 5 of the same coefficient, of all samples",
        normalisation="2-norm of the sum of the terms a u_xx, a u_yy and beta over the sum of their 2-norms; mean over "
        "samples",
    ),
    _measure(
        "residual_max",
        "Residual inside the phases (maximum)",
        residual_max,
        description="How far the solution is from satisfying the equation where the coefficient is constant, at the "
        "worst place: single wrong nodes, unfinished iterations.",
        source="LeVeque, Finite Difference Methods for Ordinary and Partial Differential Equations, 2007, section 3.2",
        shape="the nodes in the middle of 5 x 5 of the same coefficient, of all samples",
        normalisation="largest sum of the terms a u_xx, a u_yy and beta over the sum of their largest values; mean "
        "over samples",
    ),
    _measure(
        "cell_balance",
        "Mass balance of the cells",
        cell_balance,
        description="What cells lose or gain: the flux out of the square around each node less the source in it.",
        source="Eymard, Gallouet and Herbin, Finite Volume Methods (Handbook of Numerical Analysis VII), 2000, "
        "section 11 (two-point fluxes with harmonic means)",
        shape="the squares of side h around the inner nodes of all samples",
        normalisation="net outflow less source over the sum of the sizes of the four fluxes and the source; mean over "
        "cells and samples",
    ),
    _measure(
        "compatibility",
        "Global balance",
        compatibility,
        description="How far the total flux out through the walls is from the integral of the source: the size of the "
        "solution as a whole.",
        source="Evans, Partial Differential Equations, 2010, appendix C.2 (Gauss-Green); Eymard, Gallouet and Herbin, "
        "Finite Volume Methods, 2000, section 11",
        shape="the fluxes between the walls and the nodes next to them, of all samples",
        normalisation="difference over the integral of the source; mean over samples",
    ),
    _measure(
        "jump_estimator",
        "Residual and flux-jump error estimator",
        jump_estimator,
        description="An a-posteriori estimate of the error of the gradient, from the residual in the cells and the "
        "jumps of the flux between them.",
        source="Verfuerth, A Posteriori Error Estimation Techniques for Finite Element Methods, 2013, section 1.4; "
        "weights for jumping coefficients: Bernardi and Verfuerth, Numer. Math. 85, 2000",
        shape="nodes in the middle of 5 x 5 of the same coefficient, faces with three nodes of one on either side",
        normalisation="root of the sum of squares over the energy norm of the solution; mean over samples",
    ),
    _measure(
        "energy_change",
        "Change of the energy with the grid",
        energy_change,
        description="How much the integral of the solution changes when the solver is given every second node only.",
        source="Roache, J. Fluids Eng. 116, 1994 (grid convergence); Ciarlet, The Finite Element Method for Elliptic "
        "Problems, 2002, section 2.4 (energy)",
        shape="the mean of the solution on the output grid and on that of half as many cells a direction",
        normalisation="difference over the mean on the output grid; mean over samples",
    ),
)
