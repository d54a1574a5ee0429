"""Other solutions of a nonlinear steady problem: whether the one that was found is the only one.

Newton's method is started from many states on a coarse grid, with the known solutions deflated: residuals are
multiplied by a factor that grows without bound near them, so that it cannot return there (P. Farrell, A. Birkisson and
S. Funke, SIAM J. Sci. Comput. 37, 2015). Solutions that branch off are sought along the vectors on which the Jacobian
nearly vanishes. What is found counts where a finer grid has it as well. That none is found proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from sharp.problems import BoxDomain
from sharp.solvers.axes import ChebyshevAxis, FourierAxis
from sharp.solvers.boxes import BoxGrid
from sharp.solvers.collocation import Collocation
from sharp.solvers.data_features import graded_places
from sharp.solvers.discontinuities import has_discontinuous_flux_coefficient
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.discretisation import SemiDiscreteSystem
from sharp.solvers.fem import FemSystem, element_space
from sharp.solvers.grid import Array
from sharp.solvers.matrices import Singular, columns_of, factorise
from sharp.solvers.method import Deadline, SolverFailed, TimeLimitExceeded
from sharp.solvers.sample_points import evaluate
from sharp.solvers.steady import BorderedSystem, NonlinearSystem, newton
from sharp.solvers.system import FirstOrderSystem, UnsupportedProblem

# Nodes along each axis of boxes, by dimension, and elements elsewhere: on the grid of the search, and on the finer one.
_NODES = {1: (24, 40), 2: (11, 16)}
_ELEMENTS = {1: (4, 8), 2: (3, 5)}
_MOST = 6
_ITERATIONS = 40
# Solutions differ by more than this share of their size; on two grids they differ by less than that of their size.
_APART, _SAME = 1e-2, 0.05
# Starts are so many sizes of the solution away from it, and so many of the nearly vanishing vectors are followed.
_SCALES = (0.3, 2.0, 8.0, 30.0)
_BRANCHES = 3
_CONVERGED = 1e-10


def other_solutions(
    system: FirstOrderSystem, solution: DiscreteSolution, deadline: Deadline
) -> tuple[DiscreteSolution, ...]:
    """Return other solutions of a nonlinear steady problem, as far as they are found before the deadline."""
    dimension = len(system.space)
    if not system.steady or system.eigenvalue_terms or system.linear or system.mean or dimension > 2:
        return ()
    try:
        coarse, fine = (_discretised(system, index, deadline) for index in (0, 1))
    except (UnsupportedProblem, TimeLimitExceeded):
        return ()
    search = _Search(coarse, deadline)
    confirmed: list[DiscreteSolution] = []
    try:
        with np.errstate(all="ignore"):
            for state in search.others(_sampled(coarse, solution)):
                found = _confirmed(coarse, fine, state, deadline)
                if found is not None:
                    confirmed.append(found)
    except (TimeLimitExceeded, SolverFailed):
        pass
    return tuple(confirmed)


def _discretised(system: FirstOrderSystem, index: int, deadline: Deadline) -> SemiDiscreteSystem:
    """Return collocation on boxes where nothing is narrow or jumps, and finite elements elsewhere."""
    dimension, problem = len(system.space), system.problem
    smooth = not graded_places(problem) and not has_discontinuous_flux_coefficient(problem)
    if isinstance(problem.domain, BoxDomain) and smooth and not system.conditions_hold_fields:
        kinds = {axis: FourierAxis if axis in system.periodic else ChebyshevAxis for axis in system.space}
        count = _NODES[dimension][index]
        grid = BoxGrid({axis: kind(*problem.bounds[axis], count) for axis, kind in kinds.items()})
        return Collocation(system, grid)
    return FemSystem(system, element_space(system, _ELEMENTS[dimension][index], 3), deadline)


def _sampled(discrete: SemiDiscreteSystem, solution: DiscreteSolution) -> Array:
    """Return the free values [f] of a solution on a grid."""
    return discrete.sampled(evaluate(solution, discrete.grid.points, np.zeros(1))[:, 0])


def _confirmed(
    coarse: SemiDiscreteSystem, fine: SemiDiscreteSystem, state: Array, deadline: Deadline
) -> DiscreteSolution | None:
    """Return a solution on the fine grid near one on the coarse grid; None where there is none."""
    start = _sampled(fine, _function(coarse, state))
    bordered = BorderedSystem(fine, deadline)
    found = newton(NonlinearSystem(bordered.residual, bordered.jacobian), start)
    if found is None or np.linalg.norm(found - start) > _SAME * np.linalg.norm(found):
        return None
    return _function(fine, found)


def _function(discrete: SemiDiscreteSystem, state: Array) -> DiscreteSolution:
    def values(points: Array, times: Array) -> Array:
        whole = discrete.values(np.zeros(1), state[None])
        found = columns_of(discrete.grid.interpolation(points), whole).transpose(1, 0, 2)
        return np.broadcast_to(found, (len(found), len(times), len(points)))

    return DiscreteSolution("deflation", 0, values, discrete.size)


@dataclass(frozen=True)
class _Search:
    discrete: SemiDiscreteSystem
    deadline: Deadline

    def others(self, near: Array) -> Iterator[Array]:
        """Yield states that solve the equations, apart from the one that is nearest to a state and from each other."""
        bordered = BorderedSystem(self.discrete, self.deadline)
        equations = NonlinearSystem(bordered.residual, bordered.jacobian)
        first = newton(equations, near)
        known = [near if first is None else first]
        for start in self._starts(equations, known[0]):
            found = self._deflated(equations, start, known)
            if found is not None:
                known.append(found)
                yield found
            if len(known) > _MOST:
                return

    def _starts(self, equations: NonlinearSystem, known: Array) -> Iterator[Array]:
        size = float(np.abs(known).max())
        # A solution that vanishes has no size of its own.
        size = size if size > 1e-8 else 1.0
        matrix = equations.jacobian(known)
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        values, vectors = np.linalg.eig(dense)
        least = vectors[:, np.argsort(np.abs(values))[:_BRANCHES]].real
        shapes = [vector / np.abs(vector).max() for vector in least.T if np.abs(vector).max() > 0]
        for scale, shape, sign in product(_SCALES, shapes, (1.0, -1.0)):
            self.deadline.check()
            yield known + sign * scale * size * shape

    def _deflated(self, equations: NonlinearSystem, start: Array, known: list[Array]) -> Array | None:
        """Return a solution that is none of the known ones, by Newton's method on the deflated residual."""
        state = start
        for _ in range(_ITERATIONS):
            self.deadline.check()
            residual = equations.residual(state)
            if not np.all(np.isfinite(residual)):
                return None
            try:
                step = factorise(equations.jacobian(state))(-residual)
            except Singular:
                return None
            if not np.all(np.isfinite(step)):
                return None
            scale = np.linalg.norm(state) + np.linalg.norm(step)
            if np.linalg.norm(step) <= _CONVERGED * scale:
                return state if self._apart(state, known) else None
            away = [state - each for each in known]
            # With the factor m, the product of 1 + 1/|u - r|**2, the step is that of Newton over 1 - m'(step)/m.
            growth = sum(-2 * (d @ step) / (d @ d) ** 2 / (1 + 1 / (d @ d)) for d in away)
            stretch = 1 / (1 - growth) if growth != 1 else 1.0
            state = state + np.clip(stretch, -4, 4) * step
        return None

    @staticmethod
    def _apart(state: Array, known: list[Array]) -> bool:
        size = max(float(np.linalg.norm(each)) for each in (state, *known))
        return all(np.linalg.norm(state - each) > _APART * size for each in known)
