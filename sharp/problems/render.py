"""A problem in words for prompts, and in LaTeX to be shown back to the user."""

from __future__ import annotations

from collections.abc import Iterator

from sharp.problems.domains import BoxDomain, PolygonDomain, RoundDomain
from sharp.problems.expressions import Apply, Derivative, Name, walk
from sharp.problems.interface_text import (
    TIMES,
    axes_text,
    input_text,
    return_text,
    shape,
    signature,
    sizes_text,
)
from sharp.problems.latex import symbol, to_latex
from sharp.problems.problem import Problem
from sharp.problems.spec import Boundary, FunctionSpec
from sharp.yaml_source import plain_number

SAMPLED = {
    "sine-sums": "a random sum of two sine waves with up to 8 periods in the domain; "
    "some samples have kinks or are confined to a part of the domain",
    "unit-sine-sums": "a random sum of two sine waves with up to 8 periods in the domain, "
    "shifted and scaled to values between 0 and 1; some samples have kinks",
    "positive-sine-sums": "a random sum of sine waves about a random mean, positive everywhere; "
    "some samples have steep parts",
    "two-phase-gaussian": "a Gaussian random field cut at a threshold: "
    "piecewise constant with two positive values",
}


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
        "## How it is scored",
        _scoring(problem),
    ]
    return "\n\n".join(parts) + "\n"


def render_latex(problem: Problem) -> str:
    """Return equations, domain and conditions as one LaTeX `aligned` block."""
    rows = [*map(to_latex, problem.equations), *_latex_ranges(problem), *_latex_conditions(problem)]
    return _aligned(rows)


def _aligned(rows: list[str]) -> str:
    return "\\begin{aligned}\n" + " \\\\\n".join(f"& {row}" for row in rows) + "\n\\end{aligned}"


def _equations(problem: Problem) -> str:
    text = "\n".join(problem.specification.equations)
    formulas = _aligned([to_latex(equation) for equation in problem.equations])
    notes = "\n".join(f"- {note}" for note in (*_notation(problem), *problem.specification.notes))
    return "\n\n".join([f"```\n{text}\n```", f"$$\n{formulas}\n$$", *([notes] if notes else [])])


def _notation(problem: Problem) -> Iterator[str]:
    parts = [part for equation in problem.equations for part in (*walk(equation.left), *walk(equation.right))]
    marks = [part for part in parts if isinstance(part, Derivative)]
    field, axis = problem.fields[0], problem.space[0]
    if marks:
        yield f"In the text form, `{field}_{axis}` is the partial derivative of `{field}` along `{axis}`."
    if any(not isinstance(mark.of, Name) for mark in marks):
        yield f"`(…)_{axis}` is the derivative of the whole expression in the parentheses."
    if any(isinstance(part, Apply) and part.function in ("div", "grad", "lap") for part in parts):
        yield "`grad` is the gradient, `div` the divergence and `lap` the Laplace operator."


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
        case "derivative":
            return f"derivative number {condition.order} of `{field}` along the outward normal is `{value}` {where}"


def _interface(problem: Problem) -> Iterator[str]:
    interface = problem.interface
    yield f"`{signature(problem)}` returns `{', '.join(port.name for port in interface.returns)}`.\n"
    for port in interface.inputs:
        yield f"- `{port.name}`, array of shape {shape(port)}: {input_text(problem, port)}."
    if interface.coordinates:
        yield f"- `{interface.coordinates}`, array of shape [T+1]: {TIMES}."
    for name in interface.parameters:
        yield f"- `{name}`, a number: the parameter above."
    for port in interface.returns:
        yield f"- returned `{port.name}`, array of shape {shape(port)}: {return_text(problem, port)}."
    yield f"\n{axes_text(problem)}"
    yield f"\n{sizes_text(problem)}"
    if problem.time is not None:
        yield (
            "\nOutput times are not time steps: between two of them the solver may take as many smaller "
            "internal steps as stability and accuracy need."
        )


