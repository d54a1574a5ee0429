"""A small made-up sample of a problem's inputs, as the source of a NumPy program."""

from __future__ import annotations

from typing import Any

from sharp.problems import Problem
from sharp.problems.problem import ArrayPort
from sharp.problems.spec import FunctionSpec

# `wave` is a product of sines with one period along each axis, shifted from sample to sample.
SAMPLED = {
    "sine-sums": "wave",
    "unit-sine-sums": "0.5 + 0.4 * wave",
    "positive-sine-sums": "1.0 + 0.2 * wave",
    "two-phase-gaussian": "np.where(wave > 0, 12.0, 3.0)",
}
POINTS = {1: 64, 2: 32, 3: 16}


def example_values(problem: Problem) -> dict[str, Any]:
    """Return what the template of the example needs: modules, sizes, axes, and an expression for each input."""
    nodes = problem.grid.kind == "nodes"
    inputs = [(port.name, _expression(problem, port)) for port in problem.interface.inputs]
    return {
        "imports": ["scipy.special"] if any("scipy.special." in text for _, text in inputs) else [],
        "points": POINTS[len(problem.space)] + nodes,
        "axes": [(name, low, high) for name, (low, high) in problem.bounds.items()],
        "nodes": nodes,
        "inputs": inputs,
        "parameters": [(name, problem.parameters[name]) for name in problem.interface.parameters],
    }


def _expression(problem: Problem, port: ArrayPort) -> str:
    specification = problem.specification
    given = {**specification.initial, **specification.coefficients}[port.field]
    return SAMPLED[given.family] if given.family else _as_numpy(problem, given)


def _as_numpy(problem: Problem, given: FunctionSpec) -> str:
    """Return an expression of the specification in NumPy, with the numbers of the parameters put in."""
    import sympy
    from sympy.printing.numpy import SciPyPrinter

    from sharp.problems.symbolic import to_sympy

    names = {name: sympy.Float(value) for name, value in problem.parameters.items()}
    expression = to_sympy(problem.tree(str(given.expression)), names)
    text = str(SciPyPrinter().doprint(expression))
    return text.replace("scipy.constants.", "np.").replace("numpy.", "np.")
