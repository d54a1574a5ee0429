"""A problem in words for prompts, and the Python template that every solver of it fills in."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from sharp.problems.domains import BoxDomain, PolygonDomain, RoundDomain
from sharp.problems.expressions import Apply, Derivative, Name, walk
from sharp.problems.latex import SAMPLED, aligned, to_latex
from sharp.problems.problem import Problem
from sharp.problems.spec import ArrayPort, Boundary, FunctionSpec
from sharp.yaml_source import plain_number

_TIMES = "the output times in increasing order, the first being the initial time"
_WIDTH = 96


def render_description(problem: Problem) -> str:
    """Return the problem in Markdown, as it stands in prompts: all that a solver's author has to know."""
    statement = problem.specification.statement
    parts = [
        f"# {problem.title}",
        *([statement] if statement else []),
        "## Equation" + "s" * (len(problem.equations) > 1),
        _equations(problem),
        "## Domain, parameters and conditions",
        "\n".join(f"- {line}" for line in _conditions(problem)),
        "## What the solver receives and returns",
        "\n".join(_interface(problem)),
        "## What counts",
        _what_counts(problem),
    ]
    return "\n\n".join(parts) + "\n"


def _equations(problem: Problem) -> str:
    spec = problem.specification
    definitions = [f"{name} = {text}" for name, text in spec.definitions.items()]
    text = "\n".join([*spec.equations, *(f"where {each}" for each in definitions)])
    formulas = aligned([to_latex(equation) for equation in problem.equations])
    notes = "\n".join(f"- {note}" for note in (*_notation(problem), *problem.specification.notes))
    return "\n\n".join([f"```\n{text}\n```", f"$$\n{formulas}\n$$", *([notes] if notes else [])])


def _notation(problem: Problem) -> Iterator[str]:
    parts = [part for equation in problem.equations for part in walk(equation)]
    marks = [part for part in parts if isinstance(part, Derivative)]
    field, axis = problem.fields[0], problem.space[0]
    if marks:
        yield f"In the text form, `{field}_{axis}` is the partial derivative of `{field}` along `{axis}`."
    if any(not isinstance(mark.of, Name) for mark in marks):
        yield f"`(…)_{axis}` is the derivative of the whole expression in the parentheses."
    if any(isinstance(part, Apply) and part.function in ("div", "grad", "lap") for part in parts):
        system, axis = problem.specification.coordinates.system, problem.space[0]
        symmetry = f" of {system} coordinates, where nothing depends on angles and `{axis}` is the distance"
        yield (
            "`grad` is the gradient, `div` the divergence and `lap` the Laplace operator"
            f"{symmetry if problem.radial_power else ''}."
        )


def _conditions(problem: Problem) -> Iterator[str]:
    spec = problem.specification
    yield from (f"Space: {line}." for line in domain_lines(problem))
    if problem.time is not None:
        yield f"Time: `{problem.time_name}` from {problem.time[0]:g} to {problem.time[1]:g}."
    for name in problem.parameters:
        yield _parameter(problem, name)
    for name, given in spec.coefficients.items():
        yield f"Coefficient: `{name}` is {_given(given)}."
    for name, given in spec.initial.items():
        yield f"Initial state: `{name}` is {_given(given)}."
    yield from _samples(problem)
    for condition in spec.boundary:
        yield f"Boundary: {_boundary(condition)}."
    for name, value in spec.mean.items():
        yield f"The mean of `{name}` over the domain is `{value}`."


def _samples(problem: Problem) -> Iterator[str]:
    """Say where a state that is stated is only one of those that a solver is given."""
    initial = problem.specification.initial
    passed = [port for port in problem.interface.inputs if port.field in initial]
    if any(initial[port.field].expression for port in passed):
        names = ", ".join(f"`{port.name}`" for port in passed)
        yield f"Samples: each begins with a state of its own, which is in {names}; the one above is an example."


