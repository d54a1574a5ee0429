"""Checks of the quantities of interest: known names, points in the domain, units of the right kind."""

from __future__ import annotations

from collections.abc import Iterator

from sharp.error_messages import valid_values
from sharp.errors import SpecificationError
from sharp.problems.checks import ValidationContext
from sharp.problems.conditions import parts_of_place
from sharp.problems.expressions import CONSTANTS, Apply, Derivative, Name, Node, names_in, walk
from sharp.problems.grammar import DERIVATIVES, Scope, parse_tree
from sharp.problems.quantities import NORMAL, QuantityOfInterest
from sharp.problems.spec import QuantitySpec
from sharp.problems.units import UnitConversion, conversion, measured
from sharp.yaml_source import Path


def check_quantities(checked: ValidationContext) -> None:
    """Every quantity is a number of this problem: known names, points in the domain, a unit of the right kind."""
    found = [_checked(checked, name, asked) for name, asked in checked.spec.quantities.items()]
    checked.quantities = tuple(quantity for quantity in found if quantity is not None)


def _checked(checked: ValidationContext, name: str, asked: QuantitySpec) -> QuantityOfInterest | None:
    path, before = ("quantities", name), len(checked.faults)
    if checked.spec.eigenvalue is not None:
        return _eigenvalue(checked, name, asked)
    _check_keys(checked, path, asked)
    point = _point(checked, path, asked)
    time = _time(checked, path, asked)
    parts = _parts(checked, path, asked)
    tree = _tree(checked, path, asked)
    if len(checked.faults) > before or tree is None:
        return None
    measure = list(_measure(checked, asked, parts)) if asked.take == "integral" else []
    converted = checked.attempt((*path, "unit"), _converted, checked, tree, measure, asked.unit)
    if converted is None:
        return None
    return QuantityOfInterest(name, asked.value, tree, asked.take, parts, point, time, None, converted)


def _eigenvalue(checked: ValidationContext, name: str, asked: QuantitySpec) -> QuantityOfInterest | None:
    """Of an eigenvalue problem numbers of its eigenvalues can be asked: eigenfunctions have no sign and no size."""
    unknown, path = checked.spec.eigenvalue, ("quantities", name)
    assert unknown is not None, "the problem has eigenvalues"
    mode = asked.mode or 1
    if asked.at or asked.over or asked.take != "value":
        message = "expected value, mode and unit alone, as the problem is one of eigenvalues"
        checked.add_issue(path, message)
        return None
    if mode > unknown.count:
        checked.add_issue((*path, "mode"), f"expected a mode up to {unknown.count}, found {mode}")
        return None
    scope = Scope.of([*checked.spec.parameters, unknown.name])
    tree = checked.attempt((*path, "value"), parse_tree, asked.value, scope)
    if tree is None:
        return None
    converted = checked.attempt((*path, "unit"), _converted, checked, tree, [], asked.unit)
    if converted is None:
        return None
    return QuantityOfInterest(name, asked.value, tree, "value", None, None, None, mode, converted)


def _check_keys(checked: ValidationContext, path: Path, asked: QuantitySpec) -> None:
    space = [name for name in checked.space if name in asked.at]
    for name in asked.at:
        if name not in checked.coordinates:
            valid = valid_values("coordinates", name, checked.coordinates)
            checked.add_issue((*path, "at", name), f"'{name}' is no coordinate; {valid}")
    if asked.mode is not None:
        checked.add_issue((*path, "mode"), "expected no mode, as the problem has no eigenvalue")
    if space and len(space) < len(checked.space):
        missing = ", ".join(name for name in checked.space if name not in space)
        checked.add_issue((*path, "at"), f"expected all space coordinates or none; missing: {missing}")
    if space and asked.over:
        checked.add_issue((*path, "over"), "expected a point in `at`, or a part in `over`; found both")
    fixed = {*asked.at} >= {*checked.coordinates}
    if asked.take == "value" and (asked.over or not fixed):
        missing = ", ".join(name for name in checked.coordinates if name not in asked.at)
        reason = f"missing: {missing}" if missing else "found a part in `over`"
        message = (
            f"a value needs a point in `at`; {reason}. Or expected take: mean, integral, maximum, minimum"
        )
        checked.add_issue((*path, "at"), message)
    if asked.take != "value" and fixed:
        message = f"expected a coordinate that the {asked.take} is taken over; `at` fixes all of them"
        checked.add_issue((*path, "at"), message)


