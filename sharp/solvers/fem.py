"""Method `fem`: finite elements on polygons, disks, annuli, rectangles, and intervals inside which something jumps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from sharp.problems.domains import BoxDomain, RoundDomain
from sharp.solvers.collocation_driver import constant_in_time, evaluator, scaled, solve_transient
from sharp.solvers.discontinuities import interfaces
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.fem_assembly import FemSystem
from sharp.solvers.fem_forms import fixed, weak_form, weak_weights
from sharp.solvers.fem_line import IntervalSpace, divided
from sharp.solvers.fem_space import FunctionSpace
from sharp.solvers.grid import Array
from sharp.solvers.matrices import Singular, factorise
from sharp.solvers.meshes import Grading, interior_angles, polygon_of, triangulate
from sharp.solvers.method import Deadline, SolverFailed
from sharp.solvers.steady import solve_steady
from sharp.solvers.system import FirstOrderSystem, UnsupportedProblem

# The degree of the polynomials on intervals and on triangles.
LINE = 8
DEGREE = 4

# Numbers of elements along an interval.
_LINES = (2, 4, 8, 16, 32, 64, 128)
# Solutions are like r**s at a corner; above this s elements are not made smaller there.
_SMOOTH = 2.0
# Within this share of the shorter edge at a corner elements shrink towards it.
_REACH = 0.25
# More eigenvalues are computed than are wanted, and the shift is lowered as long as that finds lower ones.
_SPARE = 4
_SHIFTS = 10


class FiniteElements:
    """Continuous piecewise polynomials, of degree 8 on intervals and 4 on triangles.

    `resolution` is the number of elements along an interval, or of triangles across a plane domain.
    """

    name = "fem"

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """Return what stands in the way: the domain, the order of the equations, or the boundary conditions."""
        domain = system.problem.domain
        line = len(system.space) == 1
        if isinstance(domain, BoxDomain) and not line and (len(domain.bounds) > 2 or system.periodic):
            return "the elements here fill intervals, and plane domains without periodic axes"
        if line and not interfaces(system.problem):
            return "nothing jumps or bends inside the interval, which is what elements are for there"
        try:
            weak_form(system)
            weak_weights(system)
        except UnsupportedProblem as error:
            return str(error)
        return None

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        """Return numbers of elements along the longer side of the domain."""
        if len(system.space) == 1:
            return _LINES
        return (4, 8, 16, 32) if system.steady else (4, 8, 16, 24)

    def solve(
        self, system: FirstOrderSystem, resolution: int, accuracy: float, deadline: Deadline
    ) -> DiscreteSolution:
        """Return the solution on elements that end where something jumps, or shrink towards corners."""
        elements = FemSystem(system, _space(system, resolution), deadline)
        deadline.check()
        if not system.steady:
            return solve_transient(self.name, elements, resolution, accuracy, deadline)
        if system.eigenvalue_terms:
            return self._eigen(elements, resolution, deadline)
        state = solve_steady(elements, deadline)
        return DiscreteSolution(
            self.name, resolution, evaluator(elements, constant_in_time(state)), elements.size
        )

    def _eigen(self, elements: FemSystem, resolution: int, deadline: Deadline) -> DiscreteSolution:
        wanted = elements.system.problem.specification.eigenvalue
        assert wanted is not None
        values, vectors = smallest_eigenpairs(elements, wanted.count, deadline)
        first = scaled(elements, vectors[:, 0])
        eigenvalues = tuple(float(value) for value in values)
        return DiscreteSolution(
            self.name, resolution, evaluator(elements, constant_in_time(first)), elements.size, eigenvalues
        )


def _space(system: FirstOrderSystem, resolution: int) -> IntervalSpace | FunctionSpace:
    if len(system.space) == 1:
        (bounds,) = system.problem.bounds.values()
        ends = divided(*bounds, interfaces(system.problem), resolution)
        return IntervalSpace(ends, LINE, periodic=bool(system.periodic))
    return FunctionSpace(triangulate(system.problem.domain, resolution, tuple(_gradings(system))), DEGREE)


def smallest_eigenpairs(elements: FemSystem, count: int, deadline: Deadline) -> tuple[Array, Array]:
    """Return the lowest eigenvalues [count], ascending, and eigenvectors [f, count], by shifted inverse iteration.

    The nearest eigenvalues to a shift are found. It begins below all of them where the operator is self-adjoint and its
    boundary terms are not negative, and is lowered until none of them is below it. Raises `SolverFailed` and
    `TimeLimitExceeded`.
    """
    matrix, mass = elements.jacobian(0.0, np.zeros(elements.size)), elements.mass()
    shift = elements.potential() - 1 / float(elements.grid.weights.sum())
    for attempt in range(_SHIFTS):
        deadline.check()
        values, vectors = _nearest(matrix, mass, shift, count + _SPARE)
        if values[0] > shift:
            return values[:count], vectors[:, :count]
        shift = float(values[0] - 2**attempt * (values[-1] - values[0]))
    raise SolverFailed("no lowest eigenvalue was found")


def _nearest(matrix: Any, mass: Any, shift: float, count: int) -> tuple[Array, Array]:
    """Return the real eigenvalues [k] nearest to a shift, ascending, and vectors [f, k]."""
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigs

    size = matrix.shape[0]
    try:
        solve = factorise(matrix - shift * mass)
        inverse = LinearOperator(matrix.shape, matvec=lambda vector: solve(mass @ vector), dtype=float)
        found, vectors = eigs(inverse, k=min(count, size - 2), v0=np.ones(size))
    except (Singular, ArpackError) as error:
        raise SolverFailed(f"eigenvalues could not be computed: {error}") from None
    if np.any(np.abs(found.imag) > 1e-6 * np.abs(found)):
        raise SolverFailed("the lowest eigenvalues are not real")
    ascending = np.argsort(1 / found.real)
    return shift + 1 / found.real[ascending], vectors.real[:, ascending]


def _gradings(system: FirstOrderSystem) -> Iterator[Grading]:
    """Yield how elements shrink towards those corners at which a solution of second order is not smooth.

    Near a corner of angle w it is like r**(pi/w) where the same kind of condition holds on both sides, and like
    r**(pi/2w) where not (P. Grisvard, Elliptic Problems in Nonsmooth Domains, 1985); the exponent of the mesh
    restores the order of convergence (G. Raugel, C. R. Acad. Sci. Paris 286, 1978).
    """
    domain = system.problem.domain
    if isinstance(domain, RoundDomain):
        return
    vertices, parts = polygon_of(domain)
    for index, angle in enumerate(interior_angles(vertices)):
        before, after = parts[index - 1], parts[index]
        power = min(
            (_power(system, component, angle, before, after) for component in range(len(system.components))),
        )
        if power < _SMOOTH:
            ends = (vertices[index - 1], vertices[(index + 1) % len(vertices)])
            reach = _REACH * min(math.dist(vertices[index], end) for end in ends)
            yield Grading(vertices[index], reach, power / DEGREE)


def _power(system: FirstOrderSystem, component: int, angle: float, before: str, after: str) -> float:
    """Return the power of the radius, infinite for whole ones: these are polynomials, as on a straight side."""
    kinds = [fixed(system, component, part) is None for part in (before, after)]
    power = math.pi / angle if kinds[0] == kinds[1] else math.pi / (2 * angle)
    return math.inf if abs(power - round(power)) < 1e-9 else power
