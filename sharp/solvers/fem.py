"""Method `fem`: finite elements on plane domains, and on intervals inside which something jumps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from sharp.problems import BoxDomain, ExpressionProgram, Problem, compile_expressions
from sharp.solvers.collocation_driver import solve_discrete
from sharp.solvers.data_features import DataFeature, equation_features, graded_places, initial_features
from sharp.solvers.discontinuities import jump_lines
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.discretisation import SemiDiscreteSystem
from sharp.solvers.eigen import eigenpairs_above_shift
from sharp.solvers.fem_forms import Integrands, WeakForm, fixed, multipliers, weak_form, weak_weights
from sharp.solvers.fem_space import FunctionSpace, IntervalSpace, Quadrature, divided
from sharp.solvers.grid import Array, Indices, full
from sharp.solvers.matrices import Quotient, Solve, block_matrix, columns_of, factorise
from sharp.solvers.meshes import BoundaryCorner, Corner, Grading, corners, triangulate
from sharp.solvers.method import NEVER, Deadline, Stepping
from sharp.solvers.steady import NonlinearSystem, newton
from sharp.solvers.system import (
    BoundaryCondition,
    FirstOrderSystem,
    UnsupportedProblem,
    covered,
    real,
)

# The degree of the polynomials on intervals and on triangles.
LINE = 8
DEGREE = 4

# What is narrower than this share of the domain is a jump, which no element resolves.
_JUMP = 1e-6
# Numbers of elements along an interval, the last for data that oscillate thousands of times.
# From the first to the second on, elements about narrow data are divided as well: no two meshes share them.
_LINES = tuple(4 * 2**power for power in range(12))
# Solutions are like r**s at a corner; above this s elements are not made smaller there.
_SMOOTH = 2.0
# Within this share of the shorter edge at a corner elements shrink towards it.
_REACH = 0.25
# Values that jump at a corner are like the radius to the power of 0; elements shrink as for this one.
_AT_A_JUMP = 0.2
# In mean squares of values this share of the largest one counts as well.
_PEAKS = 0.01


class FiniteElements(Stepping):
    """Continuous piecewise polynomials, of degree 8 on intervals and 4 on triangles.

    `resolution` is the number of elements along an interval, or of triangles across a plane domain.
    """

    name = "fem"
    # Constraints and fluxes need them; see `recommend`.
    weak_forms = True
    # In the plane one mesh is no division of the one before; see `refine`.
    uneven_meshes = True
    # The degree on intervals and on triangles, and numbers of elements along them.
    degrees: Mapping[int, int] = {1: LINE, 2: DEGREE}
    counts: Mapping[int, tuple[int, ...]] = {1: _LINES, 2: (4, 8, 16, 32, 64)}

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """Return what stands in the way: the domain, the order of the equations, or the boundary conditions."""
        domain = system.problem.domain
        line = len(system.space) == 1
        if isinstance(domain, BoxDomain) and not line and (len(domain.bounds) > 2 or system.periodic):
            return "the elements here fill intervals, and plane domains without periodic axes"
        try:
            weak_form(system)
            weak_weights(system)
        except UnsupportedProblem as error:
            return str(error)
        return None

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        """Return numbers of elements along the longer side of the domain."""
        # Triangles are divided by halves: in between, meshes differ next to corners alone, and say nothing elsewhere.
        counts = self.counts[len(system.space)]
        return counts if system.steady or len(system.space) == 1 else counts[:-1]

    def solve(
        self, system: FirstOrderSystem, resolution: int, accuracy: float, deadline: Deadline
    ) -> DiscreteSolution:
        """Return the solution on elements that end where something jumps, or shrink towards corners."""
        degree = self.degrees[len(system.space)]
        elements = FemSystem(system, element_space(system, resolution, degree), deadline)
        deadline.check()

        def eigenpairs(count: int) -> tuple[Array, Array]:
            matrix, mass = elements.jacobian(0.0, np.zeros(elements.size)), elements.mass()
            # Below all eigenvalues where the operator is self-adjoint and its boundary terms are not negative.
            shift = elements.potential() - 1 / float(elements.grid.weights.sum())
            return eigenpairs_above_shift(matrix, mass, shift, count, deadline)

        return solve_discrete(
            self.name, elements, eigenpairs, resolution, accuracy, deadline, self.integrator
        )


class CubicElements(FiniteElements):
    """Continuous piecewise cubics, on other meshes than those of `FiniteElements`; there to compare others with.

    What only weak forms can express has no method but elements. The degree, the meshes and, where that can be, the
    integrator differ; that the weak form is the right one is for the residual to say, which does not know of it.
    """

    name = "fem-cubic"
    compares_only = True
    degrees: Mapping[int, int] = {1: 3, 2: 3}
    counts: Mapping[int, tuple[int, ...]] = {1: tuple(3 * count for count in _LINES), 2: (6, 12, 24, 48, 96)}


def element_space(
    system: FirstOrderSystem, resolution: int, degree: int | None = None
) -> IntervalSpace | FunctionSpace:
    """Return piecewise polynomials, by default of the method's degree, on elements that shrink where they have to."""
    if len(system.space) == 1:
        (bounds,) = system.problem.bounds.values()
        ends = divided(*bounds, graded_places(system.problem), resolution)
        return IntervalSpace(ends, degree or LINE, periodic=bool(system.periodic))
    gradings = (*_gradings(system), *_towards_features(system.problem))
    lines = [(line.normal, line.offset) for line in jump_lines(system.problem)]
    return FunctionSpace(triangulate(system.problem.domain, resolution, gradings, lines), degree or DEGREE)


