"""The expression grammar: what it reads, what it refuses and how it says so."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
import sympy
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sharp.errors import SpecificationError
from sharp.problems.expressions import (
    COMPARISONS,
    FUNCTIONS,
    Apply,
    Binary,
    Derivative,
    Equation,
    Name,
    Negative,
    Node,
    Number,
    names_in,
    to_text,
)
from sharp.problems.grammar import Scope, evaluate_tree, parse_equation_tree, parse_tree
from sharp.problems.programs import compile_expressions
from sharp.problems.symbolic import equation_to_sympy, to_sympy

SCOPE = Scope.of(["nu", "k_x"], ["u", "Vx"], ["x", "y", "t"])
FIELDS = st.sampled_from(["u", "Vx"]).map(Name)
VARYING = st.sampled_from(["nu", "k_x", "u", "x", "t"]).map(Name)
NAMES = VARYING | st.just(Name("pi"))
NUMBERS = st.one_of(st.integers(0, 9), st.floats(0.001, 9.0), st.sampled_from([1e-3, 1e-30, 2.5e20])).map(
    Number
)
MARKS = st.lists(st.sampled_from("xyt"), min_size=1, max_size=2).map(tuple)
ONE_ARGUMENT = st.sampled_from(sorted({*FUNCTIONS, "lap"} - {"atan2", "min", "max"}))
LIMITS = ("300 symbols", "2000 characters", "nested", "not a finite real number", "of an order above")


def _sum_with_name(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    """An expression that is no constant, so that nothing is known to divide by zero."""
    return st.builds(Binary, st.sampled_from("+-"), VARYING, inner)


def _arithmetic(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    varying = _sum_with_name(inner)
    return st.one_of(
        st.builds(Binary, st.sampled_from("+-*"), inner, inner),
        st.builds(Binary, st.just("/"), inner, varying),
        st.builds(Binary, st.just("**"), varying, st.integers(0, 2).map(Number) | varying),
        st.builds(Negative, inner),
    )


def _conditions() -> st.SearchStrategy[Node]:
    side = st.recursive(NUMBERS | NAMES, _arithmetic, max_leaves=4)
    comparison = st.builds(Binary, st.sampled_from(sorted(COMPARISONS)), NAMES, side)
    return comparison | st.builds(Binary, st.sampled_from(["and", "or"]), comparison, comparison)


CONDITIONS = _conditions()


def _extended(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    varying = _sum_with_name(inner)
    vectors = st.builds(lambda a, b: Binary("*", a, Apply("grad", (b,))), inner, inner)
    lists = st.lists(inner, min_size=1, max_size=4)
    return st.one_of(
        _arithmetic(inner),
        st.builds(lambda f, a: Apply(f, (a,)), ONE_ARGUMENT, varying),
        st.builds(lambda f, a: Apply(f, tuple(a)), st.sampled_from(["min", "max"]), lists),
        st.builds(lambda v: Apply("div", (v,)), vectors | st.builds(Negative, vectors)),
        st.builds(lambda v, c, o: Apply("piecewise", (v, c, o)), inner, CONDITIONS, inner),
        st.builds(Derivative, FIELDS | varying, MARKS),
    )


TREES: st.SearchStrategy[Node] = st.recursive(NUMBERS | NAMES, _extended, max_leaves=12)


@settings(max_examples=400, deadline=None)
@given(TREES)
def test_what_is_printed_parses_to_the_same_tree(tree: Node) -> None:
    try:
        parsed = parse_tree(to_text(tree), SCOPE)
    except SpecificationError as error:
        if not any(limit in str(error) for limit in LIMITS):
            raise
    else:
        assert parsed == tree


PIECES = st.sampled_from(
    [
        *"+-*/^()<>=,_. [",
        *("**", "<=", "==", "u", "x", "nu", "u_x", "_xx"),
        *("1e9", "9**9", "1e-3", "and", "or", "éλ", "\n", "\0"),
        *("sin(", "max(", "piecewise(", "D(", "div(", "grad(", "import os", "__", "9" * 50, "(" * 60),
    ]
)


@settings(max_examples=600, deadline=1000)
@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=60).map("".join)))
@example("9**9**9**9")
@example("(" * 2500)
@example("-" * 1999 + "x")
@example("x**" * 600 + "x")
@example("1+" * 999 + "1")
def test_garbage_is_refused_in_a_sentence_or_read_but_never_breaks(text: str) -> None:
    for parse in (parse_tree, parse_equation_tree):
        message = "column"
        try:
            parse(text, SCOPE)
        except SpecificationError as error:
            message = str(error)
        assert message.startswith("column")


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9**9",
        "((((x**99)**99)**99)**99)**99",
        "2**-(10**9)",
        "(2*x)**(10**9)",
        "1e999",
        "exp(exp(exp(9)))",
        "(" * 1000,
        "x" + "**x" * 500,
        "+".join(["x"] * 1500),
    ],
)
def test_abuse_is_refused_at_once(text: str) -> None:
    start = time.process_time()
    with pytest.raises(SpecificationError, match="column"):
        parse_tree(text, SCOPE)
    assert time.process_time() - start < 1


def test_what_sympy_would_compute_without_end_is_built_and_evaluated_in_floats() -> None:
    start = time.process_time()
    tree = parse_tree("exp(10**40*log(9*x)) + exp(exp(exp(exp(x))))", Scope.of(["x"]))
    to_sympy(tree)
    with pytest.raises(SpecificationError, match="no finite real value with x = 9"):
        evaluate_tree(tree, {"x": 9.0})
    assert time.process_time() - start < 10  # the first call imports sympy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2*3**2/-2", 1 + 2 * 3**2 / -2),
        ("-2**2", -4.0),
        ("2^-1", 0.5),
        ("2**3**2", 512.0),
        ("1e-3 + .5 + 2.", 2.501),
        ("8/4/2 - 1 - 1", -1.0),
        ("max(abs(u))", 2.0),
        ("min(u, 3, nu) + max(u, nu)", -1.75),
        ("cfl*dx/max(abs(u))", 0.0025),
        ("dx**2/(2*nu)", 0.0002),
        ("piecewise(1, u < -5, 2, u < 0 and nu > 0, 3)", 2.0),
        ("piecewise(1, u < -5 or nu >= 1, 3)", 3.0),
        ("Heaviside(u) + Heaviside(0) + Heaviside(nu)", 1.5),
        ("sqrt(nu)*sign(u)", -0.5),
        ("J0(nu) - J1(nu)", 0.98443592929585 - 0.12402597732273),
        ("erf(nu) + erfc(nu)", 1.0),
        ("atan2(nu, u)", math.atan2(0.25, -2.0)),
        ("E**nu - exp(nu) + pi", math.pi),
    ],
)
def test_values(text: str, expected: float) -> None:
    values = {"u": -2.0, "nu": 0.25, "dx": 0.01, "cfl": 0.5}
    assert evaluate_tree(parse_tree(text, Scope.of(values)), values) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=100, deadline=None)
@given(TREES)
def test_sympy_and_the_tree_have_the_same_value(tree: Node) -> None:
    values = {"nu": 0.7, "k_x": 1.3, "u": 0.4, "x": 0.6, "t": 0.2}
    try:
        plain = evaluate_tree(parse_tree(to_text(tree), Scope.of(values)), values)
        program = compile_expressions([to_sympy(tree)], list(values))
    except SpecificationError:
        return
    with np.errstate(all="ignore"):
        (found,) = program(*map(np.float64, values.values()))
    assert found == pytest.approx(plain, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "column", "parts"),
    [
        ("x**2/(2*mu)", 9, ["unknown name 'mu'; did you mean 'u'? valid names: E, k_x, nu, pi, t, u"]),
        ("vx + 1", 1, ["did you mean 'Vx'?"]),
        ("2x", 2, ["expected an operator or the end", "found 'x'", "a product is written with '*'"]),
        ("2(x)", 2, ["a product is written with '*'"]),
        ("u(1 - x)", 2, ["'u' is not a function", "'*'"]),
        ("sin + 1", 1, ["write sin(…)"]),
        ("exq(x)", 1, ["unknown function 'exq'", "did you mean 'exp'?", "piecewise"]),
        ("(x + 1", 7, ["expected an operator or ')'", "found the end"]),
        ("x +", 4, ["expected a number, a name, '(' or a sign, found the end"]),
        ("", 1, ["found the end"]),
        ("x = 1", 3, ["expected an operator or the end of the expression, found '='"]),
        ("u_xz", 3, ["'_xz' is not made of coordinates", "valid coordinates: t, x, y"]),
        ("nu_x", 1, ["unknown name 'nu_x'"]),
        ("(nu)_x", 2, ["'nu' is not a field", "valid fields: u, Vx"]),
        ("D(u, 2)", 6, ["'2' is not a coordinate"]),
        ("D(u)", 1, ["takes 2 to 9 arguments"]),
        ("u _x", 3, ["u_xx, (u**2)_x"]),
        ("(u)_xxxxyyyyy", 4, ["order above 8"]),
        ("piecewise(1, x < piecewise(1, x < 2, 3), 2)", 14, ["without another piecewise"]),
        ("0 < x < 1", 1, ["expected a number, found a condition", "'and'"]),
        ("piecewise(1, 2, 3)", 14, ["expected a condition, found a number"]),
        ("piecewise(1, x < 1)", 1, ["takes 3 to 49 arguments, found 2"]),
        ("piecewise(1, x < 1, 2, x < 2)", 1, ["odd number"]),
        ("grad(u)", 1, ["expected a number, found a vector"]),
        ("div(u)", 5, ["expected a vector, found a number"]),
        ("div(grad(u) + 1)", 15, ["expected a vector, found a number"]),
        ("-(x < 1)", 3, ["expected a number, found a condition"]),
        ("div(grad(u)*grad(u))", 13, ["expected a number, found a vector"]),
        ("sin(grad(u))", 5, ["expected a number, found a vector"]),
        ("1/0", 2, ["division by zero"]),
        ("sqrt(-1)", 1, ["not a finite real number"]),
        ("x**101", 4, ["at most 100"]),
        ("x ! 2", 3, ["unexpected character '!'"]),
        ("ν*x", 1, ["unexpected character 'ν'", "ASCII"]),
        ("x == 1", 3, ["separated by one '='"]),
        ("and", 1, ["expected a number"]),
    ],
)  # fmt: skip
def test_errors_name_the_column_the_expected_and_the_valid(text: str, column: int, parts: list[str]) -> None:
    with pytest.raises(SpecificationError) as caught:
        parse_tree(text, SCOPE)
    message = str(caught.value)
    assert message.startswith(f"column {column} of '{text}': ")
    assert all(part in message for part in parts), message


def test_derivatives_have_no_meaning_without_coordinates() -> None:
    with pytest.raises(SpecificationError, match="unknown function 'lap'"):
        parse_tree("lap(u)", Scope.of(["u"]))


def test_names_of_several_letters_are_split_into_the_longest_coordinates() -> None:
    scope = Scope.of([], ["c"], ["r", "theta", "t"])
    tree = parse_tree("c_thetathetat", scope)
    assert tree == Derivative(Name("c"), ("theta", "theta", "t"))
    assert to_text(tree) == "D(c, theta, theta, t)"
    assert parse_tree(to_text(tree), scope) == tree


def test_equations_become_sympy_with_fields_of_space_and_time() -> None:
    import sympy

    x, y, t, nu = sympy.symbols("x y t nu")
    u, a = (sympy.Function(name)(x, y, t) for name in "ua")
    text = "u_t + (u**2/2)_x = nu*lap(u) - div(a*grad(u))"
    tree = parse_equation_tree(text, Scope.of(["nu"], ["u", "a"], ["x", "y", "t"]))
    equation = equation_to_sympy(tree, ["u", "a"], ["x", "y"], "t")
    assert (equation.lhs - (u.diff(t) + u * u.diff(x))).doit().expand() == 0
    flux = (a * u.diff(x)).diff(x) + (a * u.diff(y)).diff(y)
    assert (equation.rhs - (nu * (u.diff(x, 2) + u.diff(y, 2)) - flux)).doit().expand() == 0


def test_sums_and_multiples_of_vectors() -> None:
    text = "div(2*grad(u) + grad(u)*3 - (-grad(u))/2) = 5.5*lap(u)"
    tree = parse_equation_tree(text, Scope.of([], ["u"], ["x", "y"]))
    equation = equation_to_sympy(tree, ["u"], ["x", "y"], None)
    assert (equation.lhs - equation.rhs).doit().expand() == 0


@given(TREES, TREES)
@settings(max_examples=50, deadline=None)
def test_equations_are_printed_and_read_back(left: Node, right: Node) -> None:
    equation = Equation(left, right)
    try:
        parsed = parse_equation_tree(to_text(equation), SCOPE)
    except SpecificationError as error:
        if not any(limit in str(error) for limit in LIMITS):
            raise
    else:
        assert parsed == equation


def test_equations_need_exactly_one_sign_of_equality() -> None:
    for text, column in (("u_t", 4), ("u_t = 1 = 2", 9), ("= 1", 1)):
        with pytest.raises(SpecificationError, match=f"column {column} of"):
            parse_equation_tree(text, SCOPE)


@pytest.mark.parametrize(
    ("text", "values", "parts"),
    [
        ("dx/c", {"dx": 1.0}, ["'dx/c' needs a value of 'c'", "valid names: dx"]),
        ("dx/c", {"dx": 1.0, "c": 0.0}, ["no finite real value with dx = 1, c = 0"]),
        ("sqrt(c)", {"c": -1.0}, ["no finite real value with c = -1"]),
        ("exp(c)", {"c": 1e4}, ["no finite real value with c = 10000"]),
    ],
)
def test_expressions_without_a_value_say_why(text: str, values: dict[str, float], parts: list[str]) -> None:
    with pytest.raises(SpecificationError) as caught:
        evaluate_tree(parse_tree(text, Scope.of(["dx", "c"])), values)
    assert all(part in str(caught.value) for part in parts), caught.value


def test_names_in_leaves_constants_out() -> None:
    assert names_in(parse_tree("2*pi*nu*u_x + E", SCOPE)) == {"nu", "u"}


def test_products_with_zero_are_zero_before_anything_is_evaluated() -> None:
    tree = parse_tree("cosh(2*x - 8*0)", Scope.of(["x"]))
    assert not any(part.is_Mul and 0 in part.args for part in sympy.preorder_traversal(to_sympy(tree)))
