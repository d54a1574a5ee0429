"""What a program that solves a problem has to know of it, in the words of the program: names, orders, held values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sharp.problems.analysis import order
from sharp.problems.expressions import Derivative, Node, names_in, walk
from sharp.problems.grammar import evaluate_tree
from sharp.problems.numpy_printer import CodegenError, Printer, free_names
from sharp.problems.problem import Problem
from sharp.problems.sampling import depends_on_fields, parts_at, periodic_axes
from sharp.problems.spec import Boundary

_FACTORS = {"dirichlet": ("1", "0"), "neumann": ("0", "1")}


@dataclass(frozen=True)
class EndCondition:
    """At an end of an axis (index 0 or -1), `a` times the field plus `b` times its outward derivative is `value`."""

    index: int
    a: float
    b: float
    value: str


@dataclass(frozen=True)
class ConstrainedField:
    """The ends of an axis at which conditions hold a field."""

    field: str
    axis: int
    ends: tuple[EndCondition, ...]

    @property
    def name(self) -> str:
        """The function of the program that sets the values."""
        return f"hold_{self.field}_{self.axis}"


@dataclass(frozen=True)
class SemiDiscreteFormulation:
    """A problem on a box in the names of a program; its properties raise `CodegenError` for what is not known.

    Names that the program has `taken` for itself are not given to coordinates, fields and parameters; `arrays` are the
    names of the coefficients that it is given as arrays.
    """

    problem: Problem
    taken: frozenset[str]
    arrays: Mapping[str, str] = field(default_factory=dict)

    @property
    def time(self) -> str | None:
        """The time coordinate in the program."""
        return self.names[self.problem.time_name] if self.problem.time_name else None

    @property
    def space(self) -> list[str]:
        """The space coordinates in the program."""
        return [self.names[axis] for axis in self.problem.space]

    @property
    def fields(self) -> list[str]:
        """The fields in the program."""
        return [self.names[name] for name in self.problem.fields]

    @property
    def components(self) -> list[str]:
        """The unknowns of first order in time: the fields, and the velocities of those of second order."""
        return [*self.fields, *self.velocities.values()]

    @cached_property
    def names(self) -> dict[str, str]:
        """What the names of coordinates, fields and parameters are in the program."""
        problem = self.problem
        return free_names([*problem.coordinates, *problem.fields, *problem.parameters], self.taken)

    @cached_property
    def printer(self) -> Printer:
        """What prints the expressions of the problem; coefficients that are no arrays are written out."""
        axes = {axis: number for number, axis in enumerate(self.problem.space)}
        given = Printer(self.names, axes)
        coefficients = {
            name: f"({given.code(self.tree(coefficient.expression))})"
            for name, coefficient in self.problem.specification.coefficients.items()
            if name not in self.arrays
        }
        return Printer(
            {**self.names, **coefficients, **self.arrays}, axes, self.problem.time_name, self.velocities
        )

    def tree(self, text: str | None) -> Node:
        """Return the tree of an expression that is given."""
        if text is None:
            raise CodegenError("a function that is sampled")
        return self.problem.tree(text)

    def code(self, text: str | None) -> str:
        """Return the code of an expression that is given."""
        return self.printer.code(self.tree(text))

    @cached_property
    def orders(self) -> dict[str, int]:
        """The highest order of the time derivatives of each field of the problem: 1 or 2, 0 if it is steady."""
        return {name: self._order(name) for name in self.problem.fields}

    def _order(self, field: str) -> int:
        if self.problem.time_name is None:
            return 0
        found = order(self.problem.equations, field, self.problem.time_name, self.problem.space)
        if found not in (1, 2):
            raise CodegenError(f"'{field}' has time derivatives of order {found}")
        return found

    @cached_property
    def velocities(self) -> dict[str, str]:
        """The name in the program of the time derivative of each field of second order."""
        marks = self.problem.time_name
        return {name: f"{self.names[name]}_{marks}" for name, found in self.orders.items() if found == 2}

    @cached_property
    def stiff(self) -> bool:
        """Whether nodes lie too close for explicit steps in time, which waves and transport admit."""
        equations, space = self.problem.equations, self.problem.space
        steepest = max(
            order(equations, name, axis, space) or 0 for name in self.problem.fields for axis in space
        )
        if steepest > 2:
            raise CodegenError(
                "derivatives of third order and higher, which collocation steps through slowly"
            )
        waves = len(self.velocities) == len(self.fields) and not self.viscous
        return steepest > 1 and not waves

    @cached_property
    def viscous(self) -> bool:
        """Whether a velocity is differentiated in space, so that its values at the ends matter."""
        return bool(self.velocities) and any(
            isinstance(part, Derivative) and self.problem.time_name in part.by and len(set(part.by)) > 1
            for equation in self.problem.equations
            for part in walk(equation)
        )

    def periodic(self, axis: str) -> bool:
        """Whether everything repeats along an axis."""
        return axis in periodic_axes(self.problem)

    @cached_property
    def held(self) -> tuple[ConstrainedField, ...]:
        """What conditions hold, by field and axis."""
        found: dict[tuple[str, int], list[EndCondition]] = {}
        for condition in self.problem.specification.boundary:
            if condition.type == "periodic":
                continue
            for part in parts_at(self.problem, str(condition.where)):
                place = self.names[str(condition.field)], self.problem.space.index(part[:-1])
                found.setdefault(place, []).append(self._end(condition, part))
        if any(len({end.index for end in ends}) < len(ends) for ends in found.values()):
            raise CodegenError("two conditions at one end")
        return tuple(ConstrainedField(field, axis, tuple(ends)) for (field, axis), ends in found.items())

    def _end(self, condition: Boundary, part: str) -> EndCondition:
        if condition.type == "derivative":
            raise CodegenError("a condition on higher derivatives")
        if depends_on_fields(self.problem, condition):
            raise CodegenError("a condition that depends on the solution")
        factors = _FACTORS.get(condition.type, (condition.a, condition.b))
        a, b = (self._constant(str(factor)) for factor in factors)
        return EndCondition(-1 if part.endswith("+") else 0, a, b, self.code(condition.value))

    def _constant(self, text: str) -> float:
        tree = self.problem.tree(text)
        if names_in(tree) - self.problem.parameters.keys():
            raise CodegenError("factors of a condition that are not constant")
        return evaluate_tree(tree, self.problem.parameters)


def mentions(code: str, name: str) -> bool:
    """Whether a name occurs in code."""
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", code) is not None