def _is_slab(problem: Problem, feature: DataFeature, extent: float) -> bool:
    """Return whether a feature is narrow as it lies between straight jumps, where elements end anyway."""
    reach = 2 * feature.width * extent
    near = [
        line for line in jump_lines(problem) if abs(np.dot(line.normal, feature.place) - line.offset) <= reach
    ]
    return len(near) > 1


def _towards_features(problem: Problem) -> Iterator[Grading]:
    """Yield how elements shrink towards narrow data, to half of their width where eight elements span the domain."""
    extent = max(high - low for low, high in problem.bounds.values())
    for each in {*equation_features(problem), *initial_features(problem)}:
        if each.width > _JUMP and each.thin and not _is_slab(problem, each, extent):
            x, y = each.place
            yield Grading((x, y), extent / 4, 0.0, 4 * each.width)


def _gradings(system: FirstOrderSystem) -> Iterator[Grading]:
    """Yield how elements shrink towards those corners at which a solution of second order is not smooth.

    Near a corner of angle w it is like r**(pi/w) where the same kind of condition holds on both sides, and like
    r**(pi/2w) where not (P. Grisvard, Elliptic Problems in Nonsmooth Domains, 1985); the exponent of the mesh
    restores the order of convergence (G. Raugel, C. R. Acad. Sci. Paris 286, 1978).
    """
    for corner in corners(system.problem.domain):
        power = min(_power(system, component, corner) for component in range(len(system.components)))
        if power < _SMOOTH:
            yield Grading(corner.place, _REACH * corner.side, power / DEGREE)


def _power(system: FirstOrderSystem, component: int, corner: BoundaryCorner) -> float:
    """Return the power of the radius, infinite for whole ones: these are polynomials, as on a straight side.

    In systems of equations it is that of the clamped plate's stresses in plane elasticity, sin(zw) = z sin(w), which is
    that of slow flow between two walls as well (H. K. Moffatt, J. Fluid Mech. 18, 1964); between unlike conditions it
    depends on the materials, and a lower bound is taken. Values that jump at a corner stay as they are towards it.
    """
    angle = corner.angle
    given = [fixed(system, component, part) for part in (corner.before, corner.after)]
    kinds = [condition is None for condition in given]
    coupled = len(system.problem.fields) > 1 and (
        system.constrained or system.flux_conditions or _mixed(system)
    )
    if not coupled:
        power = math.pi / angle if kinds[0] == kinds[1] else math.pi / (2 * angle)
        return math.inf if abs(power - round(power)) < 1e-9 else power
    if component in system.constrained:
        return math.inf
    if _jumps(system, given, corner.place):
        return _AT_A_JUMP
    if kinds[0] != kinds[1]:
        return 0.7 * math.pi / (2 * angle)
    return _moffatt(angle) if angle > math.pi * (1 + 1e-9) else math.inf


def _mixed(system: FirstOrderSystem) -> bool:
    return any(jet.order == 2 and max(jet.by) == 1 for jet in system.jets)


