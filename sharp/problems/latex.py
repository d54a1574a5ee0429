"""Expression trees and whole problems as LaTeX, in the order in which they were written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sharp.problems.domains import BoxDomain, PolygonDomain, RoundDomain
from sharp.problems.expressions import (
    ATOM,
    PRECEDENCE,
    SIGN,
    Apply,
    Binary,
    Derivative,
    Equation,
    Name,
    Negative,
    Node,
    Number,
    precedence,
)
from sharp.problems.problem import Problem
from sharp.problems.spec import Boundary, FunctionSpec

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
_GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|mu|nu|xi|rho|sigma|tau|upsilon|phi|chi|psi|omega|pi|"
    "Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega"
)
_COMMANDS = re.compile("sin|cos|tan|sinh|cosh|tanh|exp|log|min|max")
_OPERATORS = {"<=": r"\le", ">=": r"\ge", "and": r"\text{ and }", "or": r"\text{ or }"}
_SUM, _PRODUCT = PRECEDENCE["+"], PRECEDENCE["*"]


def to_latex(node: Node | Equation) -> str:
    """Return LaTeX for a formula in mathematics mode."""
    match node:
        case Equation(left, right):
            return f"{to_latex(left)} = {to_latex(right)}"
        case Number(value):
            return _number(value)
        case Name(name):
            return symbol(name)
        case Negative(of):
            return f"-{_enclosed(of, _PRODUCT)}"
        case Binary(op, left, right):
            return _binary(op, left, right)
        case Derivative(of, by):
            return rf"\partial_{{{' '.join(map(symbol, by))}}} {_enclosed(of, ATOM)}"
        case Apply(function, arguments):
            return _apply(function, arguments)


def _escaped(text: str) -> str:
    return text.replace("_", r"\_")


def symbol(name: str) -> str:
    """Return a name as LaTeX: Greek letters by name, digits and what follows an underscore as an index."""
    head, *indices = name.split("_")
    match = re.fullmatch(r"([A-Za-z]+)([0-9]+)", head)
    if match:
        head, indices = match[1], [match[2], *indices]
    text = rf"\{head}" if _GREEK.fullmatch(head) else head if len(head) == 1 else rf"\mathrm{{{head}}}"
    return text + (f"_{{{','.join(indices)}}}" if indices else "")


def _number(value: float) -> str:
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return mantissa
    factor = "" if mantissa == "1" else mantissa + r" \cdot "
    return f"{factor}10^{{{int(exponent)}}}"


def _binary(op: str, left: Node, right: Node) -> str:
    match op:
        case "/":
            return rf"\frac{{{to_latex(left)}}}{{{to_latex(right)}}}"
        case "**":
            return f"{_enclosed(left, ATOM)}^{{{to_latex(right)}}}"
        case "*":
            factor = _enclosed(right, SIGN + 1)
            sign = r"\cdot" if factor[0].isdigit() else r"\,"
            return f"{_enclosed(left, _PRODUCT)} {sign} {factor}"
    level = _SUM if op in "+-" else 0
    return f"{_enclosed(left, level)} {_OPERATORS.get(op, op)} {_enclosed(right, level + (op in '+-'))}"


def _apply(function: str, arguments: tuple[Node, ...]) -> str:
    inner = ", ".join(map(to_latex, arguments))
    match function:
        case "grad" | "lap":
            return (r"\nabla " if function == "grad" else r"\nabla^2 ") + _enclosed(arguments[0], ATOM)
        case "div":
            return rf"\nabla \cdot \left({inner}\right)"
        case "sqrt":
            return rf"\sqrt{{{inner}}}"
        case "abs":
            return rf"\left|{inner}\right|"
        case "piecewise":
            return _piecewise(arguments)
        case "J0" | "J1":
            return rf"J_{{{function[1]}}}\left({inner}\right)"
        case _:
            name = rf"\{function}" if _COMMANDS.fullmatch(function) else rf"\operatorname{{{function}}}"
            return rf"{name}\left({inner}\right)"


def _piecewise(arguments: tuple[Node, ...]) -> str:
    *cases, otherwise = map(to_latex, arguments)
    rows = [f"{value} & {condition}" for value, condition in zip(cases[::2], cases[1::2], strict=True)]
    body = r" \\ ".join([*rows, rf"{otherwise} & \text{{otherwise}}"])
    return rf"\begin{{cases}} {body} \end{{cases}}"


def _enclosed(node: Node, level: int) -> str:
    """Return a formula, in parentheses where it binds less tightly than `level`; fractions need none."""
    text = to_latex(node)
    fraction = isinstance(node, Binary) and node.op == "/" and level <= SIGN + 1
    tight = precedence(node) >= level and not (isinstance(node, Derivative) and level == ATOM)
    return text if tight or fraction else rf"\left({text}\right)"


def render_latex(problem: Problem) -> str:
    """Return equations, domain and conditions as one LaTeX `aligned` block."""
    return aligned([*map(to_latex, problem.equations), *_latex_ranges(problem), *_latex_conditions(problem)])


def aligned(rows: list[str]) -> str:
    """Return formulas below each other."""
    return "\\begin{aligned}\n" + " \\\\\n".join(f"& {row}" for row in rows) + "\n\\end{aligned}"


def _latex_ranges(problem: Problem) -> Iterator[str]:
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
        case plane:
            yield rf"{point} \in \text{{{plane.text}}}"
    if problem.time is not None:
        yield rf"{symbol(str(problem.time_name))} \in ({problem.time[0]:g}, {problem.time[1]:g}]"
    for name, value in problem.parameters.items():
        yield f"{symbol(name)} = {value:.10g}"


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
        "flux": rf"n \cdot F_{{{field}}}",
        "robin": rf"\left({a}\right) {field} + \left({b}\right) {normal}",
        "derivative": rf"\partial_{{n}}^{{{condition.order}}} {field}",
    }
    where = str(condition.where)
    place = r"\partial \Omega" if where == "all" else rf"\text{{{_escaped(where)}}}"
    if "=" in where and " and " not in where and "shape" not in where:
        place = to_latex(problem.place(where))
    return rf"\left. {left[condition.type]} \right|_{{{place}}} = {value}"
