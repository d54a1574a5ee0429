"""Which texts are the same expression or equation, and derivatives carried out, against SymPy."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest
import sympy

from sharp.errors import SpecificationError
from sharp.experiments.agent_benchmark.metrics.derivatives import _SLOPES, Calculus, as_variables
from sharp.experiments.agent_benchmark.metrics.equivalence import (
    Symbols,
    same_equation,
    same_expression,
)
from sharp.problems.expressions import FUNCTIONS, value_of
from sharp.problems.grammar import Scope, parse_tree
from sharp.problems.symbolic import to_sympy

PLANE = Symbols(
    {"nu": None, "k": None, "rho": None, "c": None},
    {"x": (0, 1), "y": (0, 1), "t": (0, 2)},
    ("u", "v", "a"),
    time="t",
)

SAME_EQUATIONS = [
    ("u_t = 0.1*u_xx", "D(u, t) - 0.1*D(u, x, x) = 0"),
    ("u_t = 0.1*u_xx", "-u_t = -u_xx/10"),
    ("u_t = 0.1*u_xx", "10*u_t = u_xx"),
    ("u_t = nu*lap(u)", "u_t - nu*(u_xx + u_yy) = 0"),
    ("u_t + u*u_x = nu*u_xx", "u_t + (u**2/2)_x = nu*u_xx"),
    ("rho*c*u_t = k*u_xx", "u_t = k/(rho*c)*u_xx"),
    ("div(a*grad(u)) = 0", "a*lap(u) + a_x*u_x + a_y*u_y = 0"),
    (
        "div(grad(u)/a - v*grad(u)) = 0",
        "lap(u)/a - (u_x*a_x + u_y*a_y)/a**2 - v*lap(u) - u_x*v_x - u_y*v_y = 0",
    ),
    ("u_xy = 0", "u_yx = 0"),
    ("u_tt = lap(lap(u))", "u_tt = u_xxxx + 2*u_xxyy + u_yyyy"),
    ("u_t = 1e-9*u_xx", "1e9*u_t = u_xx"),
    ("u_t = sin(u)*cos(u)", "2*u_t = sin(2*u)"),
    ("(sin(u))_x = v", "cos(u)*u_x = v"),
    ("u_t = exp(-t)*sin(pi*x)*u", "exp(t)*u_t/exp(t) = sin(pi*x)*u*exp(-t)"),
    ("lap(u) = max(x, y)", "lap(u) = piecewise(x, x > y, y)"),
]


@pytest.mark.parametrize(("one", "other"), SAME_EQUATIONS)
def test_two_ways_of_writing_an_equation_are_the_same(one: str, other: str) -> None:
    assert same_equation(one, other, PLANE)
    assert same_equation(other, one, PLANE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("u_t = 0.1*u_xx", "u_t = 0.01*u_xx"),
        ("u_t = 0.1*u_xx", "u_t = -0.1*u_xx"),
        ("u_t = 0.1*u_xx", "u_tt = 0.1*u_xx"),
        ("u_t = 0.1*u_xx", "u_t = 0.10001*u_xx"),
        ("u_t = 1e-9*u_xx", "u_t = 1e-8*u_xx"),
        ("u_t = u_xx + 1e-6*u", "u_t = u_xx"),
        ("u_t = nu*u_xx", "u_t = k*u_xx"),
        ("u_t + u*u_x = nu*u_xx", "u_t + (u**2)_x = nu*u_xx"),
        ("div(a*grad(u)) = 0", "a*lap(u) = 0"),
        ("u_t = u_xx", "x*u_t = x*u_xx + x**2"),
        ("u_x = 1", "x*u_x = x"),
        ("lap(u) = max(x, y)", "lap(u) = min(x, y)"),
        ("u_t = u_xx", "0 = 0"),
        ("u_t = u_xx", "u_t = u_t"),
    ],
)
def test_what_says_something_else_is_not_the_same(one: str, other: str) -> None:
    assert not same_equation(one, other, PLANE)
    assert not same_equation(other, one, PLANE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sin(x)**2", "1 - cos(x)^2"),
        ("exp(x + y)", "exp(x)*exp(y)"),
        ("sin(pi)", "0"),
        ("1/(x - 0.5)", "-1/(0.5 - x)"),
        ("log(x**2)", "2*log(x)"),
        ("nu*x/nu", "x"),
        ("piecewise(0, x < 0.5, 1)", "Heaviside(x - 0.5)"),
        ("sqrt(x - 0.5)**2", "x - 0.5"),
        ("(x**2)_x", "2*x"),
        ("1e-20*x", "x/1e20"),
    ],
)
def test_two_ways_of_writing_an_expression_are_the_same(one: str, other: str) -> None:
    assert same_expression(one, other, PLANE)
    assert same_expression(other, one, PLANE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sin(x)", "cos(x)"),
        ("sin(x)", "sin(y)"),
        ("1e-9*x", "1e-8*x"),
        ("1e-20*x", "2e-20*x"),
        ("0", "1e-6*x"),
        ("x", "sqrt(x - 2)"),
        ("piecewise(0, x < 0.5, 1)", "piecewise(0, x < 0.25, 1)"),
        ("20", "20.001"),
    ],
)
def test_other_expressions_are_not_the_same(one: str, other: str) -> None:
    assert not same_expression(one, other, PLANE)
    assert not same_expression(other, one, PLANE)


def test_pieces_count_within_the_domain_alone() -> None:
    rod = Symbols({}, {"x": (0, 1e-3)})
    assert not same_expression("piecewise(1, x < 5e-4, 2)", "2", rod)
    assert same_expression("piecewise(1, x < 5e-4, 2)", "1", Symbols({}, {"x": (0, 4e-4)}))


def test_known_constants_have_their_values_and_unknown_ones_any() -> None:
    known = Symbols({"alpha": 0.25}, {"x": (0, 1), "t": (0, 1)}, ("u",), time="t")
    assert same_equation("u_t = alpha*u_xx", "4*u_t = u_xx", known)
    assert not same_equation("u_t = nu*u_xx", "u_t = 0.25*u_xx", PLANE)


def test_verdicts_do_not_change_from_one_call_to_the_next() -> None:
    assert len({same_expression("x", "x*(1 + 9e-7)", PLANE) for _ in range(3)}) == 1


def test_a_text_that_is_not_of_the_grammar_is_an_error() -> None:
    with pytest.raises(SpecificationError, match="unknown name 'w'"):
        same_expression("x", "w", PLANE)
    with pytest.raises(SpecificationError, match="right side of the equation"):
        same_equation("u_t = u_xx", "u_t", PLANE)


def test_a_text_that_would_take_for_ever_to_differentiate_is_refused() -> None:
    product = "*".join(["sin(x*u)"] * 40)
    with pytest.raises(SpecificationError, match="too large to differentiate"):
        same_equation("u_t = u_xx", f"u_t = ({product})_xxxxxxxx", PLANE)


@pytest.mark.parametrize(
    "text",
    [
        *(f"{name}(0.3*x*y + 0.2)" for name in sorted(_SLOPES) if name not in ("acosh", "sign", "Heaviside")),
        "acosh(2 + x*y)",
        "atan2(x + 1, y**2)",
        "(1 + x)**(y*x)",
        "x**3/(1 + y)",
        "max(x, y)*min(x*y, y, 0.2)",
        "piecewise(x**2, x < y, x*y)",
    ],
)
def test_derivatives_are_those_of_central_differences(text: str) -> None:
    tree = parse_tree(text, Scope.of([], [], ["x", "y"]))
    slope = Calculus((), ("x", "y")).derivative(tree, "x")
    h = 1e-6
    for x, y in [(0.31, 0.72), (0.83, 0.44)]:
        ahead, behind = (value_of(tree, {"x": x + step, "y": y}) for step in (h, -h))
        assert value_of(slope, {"x": x, "y": y}) == pytest.approx(
            (ahead - behind) / (2 * h), rel=1e-6, abs=1e-8
        )


def test_steps_have_no_slope() -> None:
    for text in ("sign(x - 0.5)", "Heaviside(x - 0.5)"):
        slope = Calculus((), ("x",)).derivative(parse_tree(text, Scope.of([], [], ["x"])), "x")
        assert value_of(slope, {"x": 0.2}) == 0


def test_every_function_of_one_argument_has_a_slope() -> None:
    assert set(_SLOPES) == set(FUNCTIONS) - {"atan2", "min", "max"}


@pytest.mark.parametrize(
    "text", ["lap(u**2)", "div(v*grad(u))", "(u*v)_xt", "lap(lap(u*x))", "(exp(u)*u_x)_y"]
)
def test_derivatives_of_fields_are_those_of_sympy(text: str) -> None:
    scope = Scope.of([], ["u", "v"], ["x", "y", "t"])
    x, y, t = sympy.symbols("x y t")
    fields = {"u": sympy.sin(x + 2 * y - t) + x * y**2, "v": sympy.exp(x * y) * (1 + t * x)}
    expected = to_sympy(parse_tree(text, scope), fields, ("x", "y")).doit()
    tree = as_variables(Calculus(("u", "v"), ("x", "y")).carried_out(parse_tree(text, scope)))
    point = {x: 0.3, y: 0.7, t: 0.2}
    values = {str(name): float(value) for name, value in point.items()}
    for name, of in fields.items():
        values[name] = float(of.subs(point))
        for order in range(1, 5):
            for marks in _marks(order):
                values[",".join([f"∂{name}", *marks])] = float(sympy.diff(of, *marks).subs(point))
    assert value_of(tree, values) == pytest.approx(float(expected.subs(point)), rel=1e-12)


def _marks(order: int) -> list[tuple[str, ...]]:
    return list(combinations_with_replacement("txy", order))
