"""Steady problems by Newton's method, which a linear one leaves after a single step.

Steps are damped until they shorten the next one (P. Deuflhard, Newton Methods for Nonlinear Problems, 2004, ch. 3);
where that fails, the equations are blended with their linearisation at the start, and the share of the full ones is
raised to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sharp.problems import compile_expressions
from sharp.solvers.discretisation import SemiDiscreteSystem
from sharp.solvers.grid import Array
from sharp.solvers.matrices import Singular, Solve, columns_of, dense_seconds, factorise, factorise_bordered
from sharp.solvers.method import Deadline, SolverFailed
from sharp.solvers.separable import Separable
from sharp.solvers.system import linearised

_ITERATIONS = 50
_CONVERGED = 1e-12
# Steady problems do not depend on it.
_TIME = np.zeros(1)
# An update that no longer shrinks counts as rounding error below this size, relative to the solution.
_STALLED = 1e-8
_SMALLEST_STEP = 1e-3
# Where equations linearised about zero say nothing, solutions are looked for from these constants.
_LEVELS = (1.0, 100.0, 0.01, -1.0)
# The second derivatives about which equations are linearised that are singular about zero.
_CURVATURES = (0.0, 1.0)
# Constants that change residuals by less than this, relative to the matrix, are not determined.
_UNDETERMINED = 1e-10
# Data that leave a residual larger than this share of them contradict each other.
_INCOMPATIBLE = 0.01
_ROUNDING = 1e-6


@dataclass(frozen=True)
class NonlinearSystem:
    """What has to vanish, and its matrix of derivatives, for an unknown vector."""

    residual: Callable[[Array], Array]
    jacobian: Callable[[Array], Any]
    factorise: Callable[[Any], Solve] = factorise


def solve_steady(collocation: SemiDiscreteSystem, deadline: Deadline) -> Array:
    """Return the free values [f] of the solution of a steady problem.

    Raises `SolverFailed` where the equations do not determine it, where its data contradict each other, and where
    Newton's method finds nothing; `TimeLimitExceeded`.
    """
    bordered = BorderedSystem(collocation, deadline)
    start = np.zeros(collocation.size + len(bordered.means))
    if collocation.linear:
        found = _solve_linear(bordered, start)
    else:
        equations = NonlinearSystem(bordered.residual, bordered.jacobian, bordered.factorise)
        near = _linear_start(collocation, deadline, start)
        found = _near(
            equations, start if near is None else near, _levels(collocation) if near is None else ()
        )
    bordered.check(found)
    return found[: collocation.size]


def _levels(collocation: SemiDiscreteSystem) -> Iterator[Array]:
    """Yield constant states, from which a condition such as that of radiation is seen, which is flat at zero."""
    if collocation.system.conditions_hold_fields and not collocation.system.mean:
        yield from (level * np.ones(collocation.size) for level in _LEVELS)


def _near(equations: NonlinearSystem, start: Array, others: Iterable[Array]) -> Array:
    """Return the zero of the residual that Newton's method finds first, by way of blends from the start at last."""
    for state in (start, *others):
        found = newton(equations, state)
        if found is not None:
            return found
    return _continued(equations, start)


def _linear_start(collocation: SemiDiscreteSystem, deadline: Deadline, nothing: Array) -> Array | None:
    """Return the solution of the equations linearised about zero, for the same boundary values; None if none.

    Where they are not determined there, as Monge-Ampère's, they are linearised about what is convex.

    Zero inside beside boundary values that are not has gradients as large as the nodes are near, where equations such
    as that of minimal surfaces are far from linear. For flows it is the slow flow.
    """
    make: Any = type(collocation)
    for curvature in _CURVATURES:
        linear = linearised(collocation.system, curvature)
        if linear is None:
            continue
        bordered = BorderedSystem(make(linear, collocation.grid), deadline)
        try:
            found = _solve_linear(bordered, nothing)
        except SolverFailed:
            continue
        if np.all(np.isfinite(found)):
            return found
    return None


