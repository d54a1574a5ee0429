"""What the equations of a specification demand: the order of every field along every coordinate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sharp.problems.expressions import Apply, Derivative, Equation, Name, Node, children, walk

if TYPE_CHECKING:
    from sharp.problems.spec import Boundary

_OPERATORS = ("grad", "div", "lap")


def order(equations: Iterable[Equation], field: str, coordinate: str, space: tuple[str, ...]) -> int | None:
    """Return the highest derivative of a field along a coordinate, or None where the field does not occur."""
    orders = [_order(equation, field, coordinate, space) for equation in equations]
    return max((found for found in orders if found is not None), default=None)


def _order(node: Node | Equation, field: str, coordinate: str, space: tuple[str, ...]) -> int | None:
    if isinstance(node, Name):
        return 0 if node.name == field else None
    orders = [_order(child, field, coordinate, space) for child in children(node)]
    inner = max((found for found in orders if found is not None), default=None)
    if inner is None:
        return None
    match node:
        case Derivative(_, by):
            return inner + by.count(coordinate)
        case Apply("grad" | "div" | "lap" as operator, _):
            return inner + (2 if operator == "lap" else 1) * (coordinate in space)
        case _:
            return inner


def is_open(equations: Iterable[Equation], condition: Boundary, part: str, space: tuple[str, ...]) -> bool:
    """Return whether a condition on an end of a box imposes nothing: a zero slope of a field of first order there.

    Waves leave through such an end, and enter with the state that is there: what arrives unchanged.
    """
    if condition.type != "neumann":
        return False
    return order(equations, str(condition.field), part[:-1], space) == 1


def equivalent(
    first: Equation, second: Equation, fields: Sequence[str], space: Sequence[str], time: str | None
) -> bool:
    """Return whether two equations are equal, as written or after both are expanded, up to their sign."""
    if first == second:
        return True
    if not (_polynomial(first) and _polynomial(second)):
        return False
    a, b = (_residual(equation, fields, space, time) for equation in (first, second))
    return 0 in ((a - b).expand(), (a + b).expand())


def transport_speed(
    equation: Equation,
    field: str,
    axis: str,
    time: str,
    space: Sequence[str],
    parameters: Mapping[str, float],
) -> float | None:
    """Return the constant speed at which a first-order equation carries its field along an axis.

    None where the speed depends on the field, on space or on time, or vanishes.
    """
    if not _polynomial(equation):
        return None
    import sympy

    residual = _residual(equation, (field,), space, time)
    unknown = sympy.Function(field)(*(sympy.Symbol(name) for name in (*space, time)))
    storage, flux = (residual.coeff(sympy.Derivative(unknown, sympy.Symbol(name))) for name in (time, axis))
    values = {sympy.Symbol(name): sympy.Float(value) for name, value in parameters.items()}
    speed = (flux / storage).xreplace(values) if storage != 0 else sympy.nan
    return (float(speed) or None) if speed.is_finite and speed.is_number else None


def _polynomial(equation: Equation) -> bool:
    """Whether an equation has no functions but the differential operators, so that expanding it is safe."""
    return all(part.function in _OPERATORS for part in walk(equation) if isinstance(part, Apply))


def _residual(equation: Equation, fields: Sequence[str], space: Sequence[str], time: str | None) -> Any:
    """Return left minus right side, with all derivatives carried out and products expanded."""
    from sharp.problems.symbolic import equation_to_sympy

    symbolic = equation_to_sympy(equation, fields, space, time)
    return (symbolic.lhs - symbolic.rhs).doit().expand()
