"""Expression trees as LaTeX, in the order in which they were written."""

from __future__ import annotations

import re

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
