"""Where the equations have no finite real value: division by zero and functions outside their domain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sharp.errors import SpecificationError
from sharp.problems.diagnostics import Diagnostic
from sharp.problems.expressions import (
    Apply,
    Binary,
    Derivative,
    Name,
    Negative,
    Node,
    Number,
    children,
    names_in,
    to_text,
    walk,
    with_operands,
)
from sharp.problems.grammar import DERIVATIVES, evaluate_tree
from sharp.problems.problem import Problem
from sharp.problems.sampling import (
    Array,
    at_times,
    conditions_at,
    face,
    inner_points,
    named,
    open_parts,
    shown,
    values,
)
from sharp.yaml_source import Path

# Steps of a scan along a line, and halvings of a step in which a divisor changes sign.
_STEPS, _HALVINGS = 40, 60


def singularity_concerns(problem: Problem) -> Iterator[Diagnostic]:
    """Yield a concern for each equation, initial and boundary value that is singular or complex in its domain."""
    inside = at_times(problem, inner_points(problem.domain))
    lines = _lines(problem)
    for path, tree in _given_inside(problem):
        yield from _first(problem, path, tree, inside, lines)
    for part in open_parts(problem):
        here = at_times(problem, face(problem.domain, part).points)
        for index, condition in conditions_at(problem, part):
            for key in ("a", "b", "value"):
                text = getattr(condition, key)
                if text is not None:
                    yield from _first(problem, ("boundary", index, key), problem.tree(text), here, [])


def _given_inside(problem: Problem) -> Iterator[tuple[Path, Node]]:
    """Yield the expressions that need a value in the whole domain, with the initial state for the fields."""
    spec = problem.specification
    state = {
        name: problem.tree(given.expression)
        for name, given in (*spec.initial.items(), *spec.coefficients.items())
        if given.expression is not None
    }
    for section, names in (("coefficients", spec.coefficients), ("initial", spec.initial)):
        yield from (((section, name), state[name]) for name in names if name in state)
    for index, equation in enumerate(problem.equations):
        for side in children(equation):
            yield from ((("equations", index), _replaced(t, state)) for t in _without_derivatives(side))


def _without_derivatives(tree: Node) -> Iterator[Node]:
    """Yield the largest parts of an expression that have a value at a point."""
    if not _differential(tree):
        yield tree
        return
    if isinstance(tree, Binary) and tree.op == "/" and not _differential(tree.right):
        # A divisor counts even where what it divides is a derivative.
        yield Binary("/", Number(1), tree.right)
    for child in children(tree):
        yield from _without_derivatives(child)


def _differential(tree: Node) -> bool:
    """Whether an expression holds derivatives."""
    return any(
        isinstance(part, Derivative) or (isinstance(part, Apply) and part.function in DERIVATIVES)
        for part in walk(tree)
    )


def _replaced(tree: Node, state: Mapping[str, Node]) -> Node:
    if isinstance(tree, Name):
        return state.get(tree.name, tree)
    return with_operands(tree, lambda part: _replaced(part, state))


def _first(
    problem: Problem, path: Path, tree: Node, points: Array, lines: list[Array]
) -> Iterator[Diagnostic]:
    """Yield a concern for the first place at which an expression has no value."""
    varying = set(problem.coordinates)
    if not names_in(tree) <= {*problem.parameters, *varying} or not len(points):
        return
    if not names_in(tree) & varying:
        points, lines = points[:1], []
    for point in points:
        try:
            evaluate_tree(tree, {**problem.parameters, **named(problem, point)})
        except SpecificationError:
            message = f"'{to_text(tree)}' has no finite real value at {shown(problem, point)}"
            yield Diagnostic("singular-coefficient", "reject", path, message)
            return
    for divisor, divided in _divisors(tree, varying):
        zero = next((z for line in lines if (z := _zero(problem, divisor, line)) is not None), None)
        if zero is not None:
            yield _division(problem, path, divisor, divided, zero)
            return


def _divisors(tree: Node, varying: set[str]) -> Iterator[tuple[Node, Node]]:
    """Yield what is divided by and varies, and what it divides."""
    for part in walk(tree):
        match part:
            case Binary("/", left, right) if names_in(right) & varying:
                yield right, left
            case Binary("**", left, Negative(_)) if names_in(left) & varying:
                yield left, Number(1)
            case Apply("tan", (of,)) if names_in(of) & varying:
                yield Apply("cos", (of,)), Number(1)


def _lines(problem: Problem) -> list[Array]:
    """Return lines of points through the domain along each coordinate: arrays [n, d]."""
    inside = at_times(problem, inner_points(problem.domain))
    chosen = inside[:: max(1, len(inside) // 7)]
    ends = [*problem.bounds.values(), *([problem.time] if problem.time else [])]
    lines = []
    for column, (low, high) in enumerate(ends):
        # The ends themselves stay outside: a coefficient may be singular on the boundary.
        along = low + (high - low) * (np.arange(_STEPS) + 0.43) / _STEPS
        for start in np.unique(np.delete(chosen, column, axis=1), axis=0):
            line = np.insert(np.tile(start, (_STEPS, 1)), column, along, axis=1)
            lines.append(line[problem.domain.inside(line[:, : len(problem.space)])])
    return lines


def _zero(problem: Problem, divisor: Node, line: Array) -> Array | None:
    """Return a point of a line at which an expression is zero: where it changes sign without a jump."""
    found = values(problem, divisor, line)
    for index in np.flatnonzero(np.sign(found[:-1]) * np.sign(found[1:]) < 0):
        low, high = line[index], line[index + 1]
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            value = values(problem, divisor, middle[None])[0]
            low, high = (middle, high) if value * found[index] > 0 else (low, middle)
        if abs(values(problem, divisor, ((low + high) / 2)[None])[0]) < 1e-6 * abs(found[index]):
            return np.asarray((low + high) / 2)
    return None


def _division(problem: Problem, path: Path, divisor: Node, divided: Node, zero: Array) -> Diagnostic:
    """Return the concern of a division by zero; where zero is divided as well, a limit may exist."""
    place = shown(problem, zero)
    known = {*problem.parameters, *named(problem, zero)}
    above = values(problem, divided, zero[None])[0] if names_in(divided) <= known else 1.0
    if abs(above) < 1e-6:
        message = f"'{to_text(divided)}' is divided by '{to_text(divisor)}', and both are 0 at {place}"
        return Diagnostic("singular-coefficient", "warn", path, message)
    message = f"'{to_text(divisor)}' is divided by, and is 0 at {place}"
    return Diagnostic("singular-coefficient", "reject", path, message)
