"""Descriptions, templates and LaTeX of problems."""

from __future__ import annotations

import ast
import re

import pytest

from sharp.problems import (
    list_problems,
    load_problem,
    parse_problem,
    render_description,
    render_latex,
    render_template,
)
from sharp.problems.grammar import Scope, parse_equation_tree, parse_tree
from sharp.problems.latex import symbol, to_latex
from tests.helpers.problems.specifications import specification

SCOPE = Scope.of(["nu", "k_x"], ["u", "Vx"], ["x", "y", "t"])
IDS = tuple(list_problems())


@pytest.mark.parametrize("name", IDS)
def test_the_description_says_all_that_a_solver_needs(name: str) -> None:
    problem = load_problem(name)
    text = render_description(problem)
    interface = problem.interface
    assert (
        f"`solver({', '.join(interface.arguments)})` returns `{', '.join(p.name for p in interface.returns)}`"
        in text
    )
    for equation in problem.specification.equations:
        assert equation in text
    for port in (*interface.inputs, *interface.returns):
        assert f"`{port.name}`, array of shape [{', '.join(port.shape)}]" in text
    for parameter, value in problem.parameters.items():
        assert re.search(rf"Parameter: `{parameter}`.* = {value:.10g} \((passed|a fixed constant)", text)
    for condition in problem.specification.boundary:
        assert condition.type != "periodic" or f"everything is periodic along `{condition.axis}`" in text
    assert "nRMSE" not in text  # what the score is depends on a run's feedback
    assert ("all output times" in text) == (problem.time is not None)
    assert ("smaller internal steps" in text) == (problem.time is not None)
    assert ("[:, 0]` equals" in text) == (problem.time is not None)


@pytest.mark.parametrize("name", IDS)
def test_nothing_is_left_to_fill_in_and_nothing_is_given_away(name: str) -> None:
    problem = load_problem(name)
    for text in (render_description(problem), render_template(problem), render_latex(problem)):
        assert not re.search(r"\{\{|\{%|\bNone\b|TODO|\{problem|<[a-z]+>|family", text)
        assert problem.published is not None
        assert f"{problem.published.nrmse:g}" not in text
        assert "PDEBench" not in text


def test_the_viscosity_of_burgers_equation_is_plain() -> None:
    text = render_description(load_problem("burgers"))
    assert "u_t + (u**2/2)_x = nu*u_xx" in text
    assert r"\nu \, \partial_{x x} u" in text


@pytest.mark.parametrize("name", IDS)
def test_the_template_is_python_with_the_signature(name: str) -> None:
    problem = load_problem(name)
    source = render_template(problem)
    module = ast.parse(source)
    assert ast.get_docstring(module) == f"{problem.title}."
    function = module.body[-1]
    assert isinstance(function, ast.FunctionDef)
    assert function.name == "solver"
    assert [argument.arg for argument in function.args.args] == list(problem.interface.arguments)
    documentation = ast.get_docstring(function) or ""
    for port in (*problem.interface.inputs, *problem.interface.returns):
        assert f"{port.name}: array [{', '.join(port.shape)}]" in documentation
    assert max(map(len, source.splitlines())) <= 110
    assert "`" not in source
    namespace: dict[str, object] = {}
    exec(compile(source, name, "exec"), namespace)
    solver = namespace["solver"]
    assert callable(solver)
    with pytest.raises(NotImplementedError):
        solver(*problem.interface.arguments)


def test_titles_may_hold_quotes_and_backslashes() -> None:
    title = '''Say "u" or \\\\nu, and end with """'''
    text = RECTANGLE.replace("Plate", f"'{title}'")
    problem = parse_problem(text, "plate.yaml")
    assert ast.get_docstring(ast.parse(render_template(problem))) == f"{title}."


RECTANGLE = specification("convective-plate")