def _point(checked: ValidationContext, path: Path, asked: QuantitySpec) -> tuple[float, ...] | None:
    if not {*asked.at} >= {*checked.space}:
        return None
    return fixed_point(checked, (*path, "at"), asked.at)


def fixed_point(checked: ValidationContext, path: Path, at: dict[str, str]) -> tuple[float, ...] | None:
    """Return a point [d] of the domain, or None after noting that it is none."""
    import numpy as np

    found = [checked.number((*path, name), at[name]) for name in checked.space]
    point = tuple(value for value in found if value is not None)
    if len(point) < len(found) or checked.domain is None:
        return None
    if not checked.domain.inside(np.array([point]))[0]:
        shown = ", ".join(f"{name} = {value:g}" for name, value in zip(checked.space, point, strict=True))
        ends = (f"{name} from {low:g} to {high:g}" for name, (low, high) in checked.bounds.items())
        checked.add_issue(path, f"expected a point of the domain ({', '.join(ends)}), found {shown} outside")
        return None
    return point


def _time(checked: ValidationContext, path: Path, asked: QuantitySpec) -> float | None:
    if checked.time_name is None or checked.time_name not in asked.at:
        return None
    place = (*path, "at", checked.time_name)
    value = checked.number(place, asked.at[checked.time_name])
    return fixed_time(checked, place, value)


def fixed_time(checked: ValidationContext, path: Path, value: float | None) -> float | None:
    """Return a time of the time interval, or None after noting that it is none."""
    if value is None or checked.time is None:
        return None
    start, end = checked.time
    slack = 1e-12 * (end - start)
    if not start - slack <= value <= end + slack:
        checked.add_issue(path, f"expected a time from {start:g} to {end:g}, found {value:g}")
        return None
    return min(max(value, start), end)


def _parts(checked: ValidationContext, path: Path, asked: QuantitySpec) -> tuple[str, ...] | None:
    if asked.over is None:
        return None
    return parts_of_place(checked, (*path, "over"), asked.over, ())


def _tree(checked: ValidationContext, path: Path, asked: QuantitySpec) -> Node | None:
    normals = [NORMAL + name for name in checked.space] if asked.over else []
    names = [*checked.spec.parameters, *checked.spec.coefficients, *normals]
    scope = Scope.of(names, checked.spec.fields, checked.coordinates)
    tree = checked.attempt((*path, "value"), parse_tree, asked.value, scope)
    return tree and checked.attempt((*path, "value"), _of_first_order, tree, checked.spec.fields)


def _of_first_order(tree: Node, fields: tuple[str, ...]) -> Node:
    for node in walk(tree):
        match node:
            case Derivative(Name(name), (_,)) if name in fields:
                allowed = True
            case Derivative():
                allowed = False
            case _:
                allowed = not (isinstance(node, Apply) and node.function in DERIVATIVES)
        if not allowed:
            raise SpecificationError(
                "expected fields and their first derivatives, such as u_x; found another"
            )
    return tree


def _measure(checked: ValidationContext, asked: QuantitySpec, parts: tuple[str, ...] | None) -> Iterator[str]:
    """Yield the coordinates whose units an integral multiplies."""
    if not {*asked.at} & {*checked.space}:
        yield from checked.space if parts is None else checked.space[1:]
        yield from checked.space[:1] * checked.spec.coordinates.radial_power
    if checked.time_name and checked.time_name not in asked.at:
        yield checked.time_name


def _converted(
    checked: ValidationContext, tree: Node, measure: list[str], unit: str | None
) -> UnitConversion:
    pure = {NORMAL + name for name in checked.space} | {*CONSTANTS}
    derived = (name for node in walk(tree) if isinstance(node, Derivative) for name in node.by)
    names = {*names_in(tree), *derived, *measure} - pure
    missing = sorted(names - checked.units.keys())
    if missing and unit is not None:
        raise SpecificationError(
            f"'{unit}' is asked for, and the unit of {', '.join(missing)} is not given in units"
        )
    if missing or not names:
        return UnitConversion(unit=None if names else unit)
    spec = checked.spec
    given = {name: str(quantity.unit) for name, quantity in spec.parameters.items() if quantity.unit}
    return conversion(tree, measured(tree, checked.units, measure, pure), unit, {**given, **spec.units})
