"""The eigenvalues of a flux's Jacobian as formulas: the speeds of the waves of a system of conservation laws.

A matrix is taken apart into blocks that do not depend on one another; blocks of one and two rows have eigenvalues by
formula, larger ones where the characteristic polynomial has factors of degree one and two, as those of gas dynamics
and shallow water do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy

# Larger polynomials are not taken apart: it would take longer than all numbers.
_LARGEST = 6


def wave_speeds(jacobian: Any) -> tuple[Any, ...] | None:
    """Return the different eigenvalues of a square matrix of expressions, None where no formula was found."""
    matrix = jacobian.applyfunc(exact)
    found: list[Any] = []
    for block in _blocks(matrix):
        speeds = _block_speeds(block)
        if speeds is None:
            return None
        found += [speed for speed in speeds if speed not in found]
    return tuple(found)


def exact(expression: Any) -> Any:
    """Return an expression with fractions for decimal numbers: polynomials with these have exact factors."""
    numbers = {number: sympy.Rational(repr(float(number))) for number in expression.atoms(sympy.Float)}
    return expression.xreplace(numbers)


def _blocks(matrix: Any) -> Iterator[Any]:
    """Yield the diagonal blocks of a matrix whose rows can be ordered so that nothing stands below them."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    size = matrix.rows
    links = [[int(matrix[i, j] != 0) for j in range(size)] for i in range(size)]
    count, labels = connected_components(csr_array(links), connection="strong")
    for label in range(count):
        rows = [index for index in range(size) if labels[index] == label]
        yield matrix.extract(rows, rows)


def _block_speeds(block: Any) -> tuple[Any, ...] | None:
    if block.rows == 1:
        return (block[0, 0],)
    if block.rows == 2:
        middle = (block[0, 0] + block[1, 1]) / 2
        return _pair(middle, (block[0, 0] - block[1, 1]) ** 2 / 4 + block[0, 1] * block[1, 0])
    if block.rows > _LARGEST:
        return None
    names: dict[Any, Any] = {}
    polynomial = block.applyfunc(lambda entry: _rational(entry, names))
    back = {symbol: expression for expression, symbol in names.items()}
    unknown = sympy.Dummy("speed")
    determinant = sympy.together(polynomial.charpoly().as_expr(unknown))
    numerator, _ = sympy.fraction(sympy.cancel(determinant))
    _, factors = sympy.factor_list(numerator, unknown, *sorted(numerator.free_symbols - {unknown}, key=str))
    found: list[Any] = []
    for factor, _ in factors:
        polynomial = sympy.Poly(factor, unknown)
        if polynomial.degree() == 0:
            continue
        if polynomial.degree() > 2:
            return None
        found += [speed.xreplace(back) for speed in _zeros(polynomial)]
    return tuple(found)


def _rational(expression: Any, names: dict[Any, Any]) -> Any:
    """Return an expression with a symbol for every part that is no ratio of polynomials."""
    if expression.is_Symbol or expression.is_Rational:
        return expression
    if isinstance(expression, (sympy.Add, sympy.Mul)):
        return expression.func(*(_rational(part, names) for part in expression.args))
    if isinstance(expression, sympy.Pow) and expression.exp.is_Integer:
        return sympy.Pow(_rational(expression.base, names), expression.exp)
    return names.setdefault(expression, sympy.Dummy(real=True))


def _zeros(polynomial: Any) -> tuple[Any, ...]:
    if polynomial.degree() == 1:
        slope, rest = polynomial.all_coeffs()
        return (sympy.cancel(-rest / slope),)
    square, slope, rest = polynomial.all_coeffs()
    middle = sympy.cancel(-slope / (2 * square))
    return _pair(middle, sympy.factor(sympy.cancel(slope**2 / (4 * square**2) - rest / square)))


def _pair(middle: Any, radicand: Any) -> tuple[Any, ...]:
    """Return the two eigenvalues about their mean; rounding may make a double one's radicand negative."""
    if radicand == 0:
        return (middle,)
    root = sympy.sqrt(sympy.Max(radicand, 0, evaluate=False), evaluate=False)
    return (middle - root, middle + root)


def radicands(speeds: tuple[Any, ...]) -> set[Any]:
    """Return what stands below the roots of speeds: it has to stay positive, or waves have none."""
    return {
        part.args[0] if part.args[0] != 0 else part.args[1]
        for speed in speeds
        for part in sympy.preorder_traversal(speed)
        if isinstance(part, sympy.Max)
    }
