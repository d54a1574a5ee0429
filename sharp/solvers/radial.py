"""Method `rbf`: differences on scattered nodes, for plane domains of any shape; there to compare others with.

The equations hold at nodes, as in collocation on grids, so that nothing is shared with finite elements but the outline
of the domain. Weights of differences are exact for polyharmonic splines r⁵ at the nearest nodes and for polynomials of
degree 5 (N. Flyer, B. Fornberg, V. Bayona and G. Barnett, J. Comput. Phys. 321, 2016).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sharp.problems import PlaneDomain, PolygonDomain, plane_domain
from sharp.solvers.collocation_driver import solve_collocated
from sharp.solvers.delaunay import quality_mesh
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.grid import Array, Indices
from sharp.solvers.matrices import sparse_rows
from sharp.solvers.method import Deadline, SolverFailed, Stepping
from sharp.solvers.system import FirstOrderSystem
from sharp.solvers.traits import SolutionRegularity

_DEGREE = 5
_POWERS = tuple((total - k, k) for total in range(_DEGREE + 1) for k in range(total + 1))
# Twice as many nodes as polynomials, and a few more.
_STENCIL = 2 * len(_POWERS) + 3
# The angle (radians) that a distance between nodes on an arc spans at most.
_ARC = np.pi / 12
# Stencils whose weights are solved for at once.
_CHUNK = 400
# Nearer to a curve than this share of the domain's size, a node lies on it.
_ON_CURVE = 1e-9


class RadialDifferences(Stepping):
    """Differences on scattered nodes; `resolution` is the number of nodes across the longer side of the domain."""

    name = "rbf"
    # Nodes are those of meshes of which none is a division of the one before; see `refine`.
    uneven_meshes = True
    # Slower than elements, and as blind to corners as any difference; see `driver`.
    compares_only = True

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """It takes equations of first and second order on polygons, domains with holes and unions of shapes."""
        if not isinstance(system.problem.domain, PolygonDomain | PlaneDomain):
            return "other methods that are no finite elements fit this domain"
        if max((jet.order for jet in system.jets), default=0) > 2:
            return "its differences are of second order at most"
        if rough := SolutionRegularity(system).nonsmooth_reason:
            return f"the solution may not be smooth, as {rough}, and its differences cross every place"
        return None

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        """Nodes across the domain."""
        return (10, 16, 25, 40, 60) if system.steady else (10, 16, 25, 40)

    def solve(
        self, system: FirstOrderSystem, resolution: int, accuracy: float, deadline: Deadline
    ) -> DiscreteSolution:
        """Solve on nodes whose distance is the size of the domain over the resolution, or less beside what is small."""
        domain = system.problem.domain
        assert isinstance(domain, PolygonDomain | PlaneDomain)

        def nodes(count: int) -> ScatteredNodes:
            return ScatteredNodes(plane_domain(domain), count)

        return solve_collocated(self.name, system, nodes, resolution, accuracy, deadline, self.integrator)


@dataclass(frozen=True)
class ScatteredNodes:
    """The vertices of a triangulation as nodes, about `across` along the longer side. Matrices are sparse."""

    domain: PlaneDomain
    across: int

    @cached_property
    def _mesh(self) -> tuple[Array, Indices]:
        return quality_mesh(self.domain, self.domain.size / self.across, _ARC)

    @cached_property
    def points(self) -> Array:
        """The nodes [n, 2]."""
        return self._mesh[0]

    @cached_property
    def weights(self) -> Array:
        """A third of the area of all triangles at a node [n], up to a factor that makes them add up."""
        points, triangles = self._mesh
        sides = points[triangles[:, 1:]] - points[triangles[:, :1]]
        areas = np.abs(np.linalg.det(sides)) / 2
        found = np.bincount(triangles.ravel(), np.repeat(areas / 3, 3), len(points))
        return np.asarray(found * (self.domain.area / found.sum()))

    @cached_property
    def parts(self) -> Mapping[str, Indices]:
        """The nodes on each part of the boundary; those at corners belong to two."""
        return {name: np.flatnonzero(self._on(name)) for name in self.domain.parts}

    def _on(self, part: str) -> Any:
        near = _ON_CURVE * self.domain.size
        return np.any([piece.distance(self.points) <= near for piece in self.domain.pieces_of(part)], axis=0)

    def derivative(self, by: tuple[int, ...]) -> Any:
        """Return the matrix of a derivative of second order at most."""
        return self._differences[by]

    @cached_property
    def _differences(self) -> Mapping[tuple[int, ...], Any]:
        nodes, count = np.arange(len(self.points)), len(self.points)
        return {
            by: sparse_rows(self._neighbours, self._weights(nodes, self.points, by), count)
            for by in ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
        }

    def normal_derivative(self, part: str, order: int) -> Any:
        """Return the derivative along the outward normal at the nodes of a part."""
        from scipy import sparse

        nodes = self.parts[part]
        x, y = self._normals(part).T
        factors: Mapping[tuple[int, int], Any] = {
            0: {(0, 0): np.ones(len(nodes))},
            1: {(1, 0): x, (0, 1): y},
            2: {(2, 0): x**2, (1, 1): 2 * x * y, (0, 2): y**2},
        }[order]
        terms = [sparse.diags_array(factor) @ self._differences[by][nodes] for by, factor in factors.items()]
        return sum(terms[1:], terms[0])

    def _normals(self, part: str) -> Array:
        """Return the outward normals [k, 2] at the nodes of a part, of the nearest of its pieces."""
        here, pieces = self.points[self.parts[part]], self.domain.pieces_of(part)
        nearest = np.argmin([piece.distance(here) for piece in pieces], axis=0)
        normals = np.stack([piece.normals(np.clip(piece.share(here), 0.0, 1.0)) for piece in pieces])
        return np.asarray(normals[nearest, np.arange(len(here))])

    def replaced_nodes(self, part: str, count: int) -> Indices:
        """Return the nodes of a part: equations of second order leave room for one condition."""
        assert count == 1, "see `RadialDifferences.unsupported_reason`"
        return self.parts[part]

    def interpolation(self, points: Array) -> Any:
        """Return the matrix [m, n] of splines and polynomials through the nodes around the nearest one."""
        _, nearest = self._tree.query(points)
        entries = self._weights(nearest, points, (0, 0))
        return sparse_rows(self._neighbours[nearest], entries, len(self.points))

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import KDTree

        return KDTree(self.points)

    @cached_property
    def _neighbours(self) -> Indices:
        """The nodes [n, s] of every node's stencil, the nearest first."""
        return np.asarray(self._tree.query(self.points, min(_STENCIL, len(self.points)))[1])

    @cached_property
    def _reach(self) -> Array:
        """The distance [n] of the farthest node of every stencil, in which its lengths are measured."""
        away = self.points[self._neighbours[:, -1]] - self.points
        return np.asarray(np.hypot(*away.T))

    @cached_property
    def _inverses(self) -> Array:
        """The rows [n, s, s + p] that give the weights of stencils for values of splines and polynomials."""
        chunks = range(0, len(self.points), _CHUNK)
        return np.concatenate([self._inverted(slice(at, at + _CHUNK)) for at in chunks])

    def _inverted(self, nodes: slice) -> Array:
        places = self._places(np.arange(len(self.points))[nodes])
        splines = _spline(places[:, :, None] - places[:, None], (0, 0))
        powers = _powers(places, (0, 0))
        count, stencil, terms = powers.shape
        matrix = np.zeros((count, stencil + terms, stencil + terms))
        matrix[:, :stencil, :stencil], matrix[:, :stencil, stencil:] = splines, powers
        matrix[:, stencil:, :stencil] = powers.transpose(0, 2, 1)
        try:
            return np.linalg.inv(matrix)[:, :stencil]
        except np.linalg.LinAlgError:
            raise SolverFailed("too few nodes around one of them, or all of them on a line") from None

    def _places(self, nodes: Indices) -> Array:
        """Return the nodes [m, s, 2] of the stencils of nodes [m], in their units."""
        around = self.points[self._neighbours[nodes]] - self.points[nodes][:, None]
        return np.asarray(around / self._reach[nodes][:, None, None])

    def _weights(self, nodes: Indices, at: Array, by: tuple[int, int]) -> Array:
        """Return the weights [m, s] by which the stencils of nodes [m] give a derivative at points [m, 2]."""
        unit = self._reach[nodes][:, None]
        target = ((at - self.points[nodes]) / unit)[:, None]
        wanted = np.concatenate(
            [_spline(target - self._places(nodes), by), _powers(target, by)[:, 0]], axis=1
        )
        return np.asarray((self._inverses[nodes] @ wanted[:, :, None])[:, :, 0] / unit ** sum(by))


def _spline(offset: Array, by: tuple[int, int]) -> Array:
    """Return a derivative of r⁵ at offsets [..., 2]."""
    x, y = offset[..., 0], offset[..., 1]
    r = np.hypot(x, y)
    found: Mapping[tuple[int, int], Callable[[], Array]] = {
        (0, 0): lambda: r**5,
        (1, 0): lambda: 5 * x * r**3,
        (0, 1): lambda: 5 * y * r**3,
        (2, 0): lambda: 5 * r**3 + 15 * x**2 * r,
        (1, 1): lambda: 15 * x * y * r,
        (0, 2): lambda: 5 * r**3 + 15 * y**2 * r,
    }
    return found[by]()


def _powers(places: Array, by: tuple[int, int]) -> Array:
    """Return a derivative of all products of powers [..., p] at places [..., 2]."""
    along = []
    for axis in (0, 1):
        known = {power: np.polynomial.Polynomial.basis(power).deriv(by[axis]) for power in range(_DEGREE + 1)}
        along.append({power: function(places[..., axis]) for power, function in known.items()})
    return np.stack([along[0][i] * along[1][j] for i, j in _POWERS], axis=-1)
