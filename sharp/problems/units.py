"""Units of measurement, by pint: of names, of whole expressions, and whether equations are consistent.

Units are compared in kind and in size, so that mm and m differ as clearly as mm and s. Degrees Celsius count as
kelvin: equations of physics hold differences of temperature.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce
from operator import mul
from typing import Any, TypeAlias

from sharp.error_messages import clip, valid_values
from sharp.errors import SpecificationError
from sharp.problems.expressions import (
    CONSTANTS,
    Apply,
    Binary,
    Derivative,
    Name,
    Negative,
    Node,
    Number,
    names_in,
    to_text,
    value_of,
)
from sharp.problems.grammar import Scope, parse_tree

Unit: TypeAlias = Any
"""A unit of pint, whose own types are not precise enough."""

PREFIXES = "f p n u m c d h k M G T"
"""The prefixes that docs/reference/problems.md lists."""
COMMON = (
    *("g", "m", "s", "A", "K", "mol", "Hz", "N", "Pa", "J", "W", "C", "V", "F", "ohm", "T", "eV", "L"),
    *("cd", "min", "h", "day", "bar", "degC", "rad", "deg", "percent"),
)
"""The units that docs/reference/problems.md lists; pint knows more."""
_ROUNDING = 1e-9
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@cache
def _registry() -> Any:
    """Load pint's units, once and where a specification has some: it takes a third of a second."""
    import pint

    return pint.UnitRegistry()


def parse_unit(text: str) -> Unit:
    """Parse `W/(m*K)`, `kg/m**3` or `1`; raises `SpecificationError` naming common units.

    The grammar reads the text, for pint would also calculate in it, without a bound.
    """
    names = {name: _named(name, text) for name in _NAME.findall(text)}
    tree = parse_tree(text, Scope(frozenset(names), functions=False))
    return _unit_of(tree, names)


def _named(name: str, text: str) -> Unit:
    for known in (f"delta_{name}", name):  # of a scale with an offset, as that of degC, its differences
        try:
            return _registry().Unit(known)
        except (AttributeError, ValueError):
            continue
    valid = valid_values("units", name, COMMON)
    raise SpecificationError(f"unknown unit '{name}' in '{clip(text)}'; {valid}; with prefixes {PREFIXES}")


def _unit_of(tree: Node, names: Mapping[str, Unit]) -> Unit:
    match tree:
        case Number(1):
            return _one()
        case Name(name):
            return names[name]
        case Binary("*", left, right):
            return _unit_of(left, names) * _unit_of(right, names)
        case Binary("/", left, right):
            return _unit_of(left, names) / _unit_of(right, names)
        case Binary("**", left, right):
            return _unit_of(left, names) ** _exponent(right)
        case _:
            raise SpecificationError(
                f"'{to_text(tree)}' is no unit; expected products, quotients and powers of units, or 1"
            )


def _exponent(tree: Node) -> float:
    try:
        return float(Fraction(value_of(tree, {})).limit_denominator(60))
    except KeyError:
        raise SpecificationError(
            f"the exponent '{to_text(tree)}' of a quantity with a unit is not a number"
        ) from None


def _one() -> Unit:
    return _registry().Unit("")


def matches(one: Unit, other: Unit) -> bool:
    """Return whether quantities in both units may be added as they are."""
    try:
        factor, rest = _registry().get_base_units(one / other)
    except OverflowError:
        return False
    # Sums of fractional powers miss 0 by rounding.
    same = all(abs(power) < _ROUNDING for power in rest.dimensionality.values())
    return same and math.isclose(factor, 1, rel_tol=_ROUNDING)


def unit_text(unit: Unit) -> str:
    """Return a unit in SI base units with its factor, as `0.001*m`; `1` for none."""
    try:
        factor, base = _registry().get_base_units(unit)
    except OverflowError:
        return f"{unit:~C}"
    number = [] if math.isclose(factor, 1, rel_tol=_ROUNDING) else [f"{factor:g}"]
    return "*".join([*number, *filter(None, [f"{base:~C}"])]) or "1"