class BorderedSystem:
    """The residuals, with one more unknown for each given mean: a constant that is added to the component's equation.

    The constant is zero where the data are compatible; where they are not, it is what they miss by. Whoever asks for
    residuals or matrices after the deadline gets `TimeLimitExceeded`.
    """

    def __init__(self, collocation: SemiDiscreteSystem, deadline: Deadline) -> None:
        self._collocation = collocation
        self._deadline = deadline
        system, nodes = collocation.system, len(collocation.grid.points)
        self.means = tuple(system.mean)
        self._targets = np.array(compile_expressions(list(system.mean.values()), ())(), dtype=float)
        each = np.eye(len(system.components))
        shares = collocation.grid.weights / collocation.grid.weights.sum()
        self._averages = np.kron(each, shares)[list(self.means)]
        self._constants = collocation.sampled(np.repeat(each[:, :, None], nodes, axis=2))
        self._columns = collocation.constants()[list(self.means)]

    def residual(self, unknown: Array) -> Array:
        """Return the residuals of the equations, then of the means."""
        self._deadline.check()
        state, multipliers = np.split(unknown, [self._collocation.size])
        inner = self._collocation.rates(_TIME, state[None])[0] + multipliers @ self._columns
        values = self._collocation.values(_TIME, state[None]).ravel()
        return np.concatenate([inner, self._averages @ values - self._targets])

    def jacobian(self, unknown: Array) -> Any:
        """Return the bordered matrix."""
        self._deadline.check()
        matrix = self._collocation.jacobian(0.0, unknown[: self._collocation.size])
        self._deadline.check(dense_seconds(len(matrix)) if isinstance(matrix, np.ndarray) else 0.0)
        if not self.means:
            return matrix
        rows = self._averages @ self._collocation.constraint_matrix(0.0)
        columns = self._columns.T
        if isinstance(matrix, np.ndarray):
            return np.block([[matrix, columns], [rows, np.zeros((len(rows), len(rows)))]])
        from scipy import sparse

        blocks = [[matrix, sparse.csr_array(columns)], [sparse.csr_array(rows), None]]
        return sparse.block_array(blocks, format="csr")

    def factorise(self, matrix: Any) -> Solve:
        """Return the function that solves systems with the bordered matrix; raises `Singular`."""
        starts = np.append(0, self._collocation.ends)
        # A level that is fixed where elements are tiny, as at a corner, is lost to rounding elsewhere.
        pins = [
            int(starts[mean] + np.argmax(np.abs(column[starts[mean] : starts[mean + 1]])))
            for mean, column in zip(self.means, self._columns, strict=True)
        ]
        return factorise_bordered(matrix, len(self.means), pins)

    def check(self, unknown: Array) -> None:
        """Raise `SolverFailed` where the data contradict each other."""
        if not self.means:
            return
        state, multipliers = np.split(unknown, [self._collocation.size])
        nothing = np.zeros(self._collocation.size)
        given = np.abs(self._collocation.rates(_TIME, nothing[None])[0])
        jacobian = self._collocation.jacobian(0.0, state)
        # Where a pressure alone balances the forces, velocities are rounding errors: what forces could move counts.
        moved = np.full(self._collocation.size, given.max() / (np.abs(jacobian.diagonal()).max() or 1.0))
        found = abs(columns_of(jacobian, state)) + columns_of(abs(jacobian), moved)
        for mean, multiplier, column in zip(self.means, multipliers, self._columns, strict=True):
            own = slice(*np.append(0, self._collocation.ends)[[mean, mean + 1]])
            # What the terms of a solution lose to rounding does not count as data out of balance.
            size = given[own].sum() + _ROUNDING * found[own].sum()
            if abs(multiplier) * np.abs(column).sum() > _INCOMPATIBLE * size:
                field = self._collocation.system.components[mean].field
                raise SolverFailed(
                    "sources and boundary values do not balance, so there is no steady state: "
                    f"the equation of '{field}' is off by {multiplier:.3g} everywhere"
                )

    def check_constants(self, matrix: Any) -> None:
        """Raise `SolverFailed` where adding a constant to a component leaves all linear equations as they were."""
        matrix = matrix.whole if isinstance(matrix, Separable) else matrix
        system, largest = self._collocation.system, abs(matrix).max()
        for index, constant in enumerate(self._constants):
            if (
                index not in self.means
                and np.abs(matrix[:, : len(constant)] @ constant).max() <= _UNDETERMINED * largest
            ):
                raise SolverFailed(
                    f"'{system.components[index].field}' is determined up to a constant only; give its mean"
                )


