"""Checks of units: each is known, and equations are consistent where all quantities have one."""

from __future__ import annotations

from sharp.problems.checks import Checked
from sharp.problems.expressions import names_in
from sharp.problems.units import Quantities, Unit, parse_unit
from sharp.problems.wording import valid_values
from sharp.problems.yaml_source import Path


def check_units(checked: Checked) -> None:
    """Units parse; where every name has one, the terms of each equation agree."""
    spec = checked.spec
    places = (*checked.coordinates, *spec.fields, *spec.coefficients)
    units: dict[str, Unit] = {}
    for name, text in spec.units.items():
        if name not in places:
            valid = valid_values("names", name, places)
            checked.wrong(("units", name), f"'{name}' is no coordinate, field or coefficient; {valid}")
        _set_unit(checked, units, ("units", name), name, text)
    for name, quantity in spec.parameters.items():
        if quantity.unit is not None:
            _set_unit(checked, units, ("parameters", name, "unit"), name, quantity.unit)
    _derive(checked, units)
    if {*places, *spec.parameters} <= units.keys():
        quantities = Quantities(units, checked.space)
        for index, equation in enumerate(checked.equations):
            sides = (equation.left, equation.right)
            checked.attempt_as("unit-mismatch", ("equations", index), quantities.common, *sides)


def _set_unit(checked: Checked, units: dict[str, Unit], path: Path, name: str, text: str) -> None:
    unit = checked.attempt(path, parse_unit, text)
    if unit is not None:
        units[name] = unit


def _derive(checked: Checked, units: dict[str, Unit]) -> None:
    """Give computed parameters the unit that follows, or compare it with the one written."""
    quantities = Quantities(units)
    for name, tree in checked.trees.items():
        if not names_in(tree) or not names_in(tree) <= units.keys():
            continue
        found = checked.attempt_as("unit-mismatch", ("parameters", name), quantities.unit, tree)
        if found is not None and not found.matches(units.setdefault(name, found)):
            message = f"the value is in {found}, the unit is given as {units[name]}"
            checked.wrong(("parameters", name), message, "unit-mismatch")
