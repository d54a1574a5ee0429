"""Steady Darcy flow -div(a grad u) = 1 on the unit square, u = 0 on its boundary.

All linear systems are scaled by dx^2, so their matrices hold sums of coefficients and their right-hand side is dx^2.
"""

from __future__ import annotations

from sharp.llm.playbook.library.blocks import HOST, JAX, Block, Family, Recipe
from sharp.llm.playbook.library.darcy_grids import CELLS, FACES, MATRICES, OPERATORS, TRANSFERS
from sharp.llm.playbook.library.darcy_solves import (
    DOT,
    ITERATIONS,
    PRECONDITIONERS,
    RELAXATIONS,
    SPARSE_SOLVES,
)

_INNER = "xp.pad(inner, ((0, 0), (1, 1), (1, 1)))"
_NODES = "coefficient.shape[-1]"


def _drivers(suffix: str, field: str, intervals: str, solution: str) -> tuple[Block, ...]:
    """Return every form of `solver` for one way to lay the grid: its coefficient, its intervals, its result."""
    where = {
        "": "",
        "own": " on an own grid",
        "squares": " on an own grid of squares",
    }
    end = f"-{suffix}" if suffix else ""
    one = field.replace("coefficient", "sample")
    return (
        Block(
            "solver",
            f"batch{end}",
            3,
            f"the whole batch at once{where[suffix]}",
            f'''
def solver(SIGNATURE):
    """RETURNS"""
    INITIAL
    c = discretize({field})
    diagonal = diagonal_of(c)
    dx = 1.0 / ({intervals.format("diagonal")})
    inner, iterations = solve_system(c, dx**2 * np.ones_like(diagonal))
    print(f"steps={{int(iterations)}}")
    solution = {solution}
    RESULT
''',
            HOST,
        ),
        Block(
            "solver",
            f"samples{end}",
            3,
            f"one sample after the other{where[suffix]}",
            f'''
def solver(SIGNATURE):
    """RETURNS"""
    INITIAL
    solved, steps = [], 0
    for k in range(len(coefficient)):
        sample = coefficient[k : k + 1]
        c = discretize({one})
        diagonal = diagonal_of(c)
        dx = 1.0 / ({intervals.format("diagonal")})
        inner, iterations = solve_system(c, dx**2 * np.ones_like(diagonal))
        solved.append({solution.replace("xp.", "np.")})
        steps = max(steps, iterations)
    print(f"steps={{steps}}")
    solution = np.concatenate(solved)
    RESULT
''',
            HOST,
        ),
        Block(
            "solver",
            f"compiled{end}",
            3,
            f"one compiled function for the whole batch{where[suffix]}",
            f'''
@jax.jit
def solve_field(field, load):
    """Return the solution at the unknowns of the grid of a field [batch, nodes, nodes], and the iterations."""
    c = discretize(field)
    diagonal = diagonal_of(c)
    dx = 1.0 / ({intervals.format("diagonal")})
    return solve_system(c, load * dx**2 * jnp.ones_like(diagonal))


def solver(SIGNATURE):
    """RETURNS"""
    INITIAL
    inner, iterations = solve_field({field}, 1.0)
    print(f"steps={{int(iterations)}}")
    solution = {solution}
    RESULT
''',
            JAX,
        ),
        Block(
            "solver",
            f"mapped{end}",
            3,
            f"a compiled map over the samples{where[suffix]}",
            f'''
def solve_sample(field, load):
    """Return the solution at the unknowns of the grid of a field [nodes, nodes], and the iterations."""
    c = discretize(field[None])
    diagonal = diagonal_of(c)
    dx = 1.0 / ({intervals.format("diagonal")})
    inner, iterations = solve_system(c, load * dx**2 * jnp.ones_like(diagonal))
    return inner[0], iterations


def solver(SIGNATURE):
    """RETURNS"""
    INITIAL
    solve_all = jax.jit(lambda fields, load: lax.map(lambda field: solve_sample(field, load), fields))
    inner, iterations = solve_all({field}, 1.0)
    print(f"steps={{int(jnp.max(iterations))}}")
    solution = {solution}
    RESULT
''',
            JAX,
        ),
        Block(
            "solver",
            f"matrices{end}",
            3,
            f"one sparse system after the other{where[suffix]}",
            f'''
def solver(SIGNATURE):
    """RETURNS"""
    INITIAL
    solved, steps = [], 0
    for field in {field}:
        matrix = assemble(field)
        n = math.isqrt(matrix.shape[0])
        dx = 1.0 / ({intervals.replace("{}.shape[-1]", "n")})
        values, iterations = solve_matrix(matrix, np.full(n * n, dx**2, dtype=matrix.dtype))
        solved.append(values.reshape(n, n))
        steps = max(steps, iterations)
    print(f"steps={{steps}}")
    inner = np.stack(solved)
    solution = {solution.replace("xp.", "np.")}
    RESULT
''',
            HOST,
        ),
    )