@dataclass(frozen=True)
class Quantities:
    """Names with their units; `grad`, `div` and `lap` run over `space`.

    The methods raise `SpecificationError` where terms of different units meet, or a function such as `sin` is
    given a quantity with a unit.
    """

    units: Mapping[str, Unit]
    space: tuple[str, ...] = ()

    def unit(self, node: Node) -> Unit | None:
        """Return the unit of an expression, None for the number 0, which fits any."""
        match node:
            case Number(value):
                return _one() if value else None
            case Name(name):
                return _one() if name in CONSTANTS else self.units[name]
            case Negative(of):
                return self.unit(of)
            case Derivative(of, by):
                return _per(self.unit(of), [self.units[name] for name in by])
            case Binary(op, left, right):
                return self._binary(op, left, right)
            case Apply(function, arguments):
                return self._apply(function, arguments)

    def common(self, *terms: Node) -> Unit | None:
        """Return the unit that all terms share."""
        known = [(term, unit) for term in terms if (unit := self.unit(term)) is not None]
        for term, unit in known[1:]:
            first, expected = known[0]
            if not matches(unit, expected):
                raise SpecificationError(
                    f"terms of different units: '{clip(to_text(first))}' is in {unit_text(expected)}, "
                    f"'{clip(to_text(term))}' in {unit_text(unit)}"
                )
        return known[0][1] if known else None

    def _binary(self, op: str, left: Node, right: Node) -> Unit | None:
        if op not in ("*", "/", "**"):
            return self.common(left, right)
        first, second = self.unit(left), self.unit(right)
        if op == "**":
            return _one() if first in (_one(), None) else first ** _exponent(right)
        if first is None or second is None:
            return None
        return first * second if op == "*" else first / second

    def _apply(self, function: str, arguments: tuple[Node, ...]) -> Unit | None:
        match function:
            case "abs" | "min" | "max":
                return self.common(*arguments)
            case "sign" | "Heaviside" | "atan2":
                self.common(*arguments)
                return _one()
            case "piecewise":
                for condition in arguments[1:-1:2]:
                    self.unit(condition)
                return self.common(*arguments[:-1:2], arguments[-1])
            case "sqrt":
                inner = self.unit(arguments[0])
                return None if inner is None else inner**0.5
            case "grad" | "div" | "lap":
                length = self.common(*map(Name, self.space)) or _one()
                return _per(self.unit(arguments[0]), [length] * (2 if function == "lap" else 1))
            case _:
                return self._pure(function, arguments[0])

    def _pure(self, function: str, argument: Node) -> Unit:
        found = self.unit(argument) or _one()
        if not matches(found, _one()):
            raise SpecificationError(
                f"'{function}' takes a number without a unit; '{clip(to_text(argument))}' is in {unit_text(found)}"
            )
        return _one()


def _per(unit: Unit | None, lengths: Iterable[Unit]) -> Unit | None:
    return None if unit is None else unit / reduce(mul, lengths, _one())


@dataclass(frozen=True)
class UnitConversion:
    """How a number is brought to another unit: `factor` times it plus `offset`; `unit` is None where none is known."""

    factor: float = 1.0
    offset: float = 0.0
    unit: str | None = None

    def __call__(self, value: float) -> float:
        """Return a value in the unit."""
        return self.factor * value + self.offset


def measured(tree: Node, units: Mapping[str, Unit], measure: Iterable[str], pure: Iterable[str]) -> Unit:
    """Return the unit of an expression times those of some coordinates; names in `pure` have none.

    Raises `SpecificationError` where terms of different units meet.
    """
    known = {**units, **dict.fromkeys(pure, _one())}
    found = Quantities(known).unit(tree) or _one()
    return reduce(mul, (units[name] for name in measure), found)


