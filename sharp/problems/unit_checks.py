"""Checks of units: each parses, and the terms of every equation have the same one."""

from __future__ import annotations

from sharp.error_messages import valid_values
from sharp.problems.checks import ValidationContext
from sharp.problems.expressions import names_in
from sharp.problems.units import Quantities, Unit, matches, parse_unit, unit_text
from sharp.yaml_source import Path


def check_units(checked: ValidationContext) -> None:
    """Units parse; where every name has one, the terms of each equation agree."""
    spec = checked.spec
    unknown = [spec.eigenvalue.name] if spec.eigenvalue else []
    places = (*checked.coordinates, *spec.fields, *spec.coefficients, *unknown)
    units = checked.units
    for name, text in spec.units.items():
        if name not in places:
            valid = valid_values("names", name, places)
            checked.add_issue(
                ("units", name), f"'{name}' is no coordinate, field, coefficient or eigenvalue; {valid}"
            )
        _set_unit(checked, units, ("units", name), name, text)
    for name, quantity in spec.parameters.items():
        if quantity.unit is not None:
            _set_unit(checked, units, ("parameters", name, "unit"), name, quantity.unit)
    _derive(checked, units)
    if {*places, *spec.parameters} <= units.keys():
        quantities = Quantities(units, checked.space)
        for index, equation in enumerate(checked.equations):
            sides = (equation.left, equation.right)
            checked.attempt(("equations", index), quantities.common, *sides, kind="unit-mismatch")


def _set_unit(checked: ValidationContext, units: dict[str, Unit], path: Path, name: str, text: str) -> None:
    unit = checked.attempt(path, parse_unit, text)
    if unit is not None:
        units[name] = unit


def _derive(checked: ValidationContext, units: dict[str, Unit]) -> None:
    """Give computed parameters the unit that follows, or compare it with the one written."""
    quantities = Quantities(units)
    for name, tree in checked.trees.items():
        if not names_in(tree) or not names_in(tree) <= units.keys():
            continue
        found = checked.attempt(("parameters", name), quantities.unit, tree, kind="unit-mismatch")
        if found is not None and not matches(found, units.setdefault(name, found)):
            message = f"the value is in {unit_text(found)}, the unit is given as {unit_text(units[name])}"
            checked.add_issue(("parameters", name), message, "unit-mismatch")
