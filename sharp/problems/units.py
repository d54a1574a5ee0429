"""Units of measurement: products of powers of SI units, and the units of whole expressions.

A unit is a factor times powers of the seven SI base units, so that mm and m differ as clearly as mm and s.
Degrees Celsius count as kelvin: equations of physics hold differences of temperature.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

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
    to_text,
    value_of,
)
from sharp.problems.grammar import Scope, parse_tree
from sharp.problems.wording import clip, valid_values

_BASE = ("kg", "m", "s", "A", "K", "mol", "cd")


@dataclass(frozen=True)
class Unit:
    """10**`scale` times the SI base units raised to `powers` (kg, m, s, A, K, mol, cd)."""

    scale: float = 0.0
    powers: tuple[Fraction, ...] = (Fraction(0),) * 7

    def __mul__(self, other: Unit) -> Unit:
        powers = tuple(a + b for a, b in zip(self.powers, other.powers, strict=True))
        return Unit(self.scale + other.scale, powers)

    def __truediv__(self, other: Unit) -> Unit:
        return self * other ** Fraction(-1)

    def __pow__(self, exponent: Fraction) -> Unit:
        return Unit(self.scale * float(exponent), tuple(power * exponent for power in self.powers))

    def matches(self, other: Unit) -> bool:
        """Return whether quantities in both units may be added as they are."""
        return self.powers == other.powers and abs(self.scale - other.scale) < 1e-9

    def __str__(self) -> str:
        factor = [] if abs(self.scale) < 1e-9 else [f"{10**self.scale:g}" if abs(self.scale) < 300 else "…"]
        powers = [(name, power) for name, power in zip(_BASE, self.powers, strict=True) if power]
        return (
            "*".join([*factor, *(name if power == 1 else f"{name}**{power}" for name, power in powers)])
            or "1"
        )


ONE = Unit()


def _si(factor: float, **powers: int) -> Unit:
    return Unit(math.log10(factor), tuple(Fraction(powers.get(name, 0)) for name in _BASE))


_PREFIXABLE = {
    "g": _si(1e-3, kg=1),
    "m": _si(1, m=1),
    "s": _si(1, s=1),
    "A": _si(1, A=1),
    "K": _si(1, K=1),
    "mol": _si(1, mol=1),
    "Hz": _si(1, s=-1),
    "N": _si(1, kg=1, m=1, s=-2),
    "Pa": _si(1, kg=1, m=-1, s=-2),
    "J": _si(1, kg=1, m=2, s=-2),
    "W": _si(1, kg=1, m=2, s=-3),
    "C": _si(1, A=1, s=1),
    "V": _si(1, kg=1, m=2, s=-3, A=-1),
    "F": _si(1, kg=-1, m=-2, s=4, A=2),
    "ohm": _si(1, kg=1, m=2, s=-3, A=-2),
    "T": _si(1, kg=1, s=-2, A=-1),
    "eV": _si(1.602176634e-19, kg=1, m=2, s=-2),
    "L": _si(1e-3, m=3),
}
_PLAIN = {
    "cd": _si(1, cd=1),
    "min": _si(60, s=1),
    "h": _si(3600, s=1),
    "day": _si(86400, s=1),
    "bar": _si(1e5, kg=1, m=-1, s=-2),
    "degC": _si(1, K=1),
    "rad": ONE,
    "deg": _si(math.pi / 180),
    "percent": _si(0.01),
}
KNOWN: Mapping[str, Unit] = {**_PREFIXABLE, **_PLAIN}
_PREFIXES = {
    "f": -15,
    "p": -12,
    "n": -9,
    "u": -6,
    "m": -3,
    "c": -2,
    "d": -1,
    "h": 2,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_unit(text: str) -> Unit:
    """Parse `W/(m*K)`, `kg/m**3` or `1`; raises `SpecificationError` naming the valid units."""
    names = {name: _named(name, text) for name in _NAME.findall(text)}
    tree = parse_tree(text, Scope(frozenset(names), functions=False))
    return _unit_of(tree, names)


def _unit_of(tree: Node, names: Mapping[str, Unit]) -> Unit:
    match tree:
        case Number(1):
            return ONE
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


def _exponent(tree: Node) -> Fraction:
    try:
        return Fraction(value_of(tree, {})).limit_denominator(60)
    except KeyError:
        raise SpecificationError(
            f"the exponent '{to_text(tree)}' of a quantity with a unit is not a number"
        ) from None


def _named(name: str, text: str) -> Unit:
    if name in KNOWN:
        return KNOWN[name]
    if name[0] in _PREFIXES and name[1:] in _PREFIXABLE:
        return Unit(_PREFIXES[name[0]]) * _PREFIXABLE[name[1:]]
    valid = valid_values("units", name, KNOWN)
    prefixes = " ".join(_PREFIXES)
    raise SpecificationError(f"unknown unit '{name}' in '{clip(text)}'; {valid}; with prefixes {prefixes}")


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
                return ONE if value else None
            case Name(name):
                return ONE if name in CONSTANTS else self.units[name]
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
            if not unit.matches(expected):
                raise SpecificationError(
                    f"terms of different units: '{clip(to_text(first))}' is in {expected}, "
                    f"'{clip(to_text(term))}' in {unit}"
                )
        return known[0][1] if known else None

    def _binary(self, op: str, left: Node, right: Node) -> Unit | None:
        if op not in ("*", "/", "**"):
            return self.common(left, right)
        first, second = self.unit(left), self.unit(right)
        if op == "**":
            return ONE if first in (ONE, None) else first ** _exponent(right)
        if first is None or second is None:
            return None
        return first * second if op == "*" else first / second

    def _apply(self, function: str, arguments: tuple[Node, ...]) -> Unit | None:
        match function:
            case "abs" | "min" | "max":
                return self.common(*arguments)
            case "sign" | "Heaviside" | "atan2":
                self.common(*arguments)
                return ONE
            case "piecewise":
                for condition in arguments[1:-1:2]:
                    self.unit(condition)
                return self.common(*arguments[:-1:2], arguments[-1])
            case "sqrt":
                inner = self.unit(arguments[0])
                return None if inner is None else inner ** Fraction(1, 2)
            case "grad" | "div" | "lap":
                length = self.common(*map(Name, self.space)) or ONE
                return _per(self.unit(arguments[0]), [length] * (2 if function == "lap" else 1))
            case _:
                return self._pure(function, arguments[0])

    def _pure(self, function: str, argument: Node) -> Unit:
        found = self.unit(argument) or ONE
        if not found.matches(ONE):
            raise SpecificationError(
                f"'{function}' takes a number without a unit; '{clip(to_text(argument))}' is in {found}"
            )
        return ONE


def _per(unit: Unit | None, lengths: Iterable[Unit]) -> Unit | None:
    return None if unit is None else unit / reduce(Unit.__mul__, lengths, ONE)