def _jumps(system: FirstOrderSystem, given: Sequence[BoundaryCondition | None], corner: Corner) -> bool:
    """Whether two values that are given on both sides of a corner differ there, at the first time."""
    start = system.problem.time[0] if system.problem.time else 0.0
    first, second = (
        compile_expressions([condition.value], [*system.space, system.time])(*map(np.array, corner), start)[0]
        if condition is not None
        else np.nan
        for condition in given
    )
    return bool(abs(first - second) > 1e-6 * max(abs(first), abs(second)))


def _moffatt(angle: float) -> float:
    """Return the least z > 0 with sin(z w) = z |sin(w)| for an angle w between π and 2π."""
    low, high = 0.45, 1.0 - 1e-6
    for _ in range(50):
        middle = (low + high) / 2
        above = math.sin(middle * angle) > -middle * math.sin(angle)
        low, high = (middle, high) if above else (low, middle)
    return high


class FemSystem(SemiDiscreteSystem):
    """The equations of a system for those unknowns of finite elements that no boundary condition gives.

    `space` is one of functions on an interval or on a triangulation. Integrals are not computed after the deadline.
    """

    grid: IntervalSpace | FunctionSpace

    def __init__(
        self, system: FirstOrderSystem, space: IntervalSpace | FunctionSpace, deadline: Deadline = NEVER
    ) -> None:
        self.system = system
        self.grid = space
        self._deadline = deadline
        self._form = weak_form(system)

    @property
    def ends(self) -> Indices:
        """Up to where the free values of each component go [c]."""
        return np.cumsum([block.shape[1] for block in self._blocks[0]])

    def rates(self, times: Array, states: Array) -> Array:
        """Return the rates of the free values [k, f]: the solutions of M y' = F - M_g g', where M is the mass matrix,
        F the integrals of rates times test functions and g what is given; F - M_g g' itself where M is singular, and F
        in a steady problem.
        """
        values = self.values(times, states).reshape(len(times), -1)
        integrals = np.asarray((self._spread.T @ self._integrals(times, values).T).T)
        if self.system.steady:
            return integrals
        moving = self._boundary_values(times, 1)
        left = integrals.T - (self._spread.T @ self._inertia)[:, self._fixed] @ moving.T
        for unknown, factor in self._pinned:
            left[unknown] += factor * states[:, unknown]
        return np.asarray((left if self.implicit else self._accelerate(left)).T)

    def jacobian(self, time: float, state: Array) -> Any:
        """Return the derivatives [f, f] of the rates by the free values."""
        if self.constant:
            matrix = self._free_operator
        else:
            values = self.values(np.array([time]), state[None])
            matrix = self._among_free(self._matrix(self._form, time, values.ravel()))
        if self._pinned:
            from scipy import sparse

            added = np.zeros(self.size)
            for unknown, factor in self._pinned:
                added[unknown] = factor
            matrix = matrix + sparse.diags_array(added)
        return matrix if self.system.steady else Quotient(matrix, self._mass, self.implicit)

    def mass(self) -> Any:
        """Return the sparse matrix [f, f] that the eigenvalue multiplies in an eigenvalue problem."""
        return self._among_free(self._matrix(weak_weights(self.system), 0.0, np.zeros(self._all)))

    def potential(self) -> float:
        """Return the least factor of a component itself in its own rate, relative to the weight of the eigenvalue."""
        own, weights = map(self._value_factors, (self._form, weak_weights(self.system)))
        least = [np.min(own[i] / weight) for i, weight in weights.items() if i in own and np.all(weight > 0)]
        return float(min(least, default=0.0))

    def _value_factors(self, form: WeakForm) -> dict[int, Array]:
        """Return the factors [e, q] of components in their own equations where all values are zero."""
        found = self._factors(self.grid.inside, form.inside, 0.0, np.zeros(self._all))
        return {i: terms[0, 0] for (i, j), terms in found if i == j and (0, 0) in terms}

    def constraint_matrix(self, time: float) -> Any:
        """Return the matrix [c * n, f] by which all values depend on the free ones: ones and zeros."""
        del time
        return self._spread

    def values(self, times: Array, states: Array) -> Array:
        """Return all values [k, c, n] for the free ones [k, f] at times [k]."""
        values = np.asarray((self._spread @ states.T).T)
        values[:, self._fixed] = self._boundary_values(times)
        found = values.reshape(len(times), self._components, -1)
        return self._with_means(times, found) if self.implicit else found

    def _with_means(self, times: Array, values: Array) -> Array:
        """Add to pressures the constants that give them their means."""
        shares = self.grid.weights / self.grid.weights.sum()
        for component, expression in self.system.mean.items():
            wanted = compile_expressions([expression], [self.system.time])(times)[0]
            values[:, component] += np.reshape(wanted - values[:, component] @ shares, (-1, 1))
        return values

    @cached_property
    def _pinned(self) -> list[tuple[int, float]]:
        """The free value of each pressure that is held at zero while time advances, and the factor that holds it.

        It enters one equation of the constraint, which the others imply where the flow through the boundary balances.
        """
        if not self.implicit:
            return []
        whole = (
            self._operator
            if self.constant
            else self._matrix(self._form, self._first_time, np.zeros(self._all))
        )
        matrix = self._among_free(whole)
        found = []
        for component in self.system.mean:
            place = int(np.append(0, self.ends)[component])
            row, column = matrix[[place]].toarray().ravel(), matrix[:, [place]].toarray().ravel()
            # The sign is the one that keeps pivots away from zero; see `factorise`.
            found.append((place, float(np.sign(row @ column) or 1.0) * float(np.abs(row).max())))
        return found

    @property
    def _first_time(self) -> float:
        return self.system.problem.time[0] if self.system.problem.time else 0.0

    def sampled(self, values: Array) -> Array:
        """Return the free values [..., f] of all values [..., c, n]."""
        return columns_of(self._sample, values.reshape(*values.shape[:-2], -1))

    @property
    def implicit(self) -> bool:
        """Whether rates are what the mass matrix times the time derivatives equals."""
        return self.system.inertia is not None

    def weighed(self, changes: Array) -> Array:
        """Return the mass matrix times time derivatives [s, f] where rates equal that, otherwise what is given."""
        return np.asarray((self._mass @ changes.T).T) if self.implicit else changes

    @cached_property
    def algebraic(self) -> NDArray[np.bool_]:
        """Which free values [f] have no time derivative in the equations."""
        inertia = self.system.inertia
        sizes = np.diff(self.ends, prepend=0)
        still = [
            inertia is not None and inertia.col(index).is_zero_matrix for index in range(self._components)
        ]
        return np.repeat(still, sizes)

    def constants(self) -> Array:
        """Return for every component the integrals of the free test functions, zero in other components [c, f]."""
        each = np.kron(np.eye(self._components), self.grid.weights)
        return np.asarray((self._spread.T @ each.T).T)

    def sizes(self, states: Array) -> Array:
        """Return the size [c] of the free values of each component in states [..., f]: the root of their mean square,
        or a share of the largest where that is more.

        At a corner elements are tiny, and what waves do there within moments says little of the solution: steps that
        followed it everywhere to all digits would be as short.
        """
        parts = np.split(np.abs(states).reshape(-1, self.size), self.ends[:-1], axis=1)
        means = [np.sqrt(part**2 @ share).max() for part, share in zip(parts, self._shares, strict=True)]
        return np.maximum(means, [_PEAKS * part.max(initial=0.0) for part in parts])

    @cached_property
    def _shares(self) -> list[Array]:
        """For each component the share of the domain that each free value stands for."""
        inside = self.grid.inside
        areas = np.repeat(inside.weights.sum(axis=1) / inside.unknowns.shape[1], inside.unknowns.shape[1])
        total = np.bincount(inside.unknowns.ravel(), areas, minlength=self.grid.size)
        found = self.sampled(np.broadcast_to(total, (self._components, self.grid.size)))
        return [part / (part.sum() or 1.0) for part in np.split(found, self.ends[:-1])]

    def start(self) -> Array:
        """Return the free values of the initial state, moved by as little as constraints ask for."""
        state = super().start()
        if not self.implicit:
            return state
        return self._constrained(state) if self.system.constrained else self._consistent(state)

    def _consistent(self, state: Array) -> Array:
        """Return the state with those values of fields without a time derivative that solve their equations."""
        still = np.flatnonzero(self.algebraic)
        time = np.array([self._first_time])

        def whole(unknown: Array) -> Array:
            found = state.copy()
            found[still] = unknown
            return found

        equations = NonlinearSystem(
            lambda unknown: self.rates(time, whole(unknown)[None])[0][still],
            lambda unknown: self.jacobian(self._first_time, whole(unknown)).matrix[still][:, still],
        )
        found = newton(equations, state[still]) if len(still) else None
        return state if found is None else whole(found)

    def _constrained(self, state: Array) -> Array:
        """Return the nearest state, in the norm of the mass matrix, that meets the constraints at the first time."""
        from scipy import sparse

        assert self.system.problem.time is not None
        time = self.system.problem.time[0]
        places = np.split(np.arange(self.size), self.ends[:-1])
        bound = np.concatenate([places[index] for index in self.system.constrained])
        moved = np.flatnonzero(~self.algebraic)
        left = self.rates(np.array([time]), state[None])[0][bound]
        by = self.jacobian(time, state).matrix[bound][:, moved]
        border = (
            self.constants()[[*self.system.constrained]][:, bound]
            if self.system.mean
            else np.empty((0, len(bound)))
        )
        matrix = sparse.block_array(
            [
                [self._mass[moved][:, moved], by.T, None],
                [by, None, sparse.csr_array(border.T)],
                [None, sparse.csr_array(border), None],
            ]
        )
        right = np.concatenate([np.zeros(len(moved)), -left, np.zeros(len(border))])
        found = state.copy()
        found[moved] += factorise(matrix.tocsr())(right)[: len(moved)]
        return found

    @property
    def _all(self) -> int:
        return self._components * self.grid.size

    @cached_property
    def _blocks(self) -> tuple[list[Any], list[Any]]:
        """For each component the matrices [n, f] from free values to all, and [f, n] back.

        Pressures are of one degree less than the velocities that they belong to (C. Taylor and P. Hood, Computers and
        Fluids 1, 1973).
        """
        from scipy import sparse

        spread, sample, whole = [], [], sparse.eye_array(self.grid.size, format="csr")
        for component in range(self._components):
            if component in self.system.constrained and isinstance(self.grid, FunctionSpace):
                up, down = self.grid.lower()
            else:
                start = component * self.grid.size
                free = np.setdiff1d(np.arange(self.grid.size), self._fixed - start)
                up, down = whole[:, free], whole[free]
            spread.append(up)
            sample.append(down)
        return spread, sample

    @cached_property
    def _spread(self) -> Any:
        """The matrix [c * n, f] from free values to all."""
        from scipy import sparse

        return sparse.block_diag(self._blocks[0], format="csr")

    @cached_property
    def _sample(self) -> Any:
        """The matrix [f, c * n] that takes all values to free ones."""
        from scipy import sparse

        return sparse.block_diag(self._blocks[1], format="csr")

    @cached_property
    def _mass(self) -> Any:
        return self._among_free(self._inertia)

    @cached_property
    def _fixed(self) -> Indices:
        """The unknowns that a condition gives, in ascending order."""
        nothing = np.empty(0, dtype=np.intp)
        return np.unique(np.concatenate([nothing, *(found for _, found, _ in self._given)]))

    def _among_free(self, matrix: Any) -> Any:
        from scipy import sparse

        # An operator without any term is dense.
        return sparse.csr_array(self._spread.T @ (matrix @ self._spread))

    @cached_property
    def _inertia(self) -> Any:
        """The mass matrix [c * n, c * n] of all unknowns."""
        from scipy import sparse

        inside = self.grid.inside
        if self.system.inertia is not None:
            entries = compile_expressions(list(self.system.inertia), self.system.space)(
                *np.moveaxis(inside.points, -1, 0)
            )
            count = self._components
            matrices = [
                inside.matrix({(0, 0): full(entry, inside.weights.shape)}) if np.any(entry) else None
                for entry in entries
            ]
            rows = [matrices[row * count : (row + 1) * count] for row in range(count)]
            return block_matrix(rows, self.grid.size)
        factors = compile_expressions(multipliers(self.system), self.system.space)
        found = factors(*np.moveaxis(inside.points, -1, 0))
        blocks = [inside.matrix({(0, 0): full(factor, inside.weights.shape)}) for factor in found]
        return sparse.block_diag(blocks, format="csr")

    @cached_property
    def _accelerate(self) -> Solve:
        return factorise(self._mass)

    def _integrals(self, times: Array, values: Array) -> Array:
        if not self.constant:
            rows = zip(times, values, strict=True)
            return np.stack([self._integrated(time, state) for time, state in rows])
        forced = np.stack([self._forced(time) for time in times]) if self._driven else self._forced(0.0)
        return np.asarray((self._operator @ values.T).T + forced)

    @cached_property
    def _operator(self) -> Any:
        """The derivatives of the integrals where they are always the same."""
        return self._matrix(self._form, 0.0, np.zeros(self._all))

    @cached_property
    def _free_operator(self) -> Any:
        return self._among_free(self._operator)

    @cached_property
    def _driven(self) -> bool:
        pieces = (self._form.inside, *self._form.boundary.values())
        time = real(self.system.time)
        return any(time in term.free_symbols for piece in pieces for term in piece.terms.values())

    def _forced(self, time: float) -> Array:
        return self._integrated(time, np.zeros(self._all))

    def _integrated(self, time: float, values: Array) -> Array:
        self._deadline.check()
        result = np.zeros((self._components, self.grid.size))
        for quadrature, piece in self._pieces(self._form):
            outputs = piece.program(*self._arguments(quadrature, piece, time, values))
            for (i, a), output in zip(piece.terms, outputs, strict=True):
                result[i] += quadrature.vector(a, full(output, quadrature.weights.shape))
        return result.ravel()

    def _matrix(self, form: WeakForm, time: float, values: Array) -> Any:
        """Return the derivatives [c * n, c * n] of the integrals by all values."""
        blocks: dict[tuple[int, int], Any] = {}
        for quadrature, piece in self._pieces(form):
            for place, terms in self._factors(quadrature, piece, time, values):
                self._deadline.check()
                matrix = quadrature.matrix(terms)
                blocks[place] = blocks[place] + matrix if place in blocks else matrix
        span = range(self._components)
        return block_matrix([[blocks.get((i, j)) for j in span] for i in span], self.grid.size)

    def _factors(
        self, quadrature: Quadrature, piece: Integrands, time: float, values: Array
    ) -> Iterable[tuple[tuple[int, int], dict[tuple[int, int], Array]]]:
        """Return for pairs of components the factors [e, q] of the Jacobian, by (form of test, form of trial)."""
        outputs = piece.jacobian(*self._arguments(quadrature, piece, time, values))
        factors: dict[tuple[int, int], dict[tuple[int, int], Array]] = {}
        for (i, a, j, b), output in zip(piece.derivatives, outputs, strict=True):
            factors.setdefault((i, j), {})[a, b] = full(output, quadrature.weights.shape)
        return factors.items()

    def _boundary_values(self, times: Array, order: int = 0) -> Array:
        """Return what conditions give at times [k], or its time derivative: [k, g]."""
        values = np.zeros((len(times), self._all))
        for component, found, programs in self._given:
            points = self.grid.points[found - component * self.grid.size]
            values[:, found] = programs[order](*points.T, times[:, None])[0]
        return values[:, self._fixed]

    @property
    def _components(self) -> int:
        return len(self.system.components)

    @cached_property
    def _given(self) -> list[tuple[int, Indices, tuple[ExpressionProgram, ExpressionProgram]]]:
        """The component and the unknowns of every condition that gives these, with values and time derivatives."""
        found = []
        for component in range(self._components):
            for part in covered(self.system.problem, "all"):
                condition = fixed(self.system, component, part)
                if condition is not None:
                    unknowns = component * self.grid.size + self.grid.on(part)
                    found.append((component, unknowns, self._value(condition)))
        return found

    def _value(self, condition: BoundaryCondition) -> tuple[ExpressionProgram, ExpressionProgram]:
        value = condition.value / condition.factors[0]
        names = [*self.system.space, self.system.time]
        moving = sympy.diff(value, real(self.system.time))
        return compile_expressions([value], names), compile_expressions([moving], names)

    def _pieces(self, form: WeakForm) -> Iterator[tuple[Quadrature, Integrands]]:
        yield self.grid.inside, form.inside
        yield from ((self._along[part], piece) for part, piece in form.boundary.items())

    @cached_property
    def _along(self) -> dict[str, Quadrature]:
        return {part: self.grid.along(part) for part in self._form.boundary}

    def _arguments(self, quadrature: Quadrature, piece: Integrands, time: float, values: Array) -> list[Any]:
        points = np.moveaxis(quadrature.points, -1, 0)
        parts = values.reshape(self._components, -1)
        states = (quadrature.at(a, parts[i]) if occurs else 0.0 for (i, a), occurs in piece.used.items())
        outward = np.broadcast_to(quadrature.normals, (len(points), *quadrature.weights.shape))
        return [*points, time, *outward, *states]