def domain_lines(problem: Problem) -> Iterator[str]:
    """Yield where the space coordinates lie, in words."""
    axes = ", ".join(f"`{axis}`" for axis in problem.space)
    if problem.radial_power:
        yield f"{problem.specification.coordinates.system} coordinates"
    match problem.domain:
        case BoxDomain(bounds):
            yield from (f"`{axis}` from {low:g} to {high:g}" for axis, (low, high) in bounds.items())
        case RoundDomain(_, (x, y), None, outer):
            yield f"{axes} in the disk of radius {outer:g} about ({x:g}, {y:g})"
        case RoundDomain(_, (x, y), inner, outer):
            yield f"{axes} between the circles of radii {inner:g} and {outer:g} about ({x:g}, {y:g})"
        case PolygonDomain(_, vertices):
            corners = ", ".join(f"({x:g}, {y:g})" for x, y in vertices)
            yield f"{axes} in the polygon with the vertices {corners}"
        case plane:
            yield f"{axes} in {plane.text}"


def _parameter(problem: Problem, name: str) -> str:
    quantity, value = problem.specification.parameters[name], f"{problem.parameters[name]:.10g}"
    written = "" if plain_number(quantity.value) is not None else f" = {quantity.value}"
    unit = f" {quantity.unit}" if quantity.unit else ""
    passed = name in problem.interface.parameters
    use = "passed to the solver" if passed else "a fixed constant that is not passed: write it into the code"
    return f"Parameter: `{name}`{written} = {value}{unit} ({use})."


def _given(given: FunctionSpec) -> str:
    return f"`{given.expression}`" if given.expression is not None else SAMPLED[str(given.family)]


def _boundary(condition: Boundary) -> str:
    field, value = condition.field, condition.value
    where = "on the whole boundary" if condition.where == "all" else f"at `{condition.where}`"
    match condition.type:
        case "periodic":
            return f"everything is periodic along `{condition.axis}`"
        case "dirichlet":
            return f"`{field} = {value}` {where}"
        case "neumann":
            return f"the derivative of `{field}` along the outward normal is `{value}` {where}"
        case "robin":
            normal = f"the derivative of `{field}` along the outward normal"
            return f"`({condition.a})*{field} + ({condition.b})*d = {value}` {where}, where d is {normal}"
        case "flux":
            return f"the outward component of the flux in the equation of `{field}` is `{value}` {where}"
        case "derivative":
            return f"derivative number {condition.order} of `{field}` along the outward normal is `{value}` {where}"


def _interface(problem: Problem) -> Iterator[str]:
    interface = problem.interface
    yield f"`{signature(problem)}` returns `{', '.join(port.name for port in interface.returns)}`.\n"
    for port in interface.inputs:
        yield f"- `{port.name}`, array of shape {_shape(port)}: {_input_text(problem, port)}."
    if interface.coordinates:
        yield f"- `{interface.coordinates}`, array of shape [T+1]: {_TIMES}."
    for name in interface.parameters:
        yield f"- `{name}`, a number: the parameter above."
    for port in interface.returns:
        yield f"- returned `{port.name}`, array of shape {_shape(port)}: {_return_text(problem, port)}."
    yield f"\n{_axes_text(problem)}"
    yield f"\n{_sizes_text(problem)}"
    if problem.time is not None:
        yield (
            "\nOutput times are not time steps: between two of them the solver may take as many smaller "
            "internal steps as stability and accuracy need."
        )


def _what_counts(problem: Problem) -> str:
    over = ["all output times"] * (problem.time is not None) + ["all grid points"]
    over += ["all returned fields together"] * (len(problem.interface.returns) > 1)
    *first, last = over
    extent = f"{', '.join(first)} and {last}" if first else last
    return (
        f"How close the result is to the solution, over {extent}, in every sample. "
        "A result of another shape, or with a value that is not finite, fails."
    )


def signature(problem: Problem) -> str:
    """Return the call of a solver, as `solver(u0_batch, t_coordinate, nu)`."""
    return f"{problem.interface.function}({', '.join(problem.interface.arguments)})"


def _shape(port: ArrayPort) -> str:
    return f"[{', '.join(port.shape)}]"


def _input_text(problem: Problem, port: ArrayPort) -> str:
    if port.field in problem.specification.coefficients:
        return f"the coefficient `{port.field}` of each sample at the grid points"
    return f"`{port.field}` of each sample at the initial time"


def _return_text(problem: Problem, port: ArrayPort) -> str:
    """Return what a returned array holds, and that it begins with the initial state."""
    if problem.time is None:
        return f"`{port.field}` of each sample at the grid points"
    start = [given.name for given in problem.interface.inputs if given.field == port.field]
    equal = f"; `{port.name}[:, 0]` equals `{start[0]}`" if start else ""
    return f"`{port.field}` of each sample at all output times{equal}"