_GRIDS = (
    *_drivers("", "coefficient", "{}.shape[-1] + 1", _INNER),
    *_drivers("own", "to_own_grid(coefficient)", "{}.shape[-1] + 1", f"onto_nodes({_INNER}, {_NODES})"),
    *_drivers("squares", "coefficient", "{}.shape[-1] + 1", f"onto_nodes({_INNER}, {_NODES})"),
)


def _forms(suffix: str = "") -> tuple[str, ...]:
    end = f"-{suffix}" if suffix else ""
    return tuple(f"{form}{end}" for form in ("batch", "samples", "compiled", "mapped"))


_USUAL_FACES = ("harmonic", "arithmetic", "geometric", "quadratic")
_ANY_FACES = (*_USUAL_FACES, "minimum", "maximum", "one-sided")
_CORNERS = ("mean", "harmonic", "geometric", "corner")
_FIVE_POINT = ("fluxes", "stencil")
_SINE = {
    "sine": ("transform", "matrix", "odd-extension"),
    "spectrum": ("five-point",),
}
# For recipes that may leave the transform out: one form for all host libraries.
_PLAIN_SINE = {**_SINE, "sine": ("transform", "matrix")}
_CG = ("conjugate-gradients", "compiled-conjugate-gradients")
_DOT_SLOT = {"dot": ("sample-wise",)}

