"""The problem as it was understood, in short lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from sharp.problems import Boundary, Problem, domain_lines


def problem_summary(problem: Problem) -> Iterator[tuple[str, str]]:
    """Yield what a problem consists of, name and value."""
    spec = problem.specification
    for equation in spec.equations:
        yield "equation", equation
    yield "domain", "; ".join(line.replace("`", "") for line in domain_lines(problem))
    if problem.time is not None:
        yield "time", f"{problem.time_name} from {problem.time[0]:g} to {problem.time[1]:g}"
    for name, value in problem.parameters.items():
        yield "parameter", _parameter(problem, name, value)
    for name, given in spec.coefficients.items():
        yield "coefficient", f"{name} = {given.expression or f'random samples of {given.family}'}"
    for name, given in spec.initial.items():
        yield "initial state", f"{name} = {given.expression or f'random samples of {given.family}'}"
    for condition in spec.boundary:
        yield "boundary", boundary_text(condition)
    for name, mean in spec.mean.items():
        yield "mean over the domain", f"{name}: {mean}"
    if spec.eigenvalue is not None:
        yield "unknown number", f"{spec.eigenvalue.name}: the {spec.eigenvalue.count} lowest eigenvalues"
    if spec.allow:
        yield "accepted", ", ".join(spec.allow)


def _parameter(problem: Problem, name: str, value: float) -> str:
    quantity = problem.specification.parameters[name]
    unit = f" {quantity.unit}" if quantity.unit else ""
    written = str(quantity.value)
    derived = "" if written == f"{value:.10g}" else f" (= {written})"
    return f"{name} = {value:.10g}{unit}{derived}"


def boundary_text(condition: Boundary) -> str:
    """Return a boundary condition as a formula, with d/dn for the derivative along the outward normal."""
    field = condition.field
    where = "on the whole boundary" if condition.where == "all" else f"at {condition.where}"
    match condition.type:
        case "periodic":
            return f"everything repeats along {condition.axis}"
        case "dirichlet":
            return f"{field} = {condition.value} {where}"
        case "neumann":
            return f"d{field}/dn = {condition.value} {where}"
        case "robin":
            return f"({condition.a})*{field} + ({condition.b})*d{field}/dn = {condition.value} {where}"
        case "flux":
            return f"outward flux in the equation of {field} = {condition.value} {where}"
        case "derivative":
            order = condition.order
            return f"d^{order}{field}/dn^{order} = {condition.value} {where}"