def _scoring(problem: Problem) -> str:
    over = ["all output times"] * (problem.time is not None) + ["all grid points"]
    over += ["all returned fields together"] * (len(problem.interface.returns) > 1)
    *first, last = over
    extent = f"{', '.join(first)} and {last}" if first else last
    return (
        "The normalised root-mean-square error against reference solutions, smaller being better:\n\n"
        "$$\n\\mathrm{nRMSE} = \\frac{1}{S} \\sum_{s=1}^{S} "
        "\\frac{\\lVert u^{(s)}_\\mathrm{solver} - u^{(s)}_\\mathrm{reference} \\rVert_2}"
        "{\\lVert u^{(s)}_\\mathrm{reference} \\rVert_2}\n$$\n\n"
        f"with the norm of each sample s taken over {extent}. "
        "A result of another shape, or with a value that is not finite, fails."
    )


def _latex_ranges(problem: Problem) -> Iterator[str]:
    yield from _latex_domain(problem)
    if problem.time is not None:
        yield rf"{symbol(str(problem.time_name))} \in ({problem.time[0]:g}, {problem.time[1]:g}]"
    for name, value in problem.parameters.items():
        yield f"{symbol(name)} = {value:.10g}"


def _latex_domain(problem: Problem) -> Iterator[str]:
    point = rf"\left({', '.join(map(symbol, problem.space))}\right)"
    match problem.domain:
        case BoxDomain(bounds):
            for name, (low, high) in bounds.items():
                yield rf"{symbol(name)} \in ({low:g}, {high:g})"
        case RoundDomain(_, (x, y), inner, outer):
            least = f"{inner:g} < " if inner is not None else ""
            yield rf"{least}\left| {point} - ({x:g}, {y:g}) \right| < {outer:g}"
        case PolygonDomain(_, vertices):
            corners = ", ".join(f"({x:g}, {y:g})" for x, y in vertices)
            yield rf"{point} \in \text{{polygon }} {corners}"


def _latex_conditions(problem: Problem) -> Iterator[str]:
    spec = problem.specification
    for name, given in spec.coefficients.items():
        yield f"{symbol(name)} = {_latex_given(problem, given)}"
    for name, given in spec.initial.items():
        field, _, marks = name.partition("_") if name not in problem.fields else (name, "", "")
        left = to_latex(
            Derivative(Name(field), (str(problem.time_name),) * len(marks)) if marks else Name(name)
        )
        start = f"{symbol(str(problem.time_name))} = {problem.time[0]:g}" if problem.time else ""
        yield rf"\left. {left} \right|_{{{start}}} = {_latex_given(problem, given)}"
    yield from (_latex_boundary(problem, condition) for condition in spec.boundary)


def _latex_given(problem: Problem, given: FunctionSpec) -> str:
    if given.expression is None:
        return rf"\text{{{SAMPLED[str(given.family)].partition(';')[0]}}}"
    return to_latex(problem.tree(given.expression))


def _latex_boundary(problem: Problem, condition: Boundary) -> str:
    if condition.type == "periodic":
        return rf"\text{{periodic along }} {symbol(str(condition.axis))}"
    field = symbol(str(condition.field))
    normal = rf"\partial_{{n}} {field}"
    a, b, value = (
        to_latex(problem.tree(text))
        for text in (condition.a or "1", condition.b or "1", condition.value or "0")
    )
    left = {
        "dirichlet": field,
        "neumann": normal,
        "robin": rf"\left({a}\right) {field} + \left({b}\right) {normal}",
        "derivative": rf"\partial_{{n}}^{{{condition.order}}} {field}",
    }
    place = _latex_place(problem, str(condition.where))
    return rf"\left. {left[condition.type]} \right|_{{{place}}} = {value}"


def _latex_place(problem: Problem, where: str) -> str:
    if where == "all":
        return r"\partial \Omega"
    if "=" in where:
        return to_latex(problem.place(where))
    return rf"\text{{{where}}}"