_RECIPES = (
    Recipe(
        "poisson-gradients",
        "numerical",
        "The coefficient varies by a factor of 4 only, so the inverse of the plain Laplacian, fast by sine transforms, "
        "makes conjugate gradients converge in a number of steps that does not depend on the grid.",
        {
            "faces": _ANY_FACES,
            "operator": _FIVE_POINT,
            "precondition": ("sine",),
            **_SINE,
            **_DOT_SLOT,
            "iterate": _CG,
            "solver": _forms(),
        },
        weight=3.0,
    ),
    Recipe(
        "element-gradients",
        "numerical",
        "Finite elements with a coefficient constant in each square: symmetric, conservative at the interfaces, and "
        "solved by conjugate gradients with a fast Poisson preconditioner.",
        {
            "cells": _CORNERS,
            "faces": ("linear-elements",),
            "operator": (*_FIVE_POINT, "bilinear-elements"),
            "precondition": ("sine",),
            **_SINE,
            **_DOT_SLOT,
            "iterate": _CG,
            "solver": _forms(),
        },
        weight=1.5,
    ),
    Recipe(
        "symmetric-scaling",
        "transformed",
        "Scaling the unknown by the root of the diagonal turns the operator into nearly a Laplacian away from the "
        "interfaces; conjugate gradients take care of the rest.",
        {
            "faces": _ANY_FACES,
            "operator": _FIVE_POINT,
            "precondition": ("scaled-sine",),
            **_SINE,
            **_DOT_SLOT,
            "iterate": _CG,
            "solver": _forms(),
        },
        weight=1.2,
    ),
    Recipe(
        "gradients",
        "numerical",
        "The five-point system is symmetric and positive definite: conjugate gradients without assembling a matrix, "
        "at most with a cheap preconditioner.",
        {
            "faces": _ANY_FACES,
            "operator": _FIVE_POINT,
            "precondition": ("none", "jacobi", "polynomial"),
            **_DOT_SLOT,
            "iterate": _CG,
            "solver": _forms(),
        },
        constants={
            "RTOL": ("0.001", "0.01", "0.0001", "1e-06"),
            "MOST_ITERATIONS": ("2000", "1000", "500", "200"),
        },
        level="simple",
        weight=2.0,
    ),
    Recipe(
        "counted-gradients",
        "numerical",
        "A fixed, small number of preconditioned conjugate gradient steps needs no convergence test.",
        {
            "faces": _ANY_FACES,
            "operator": (*_FIVE_POINT,),
            "precondition": ("sine", "scaled-sine"),
            **_SINE,
            **_DOT_SLOT,
            "iterate": ("counted-conjugate-gradients", "looped-conjugate-gradients"),
            "solver": _forms(),
        },
        weight=1.0,
    ),
    Recipe(
        "semi-iteration",
        "numerical",
        "With the Laplacian as preconditioner the eigenvalues lie in the range of the coefficient, which is known: "
        "iterations with constants from that range need no inner products.",
        {
            "faces": _USUAL_FACES,
            "operator": _FIVE_POINT,
            "precondition": ("sine",),
            **_SINE,
            **_DOT_SLOT,
            "bounds": ("coefficient",),
            "iterate": ("chebyshev", "richardson", "steepest-descent"),
            "solver": _forms(),
        },
        constants={"ITERATIONS": ("20", "12", "30"), "RTOL": ("0.0001", "1e-06", "0.001")},
        weight=1.2,
    ),
    Recipe(
        "sparse-direct",
        "numerical",
        "The matrix of one sample is sparse and of moderate size: factorize it and be done, without a tolerance.",
        {
            "faces": _ANY_FACES,
            "matrix": ("diagonals", "differences", "triplets"),
            "sparse_solve": ("factorization", "general"),
            "solver": ("matrices",),
        },
        HOST,
        ("float64",),
        weight=1.6,
    ),
    Recipe(
        "sparse-elements",
        "numerical",
        "Assemble the stiffness matrix of finite elements and solve it with SciPy.",
        {
            "cells": _CORNERS,
            "faces": ("linear-elements",),
            "matrix": ("elements", "elements", "triplets"),
            "sparse_solve": ("factorization", "incomplete-factors"),
            "solver": ("matrices",),
        },
        HOST,
        ("float64",),
        weight=1.0,
    ),
    Recipe(
        "sparse-iterative",
        "numerical",
        "Assemble the matrix and leave the iteration to SciPy.",
        {
            "faces": _ANY_FACES,
            "matrix": ("diagonals", "differences", "triplets"),
            "sparse_solve": ("incomplete-factors", "diagonal", "minimal-residuals"),
            "solver": ("matrices",),
        },
        HOST,
        ("float64",),
        {"RTOL": ("0.0001", "0.001", "1e-06"), "MOST_ITERATIONS": ("2000", "500", "1000")},
        weight=1.0,
    ),
    Recipe(
        "relaxation",
        "numerical",
        "Sweep over the grid and let the values settle; a few lines, and no linear algebra library.",
        {
            "faces": _ANY_FACES,
            "operator": _FIVE_POINT,
            "relax": ("jacobi", "gauss-seidel", "over-relaxation", "over-relaxation", "pseudo-time"),
            "iterate": ("sweeps", "compiled-sweeps"),
            "solver": _forms(),
        },
        level="simple",
        weight=1.5,
    ),
    Recipe(
        "coarse",
        "numerical",
        "Solve on a coarser grid, where the system is small, and interpolate the smooth solution to the nodes.",
        {
            "transfer": ("sample", "bilinear", "series"),
            "interpolation": ("linear",),
            "output": ("bilinear", "spline"),
            "faces": _USUAL_FACES,
            "operator": _FIVE_POINT,
            "precondition": ("jacobi", "sine"),
            **_PLAIN_SINE,
            **_DOT_SLOT,
            "iterate": _CG,
            "matrix": ("diagonals", "differences"),
            "sparse_solve": ("factorization",),
            "solver": (*_forms("own"), "matrices-own"),
        },
        constants={"GRID_FACTOR": ("0.25", "0.5", "0.1"), "RTOL": ("1e-06", "0.0001")},
        level="simple",
        weight=1.3,
    ),
    Recipe(
        "coarse-squares",
        "numerical",
        "Elements on a coarser grid, each with the coefficient sampled at its centre, and interpolation to the nodes.",
        {
            "cells": ("nearest",),
            "faces": ("linear-elements",),
            "operator": _FIVE_POINT,
            "interpolation": ("linear",),
            "output": ("bilinear", "spline"),
            "precondition": ("jacobi", "sine"),
            **_PLAIN_SINE,
            **_DOT_SLOT,
            "iterate": _CG,
            "matrix": ("triplets", "elements"),
            "sparse_solve": ("factorization",),
            "solver": ("batch-squares", "compiled-squares", "matrices-squares"),
        },
        constants={"GRID_FACTOR": ("0.5", "0.25", "0.1")},
        level="simple",
        weight=0.6,
    ),
    Recipe(
        "refined-squares",
        "numerical",
        "The coefficient is constant around each node, so a finer grid whose squares lie within these regions sees "
        "the interfaces exactly; its elements are solved by preconditioned conjugate gradients.",
        {
            "cells": ("nearest",),
            "faces": ("linear-elements",),
            "operator": (*_FIVE_POINT, "bilinear-elements"),
            "interpolation": ("linear",),
            "output": ("bilinear",),
            "precondition": ("sine",),
            **_SINE,
            **_DOT_SLOT,
            "iterate": _CG,
            "solver": ("samples-squares", "mapped-squares"),
        },
        constants={"GRID_FACTOR": ("2",)},
        weight=1.0,
    ),
)

DARCY = Family(
    name="darcy-2d",
    title="Darcy flow -div(a grad u) = 1 on the unit square with u = 0 on its boundary",
    signature="a",
    returns="Return u [batch, N, N] at the nodes of the unit square for the coefficient a [batch, N, N].",
    args="",
    initial="coefficient = xp.asarray(a, dtype=DTYPE)",
    result="return np.asarray(solution)",
    constants={
        "RTOL": ("1e-06", "1e-08", "1e-05", "0.0001", "0.001"),
        "MOST_ITERATIONS": ("500",),
        "ITERATIONS": ("12", "20", "8", "5"),
        "SWEEPS": ("500", "200", "1000"),
        "DROP_TOLERANCE": ("0.001", "0.0001"),
        "GRID_FACTOR": ("2",),
    },
    blocks=(
        *FACES,
        *CELLS,
        *TRANSFERS,
        *OPERATORS,
        *PRECONDITIONERS,
        DOT,
        *ITERATIONS,
        *RELAXATIONS,
        *MATRICES,
        *SPARSE_SOLVES,
        *_GRIDS,
    ),
    recipes=_RECIPES,
)
