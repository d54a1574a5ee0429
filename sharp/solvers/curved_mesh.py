"""A mesh of scikit-fem whose triangles are images of polynomials of degree 4, as their boundary curves are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from skfem import ElementTriP4, MeshTri2
from skfem.element import ElementH1
from skfem.refdom import RefLine

# Where the functions of an edge are 1: its ends, then the points between them.
_NODES = np.array([0.0, 1.0, 0.25, 0.5, 0.75])


class ElementLineP4(ElementH1):  # type: ignore[misc]
    """Lagrange's polynomials of degree 4 at even nodes of an edge, its ends first."""

    nodal_dofs = 1
    interior_dofs = 3
    maxdeg = 4
    dofnames = ["u", "u", "u", "u"]  # noqa: RUF012  as scikit-fem has it
    doflocs = _NODES[:, None]
    refdom = RefLine

    def lbasis(self, X: Any, i: int) -> tuple[Any, Any]:
        """Return a function and its derivative at points [1, …]."""
        others = np.delete(_NODES, i)
        function = np.polynomial.Polynomial.fromroots(others) / np.prod(_NODES[i] - others)
        return function(X[0]), np.array([function.deriv()(X[0])])


@dataclass(repr=False)
class MeshTri4(MeshTri2):  # type: ignore[misc]
    """A triangular mesh with the nodes of polynomials of degree 4."""

    elem: type = ElementTriP4
    bndelem: Any = None

    def __post_init__(self) -> None:
        """Set the element of the facets, which differs from that of quadratic meshes."""
        super().__post_init__()
        self.bndelem = ElementLineP4()