def _solve_linear(bordered: BorderedSystem, start: Array) -> Array:
    """Return the solution of linear equations, with one step of iterative refinement."""
    matrix = bordered.jacobian(start)
    bordered.check_constants(matrix)
    solve = _factorised(bordered.factorise, matrix)
    found = start + solve(-bordered.residual(start))
    return found + solve(-bordered.residual(found))


def _factorised(factorise: Callable[[Any], Solve], matrix: Any) -> Solve:
    try:
        solve = factorise(matrix)
    except Singular:
        raise SolverFailed("the equations do not determine the solution: their matrix is singular") from None
    return lambda right: _finite(solve(right))


def _finite(found: Array) -> Array:
    if not np.all(np.isfinite(found)):
        raise SolverFailed(
            "the equations do not determine the solution, or have no finite values at the start"
        )
    return found


def newton(equations: NonlinearSystem, start: Array) -> Array | None:
    """Return a zero of the residual by damped steps from a start, or None."""
    unknown, damping, before = start, 1.0, np.inf
    for _ in range(_ITERATIONS):
        try:
            solve = equations.factorise(equations.jacobian(unknown))
        except Singular:
            return None
        step = solve(-equations.residual(unknown))
        length = np.abs(step).max()
        scale = np.abs(unknown).max() + length
        if length <= _CONVERGED * scale or (length >= 0.5 * before and length <= _STALLED * scale):
            return unknown + step
        damping = _damped(equations, solve, unknown, step, min(1.0, 2 * damping))
        if damping < _SMALLEST_STEP:
            return None
        unknown, before = unknown + damping * step, length
    return None


def _damped(
    equations: NonlinearSystem, solve: Callable[[Array], Array], unknown: Array, step: Array, damping: float
) -> float:
    """Return the share of a step after which the next one by the same matrix is shorter: Deuflhard's natural test."""
    length = np.linalg.norm(step)
    while damping >= _SMALLEST_STEP:
        residual = equations.residual(unknown + damping * step)
        # A test that is not finite fails as well.
        if np.all(np.isfinite(residual)) and np.linalg.norm(solve(residual)) <= (1 - damping / 4) * length:
            return damping
        damping /= 2
    return 0.0


def _continued(equations: NonlinearSystem, start: Array) -> Array:
    """Return a zero of the residual, by way of blends with its linearisation at the start."""
    constant, matrix = equations.residual(start), equations.jacobian(start)
    if not np.all(np.isfinite(constant)):
        raise SolverFailed("the equations have no finite values at the start of the iteration")
    unknown = start + _factorised(equations.factorise, matrix)(-constant)
    share, increment = 0.0, 0.25
    while share < 1:
        target = min(1.0, share + increment)
        found = newton(_blend(equations, start, constant, matrix, target), unknown)
        if found is None:
            increment /= 2
            if increment < _SMALLEST_STEP:
                raise SolverFailed(
                    f"Newton's method found no solution beyond {share:.3g} of the nonlinear part"
                )
            continue
        unknown, share, increment = found, target, 2 * increment
    return unknown


def _blend(
    equations: NonlinearSystem, start: Array, constant: Array, matrix: Any, share: float
) -> NonlinearSystem:
    """Return equations whose nonlinear part, what exceeds the linearisation at the start, counts to some share."""

    def residual(unknown: Array) -> Array:
        linear = constant + columns_of(matrix, unknown - start)
        return (1 - share) * linear + share * equations.residual(unknown)

    def jacobian(unknown: Array) -> Any:
        return (1 - share) * matrix + share * equations.jacobian(unknown)

    return NonlinearSystem(residual, jacobian, equations.factorise)
