"""Programs of elementary operations, on the arrays of three libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

from sharp.errors import SpecificationError
from sharp.problems.programs import LIBRARIES, compile_expressions

X, Y = sympy.symbols("x y", real=True)
POINTS = np.array([0.2, 0.5, 0.7])

# With what NumPy and SciPy make of them.
EXPRESSIONS: dict[str, tuple[Any, Any]] = {
    "polynomial": (3 * X**3 - X / 7 + sympy.Rational(1, 3), lambda x: 3 * x**3 - x / 7 + 1 / 3),
    "powers": (X**-2 + X**0.5 + X ** sympy.Rational(5, 2) + 2**X, lambda x: x**-2 + x**0.5 + x**2.5 + 2**x),
    "trigonometry": (
        sympy.sin(X) * sympy.cos(2 * X) - sympy.tan(X),
        lambda x: np.sin(x) * np.cos(2 * x) - np.tan(x),
    ),
    "inverses": (sympy.asin(X) + sympy.atan2(X, 2), lambda x: np.arcsin(x) + np.arctan2(x, 2)),
    "hyperbolic": (sympy.tanh(X) + sympy.acosh(1 + X), lambda x: np.tanh(x) + np.arccosh(1 + x)),
    "exponential": (sympy.exp(-(X**2)) * sympy.log(X), lambda x: np.exp(-(x**2)) * np.log(x)),
    "extremes": (
        sympy.Max(X, 0.5) - sympy.Min(X, 0.3, X**2),
        lambda x: np.maximum(x, 0.5) - np.minimum(x**2, 0.3),
    ),
    "signs": (sympy.Abs(X - 0.5) + sympy.sign(X - 0.5), lambda x: np.abs(x - 0.5) + np.sign(x - 0.5)),
    "step": (sympy.Heaviside(X - 0.5, 0.5), lambda x: np.array([0, 0.5, 1])),
    "piecewise": (
        sympy.Piecewise((X, X < 0.4), (2, sympy.And(X >= 0.4, X <= 0.5)), (X**2, True)),
        lambda x: np.array([0.2, 2, 0.49]),
    ),
    "slope of a step": (sympy.diff(sympy.Heaviside(X - 0.5), X), lambda x: 0 * x),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_have_the_same_value_in_every_library(name: str, library: str) -> None:
    expression, expected = EXPRESSIONS[name]
    if library == "torch":
        pytest.importorskip("torch")
    (found,) = compile_expressions([expression], ["x"])(array(library, POINTS), library=library)
    np.testing.assert_allclose(np.asarray(found), expected(POINTS), rtol=1e-6 if library == "jax" else 1e-14)


def array(library: str, values: Any) -> Any:
    if library == "jax":
        import jax.numpy

        return jax.numpy.asarray(values)
    if library == "torch":
        import torch

        return torch.as_tensor(values)
    return values


def test_special_functions_are_those_of_scipy() -> None:
    from scipy import special

    expressions = [sympy.erf(X), sympy.erfc(X), sympy.besselj(0, X), sympy.besselj(1, X)]
    found = compile_expressions(expressions, ["x"])(POINTS)
    functions = (special.erf, special.erfc, special.j0, special.j1)
    for value, function in zip(found, functions, strict=True):
        np.testing.assert_allclose(value, function(POINTS), rtol=1e-14)


def test_arguments_broadcast_and_constants_stay_numbers() -> None:
    product, constant = compile_expressions([X * Y, sympy.pi / 2], ["x", "y"])(POINTS, POINTS[:, None])
    assert product.shape == (3, 3)
    assert constant == pytest.approx(np.pi / 2)


def test_a_subexpression_is_computed_once() -> None:
    shared = sympy.sin(X + Y)
    program = compile_expressions([shared + shared**2, sympy.exp(shared)], ["x", "y"])
    assert [step.operation for step in program.steps].count("sin") == 1


def test_programs_of_equal_expressions_are_equal() -> None:
    first, second = (compile_expressions([X * Y + sympy.sin(X)], ["x", "y"]) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (sympy.Symbol("z") + X, "'z' has no value here; valid names: x"),
        (sympy.gamma(X), "'gamma' is not a function that can be computed"),
        (sympy.Piecewise((X, X < 1)), "no value where none of its conditions holds"),
        (sympy.sqrt(-2) * X, "no finite real number"),
    ],
)
def test_what_cannot_be_computed_is_told(expression: Any, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        compile_expressions([expression], ["x"])


def test_an_unknown_library_is_told() -> None:
    with pytest.raises(ValueError, match="valid libraries: numpy, jax, torch"):
        compile_expressions([X + 1], ["x"])(1.0, library="cupy")


def test_an_exponential_keeps_a_factor_that_no_float_holds() -> None:
    bump = (3.0 * sympy.exp(-1e6 * X**2 + 6e5 * X - 9e4)).doit()
    (values,) = compile_expressions([bump * X], ["x"])(np.array([0.3, 0.301]))
    np.testing.assert_allclose(values, 3 * np.exp([0, -1]) * [0.3, 0.301], rtol=1e-9)