def _axes_text(problem: Problem) -> str:
    times = ["output time (in returned arrays)"] if problem.time is not None else []
    axes = ", ".join(["sample", *times, *(f"`{name}`" for name in problem.space)])
    box = isinstance(problem.domain, BoxDomain)
    outside = (
        []
        if box
        else ["What is returned at points outside of the domain does not count; on its edge it does."]
    )
    return " ".join([f"Array axes: {axes}.", *_grid_lines(problem), *outside])


def _grid_lines(problem: Problem) -> Iterator[str]:
    for name in problem.space:
        low, high = problem.bounds[name]
        count = "N" if "N" in problem.interface.returns[0].shape else f"N{name}"
        start = f"{low:g} + " if low else ""
        if problem.grid.kind == "cells":
            yield (
                f"Along `{name}` the points are the centres of {count} equal cells: "
                f"`{name}_i = {start}(i + 1/2)*d{name}` with `d{name} = {high - low:g}/{count}`."
            )
        else:
            yield (
                f"Along `{name}` there are {count} nodes, both ends included: "
                f"`{name}_i = {start}i*d{name}` with `d{name} = {high - low:g}/({count} - 1)`."
            )


def _sizes_text(problem: Problem) -> str:
    sizes = " x ".join(str(problem.grid.points[name]) for name in problem.space)
    spacing = ", ".join(f"d{name} = {gap:.6g}" for name, gap in problem.spacing.items())
    times, grids = "", "grids"
    if problem.time is not None and problem.grid.times is not None:
        step = (problem.time[1] - problem.time[0]) / (problem.grid.times - 1)
        times, grids = f" and T+1 = {problem.grid.times} output times, {step:g} apart", "grids and times"
    if not problem.interface.inputs:
        return f"There are no arrays to read sizes from: return one sample, batch = 1, on {sizes} points ({spacing})."
    return (
        f"The data have {sizes} grid points ({spacing}){times}. "
        f"Read all sizes from the arrays: the solver has to work for other {grids} as well."
    )


def render_template(problem: Problem) -> str:
    """Return the source of a Python module: the solver's signature and documentation, without a body."""
    title = problem.title.replace("\\", "\\\\").replace('"', '\\"')
    lines = [
        f'"""{title}."""',
        "",
        "import numpy as np",
        "",
        "",
        f"def {signature(problem)}:",
        *(f"    {line}".rstrip() for line in _docstring(problem)),
        "    raise NotImplementedError",
    ]
    return "\n".join(lines) + "\n"


def _docstring(problem: Problem) -> Iterator[str]:
    interface = problem.interface
    yield f'"""Solve the problem{" for a batch of samples at once" if interface.inputs else ""}.'
    yield ""
    for equation in problem.specification.equations:
        yield from _wrapped(equation, "    ", "        ")
    for name, text in problem.specification.definitions.items():
        yield from _wrapped(f"where {name} = {text}", "    ", "        ")
    if interface.inputs or interface.coordinates or interface.parameters:
        yield from ("", "Arguments:")
    for port in interface.inputs:
        yield from _entry(port.name, f"array {_shape(port)}, {_input_text(problem, port)}.")
    if interface.coordinates:
        yield from _entry(interface.coordinates, f"array [T+1], {_TIMES}.")
    for name in interface.parameters:
        yield from _entry(name, "a number, the parameter of the equations.")
    yield ""
    yield "Returns:" if len(interface.returns) == 1 else "Returns a tuple of:"
    for port in interface.returns:
        yield from _entry(port.name, f"array {_shape(port)}, {_return_text(problem, port)}.")
    yield ""
    yield from _wrapped(_axes_text(problem))
    yield from _wrapped(_sizes_text(problem))
    yield '"""'


def _entry(name: str, text: str) -> list[str]:
    return _wrapped(f"{name}: {text}", "    ", "        ")


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    """Break text into lines, but for what is marked as code with backticks, which are dropped."""
    kept = re.sub(r"`[^`]*`", lambda code: code.group()[1:-1].replace(" ", "\0"), text)
    lines = textwrap.wrap(kept, _WIDTH, initial_indent=first, subsequent_indent=rest)
    return [line.replace("\0", " ") for line in lines]