@pytest.mark.parametrize(
    "line",
    [
        "A plate that is cooled at its upper edge.",
        "- Parameter: `h` = 2.5 1/m (passed to the solver).",
        "- Parameter: `q` = h**2 = 6.25 (a fixed constant that is not passed: write it into the code).",
        "- Coefficient: `a` is `1 + x*y`.",
        "- Initial state: `u` is `piecewise(1, x < 0.5 and y >= 0, 0)`.",
        "- Samples: each begins with a state of its own, which is in `u0`; the one above is an example.",
        "- Boundary: `u = 0` at `x = 0`.",
        "- Boundary: the derivative of `u` along the outward normal is `sin(t)` at `x = 1`.",
        "- Boundary: `(h)*u + (1)*d = h*x` at `y = 1`, where d is the derivative of `u` along",
        "centres of Ny equal cells: `y_i = -1 + (i + 1/2)*dy` with `dy = 2/Ny`.",
        "32 x 64 grid points (dx = 0.03125, dy = 0.03125) and T+1 = 11 output times, 0.1 apart.",
    ],
)
def test_conditions_of_every_kind_are_put_in_words(line: str) -> None:
    assert line in render_description(parse_problem(RECTANGLE, "plate.yaml"))


def test_conditions_of_every_kind_in_latex() -> None:
    cases = r"\begin{cases} 1 & x < 0.5 \text{ and } y \ge 0 \\ 0 & \text{otherwise} \end{cases}"
    assert render_latex(parse_problem(RECTANGLE, "plate.yaml")).splitlines() == [
        r"\begin{aligned}",
        r"& \partial_{t} u = \nabla \cdot \left(a \, \nabla u\right) + q \\",
        r"& x \in (0, 1) \\",
        r"& y \in (-1, 1) \\",
        r"& t \in (0, 1] \\",
        r"& h = 2.5 \\",
        r"& q = 6.25 \\",
        r"& a = 1 + x \, y \\",
        rf"& \left. u \right|_{{t = 0}} = {cases} \\",
        r"& \left. u \right|_{x = 0} = 0 \\",
        r"& \left. \partial_{n} u \right|_{x = 1} = \sin\left(t\right) \\",
        r"& \left. \partial_{n} u \right|_{y = -1} = 0 \\",
        r"& \left. \left(h\right) u + \left(1\right) \partial_{n} u \right|_{y = 1} = h \, x",
        r"\end{aligned}",
    ]


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("u_t + u*u_x = nu*u_xx", r"\partial_{t} u + u \, \partial_{x} u = \nu \, \partial_{x x} u"),
        ("(u**2/2)_x = 0", r"\partial_{x} \left(\frac{u^{2}}{2}\right) = 0"),
        ("lap(u + x) = -2*(x - 1)", r"\nabla^2 \left(u + x\right) = -2 \, \left(x - 1\right)"),
        ("Vx - (u - x) = x - u + x", r"\mathrm{Vx} - \left(u - x\right) = x - u + x"),
    ],
)
def test_equations_in_latex(text: str, latex: str) -> None:
    assert to_latex(parse_equation_tree(text, SCOPE)) == latex


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("2*3", r"2 \cdot 3"),
        ("4/3*nu", r"\frac{4}{3} \, \nu"),
        ("(x/2)**2", r"\left(\frac{x}{2}\right)^{2}"),
        ("x**-(1/2)", r"x^{-\frac{1}{2}}"),
        ("-x**2", r"-x^{2}"),
        ("(-x)**2", r"\left(-x\right)^{2}"),
        ("-(x + 1)", r"-\left(x + 1\right)"),
        ("2*(-x)", r"2 \, \left(-x\right)"),
        ("u_x**2", r"\left(\partial_{x} u\right)^{2}"),
        ("1e-5 + 2.5e20", r"10^{-5} + 2.5 \cdot 10^{20}"),
        ("sqrt(abs(k_x))", r"\sqrt{\left|k_{x}\right|}"),
        ("atan2(x, y)", r"\operatorname{atan2}\left(x, y\right)"),
        ("exp(x) + J0(x)", r"\exp\left(x\right) + J_{0}\left(x\right)"),
        ("div(grad(u))", r"\nabla \cdot \left(\nabla u\right)"),
        ("D(u*x, t)", r"\partial_{t} \left(u \, x\right)"),
    ],
)
def test_expressions_in_latex(text: str, latex: str) -> None:
    assert to_latex(parse_tree(text, SCOPE)) == latex


def test_symbols_in_latex() -> None:
    assert [symbol(name) for name in ("rho0", "k_x", "Gamma", "density", "u", "c_p_0")] == [
        r"\rho_{0}",
        "k_{x}",
        r"\Gamma",
        r"\mathrm{density}",
        "u",
        "c_{p,0}",
    ]