def conversion(tree: Node, found: Unit, text: str | None, written: Mapping[str, str]) -> UnitConversion:
    """Return how values of an expression in a unit are brought to the one that `text` names.

    `written` holds the units of names as they are given. A temperature is moved to the zero of the other scale, a
    difference of two is not. Raises `SpecificationError` for a unit of another kind.
    """
    zero = zero_of(tree, written) if _same_kind(found, _kelvin()) else Zero(0.0, 0.0)
    if text is None:
        return UnitConversion(unit=zero.unit if zero and zero.count else _short(found))
    wanted = parse_unit(text)
    if not _same_kind(found, wanted):
        raise SpecificationError(f"expected a unit of the kind of {unit_text(found)}, found '{text}'")
    factor = float(_registry().get_base_units(found / wanted)[0])
    if zero is None or (zero.count not in (0.0, 1.0)) or (_begins(text) and not _same_kind(found, _kelvin())):
        if _begins(text) or any(_begins(written.get(name, "")) for name in names_in(tree)):
            shown = clip(to_text(tree))
            raise SpecificationError(
                f"'{text}' fits a temperature or a difference of two, and '{shown}' is neither"
            )
        return UnitConversion(factor, 0.0, text)
    shift = zero.kelvin - _begins(text) if zero.count else 0.0
    return UnitConversion(factor, shift / float(_registry().get_base_units(wanted)[0]), text)


def _short(unit: Unit) -> str:
    """Return a unit as text without what cancels in it."""
    reduced = _registry().Quantity(1.0, unit).to_reduced_units()
    chosen = reduced.units if math.isclose(reduced.magnitude, 1.0, rel_tol=_ROUNDING) else unit
    return f"{chosen:~C}".replace("Δ°C", "K").replace("Δ°F", "delta_degF") or "1"


def _same_kind(one: Unit, other: Unit) -> bool:
    return all(abs(power) < _ROUNDING for power in (one / other).dimensionality.values())


def _kelvin() -> Unit:
    return _registry().Unit("K")


@dataclass(frozen=True)
class Zero:
    """Of a sum of temperatures: how many are added (1, or 0 for a difference), and where their scale begins, in K."""

    count: float
    kelvin: float
    unit: str | None = None


def zero_of(tree: Node, units: Mapping[str, str]) -> Zero | None:
    """Return where the scale of an expression begins by the units of its names as written; None where that is open."""
    match tree:
        case Name(name) if name in units and _is_temperature(units[name]):
            return Zero(1.0, _begins(units[name]), units[name])
        case Number() | Name() | Derivative():
            return Zero(0.0, 0.0)
        case Negative(of):
            return _times(-1.0, zero_of(of, units))
        case Binary("+" | "-" as op, left, right):
            return _sum(zero_of(left, units), _times(1.0 if op == "+" else -1.0, zero_of(right, units)))
        case Binary("*", Number(factor), other) | Binary("*", other, Number(factor)):
            return _times(float(factor), zero_of(other, units))
        case Binary("/", other, Number(factor)) if factor:
            return _times(1.0 / float(factor), zero_of(other, units))
        case Apply("min" | "max", arguments):
            found = {zero_of(argument, units) for argument in arguments}
            return found.pop() if len(found) == 1 else None
        case _:
            return None


def _sum(first: Zero | None, second: Zero | None) -> Zero | None:
    if first is None or second is None:
        return None
    count = round(first.count + second.count, 12)
    return Zero(count, first.kelvin + second.kelvin, first.unit or second.unit)


def _times(factor: float, zero: Zero | None) -> Zero | None:
    return None if zero is None else Zero(round(factor * zero.count, 12), factor * zero.kelvin, zero.unit)


def _begins(text: str) -> float:
    """Return where the scale of a temperature begins, in kelvin; 0 for other units."""
    if not _is_temperature(text):
        return 0.0
    quantity = _registry().Quantity
    return float(quantity(0.0, _registry().Unit(text)).to("K").magnitude)


def _is_temperature(text: str) -> bool:
    if not _NAME.fullmatch(text):
        return False
    try:
        return bool(_registry().Unit(text).dimensionality == {"[temperature]": 1})
    except (AttributeError, ValueError):
        return False
