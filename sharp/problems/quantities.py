"""Quantities of interest: numbers that are asked for of a solution, ready to be computed.

Each is a value of an expression, or its mean, integral, maximum or minimum over all coordinates that are not fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sharp.problems.expressions import Derivative, Node, walk
from sharp.problems.units import UnitConversion

Reduction = Literal["value", "mean", "integral", "maximum", "minimum"]
NORMAL = "normal_"
"""`normal_x` is the component along x of the outward unit normal, on a part of the boundary."""


@dataclass(frozen=True)
class QuantityOfInterest:
    """A number that is asked for, `take` of an expression `tree` of fields and their first derivatives.

    `parts` of the boundary are what it is taken over, None for the domain; `point` is a fixed point [d] instead of
    either. `time` is a fixed time, None for the whole time interval or a steady problem. `mode` counts eigenvalues from
    1. `converted` turns the value in the units of the specification into the unit asked for.
    """

    name: str
    text: str
    tree: Node
    take: Reduction
    parts: tuple[str, ...] | None
    point: tuple[float, ...] | None
    time: float | None
    mode: int | None
    converted: UnitConversion

    @property
    def unit(self) -> str | None:
        """The unit of the number, None where it is not known."""
        return self.converted.unit

    @property
    def derivatives(self) -> tuple[Derivative, ...]:
        """The different derivatives in the expression."""
        return tuple(dict.fromkeys(node for node in walk(self.tree) if isinstance(node, Derivative)))
