"""The part of a program that is the equation: rates of all components on a mesh, and values that conditions hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sharp.problems.analysis import order
from sharp.problems.expressions import Apply, Derivative, Equation, Name, Node, walk
from sharp.problems.formulation import End, Formulation, mentions
from sharp.problems.printing import Unprintable, isolated


@dataclass(frozen=True)
class Semidiscrete:
    """The equations of a problem discretised in space; its properties raise `Unprintable` for what is not known."""

    known: Formulation

    @property
    def dimension(self) -> int:
        """The number of space coordinates."""
        return len(self.known.space)

    @property
    def components(self) -> list[str]:
        """The components of the state as ports call their fields."""
        problem = self.known.problem
        return [*problem.fields, *(f"{name}_{problem.time_name}" for name in self.known.velocities)]

    @cached_property
    def steepest(self) -> int:
        """The highest order of a derivative along an axis."""
        problem = self.known.problem
        return max(
            order(problem.equations, name, axis, problem.space) or 0
            for name in problem.fields
            for axis in problem.space
        )

    @property
    def stiff(self) -> bool:
        """Whether short waves decay or turn so fast that explicit steps are short."""
        waves = len(self.known.velocities) == len(self.known.fields) and not self._damped
        return self.steepest > 1 + waves

    @cached_property
    def _damped(self) -> bool:
        """Whether second derivatives of a velocity are in an equation."""
        sides = (
            side for equation in self.known.problem.equations for side in (equation.left, equation.right)
        )
        return any(_damps(part, str(self.known.problem.time_name)) for side in sides for part in walk(side))

    @property
    def diffuses(self) -> bool:
        """Whether second derivatives of a field are in the equation of its rate, so that short waves decay."""
        problem = self.known.problem
        own = (
            order([self._equation(name)], name, axis, problem.space)
            for name in problem.fields
            for axis in problem.space
        )
        return self.stiff and self.steepest == 2 and 2 in own

    @property
    def bounded(self) -> bool:
        """Whether an axis has ends."""
        return not all(self.known.periodic(axis) for axis in self.known.problem.space)

    @property
    def sloped(self) -> bool:
        """Whether a condition asks for a derivative."""
        return any(end.b for held in self.known.held for end in held.ends)

    @property
    def plain(self) -> bool:
        """Whether all derivatives in space are second ones of fields, or the first ones of a single field."""
        text = "\n".join(self._rates)
        pattern = r"diff\(\w+, \d\)" if len(self.components) == 1 else r"diff\(\w+, (\d), \1\)"
        return len(list(re.finditer(pattern, text))) == text.count("diff(")

    def check(self) -> None:
        """Raise `Unprintable` for a problem that programs of this kind do not treat."""
        problem = self.known.problem
        interface, given = problem.interface, {port.field for port in problem.interface.inputs}
        if interface.function != "solver" or problem.time is None or interface.coordinates is None:
            raise Unprintable("a problem that does not depend on time")
        if self.dimension > 2:
            raise Unprintable("three space dimensions")
        if self.steepest > 2 and self.bounded:
            raise Unprintable("derivatives of third order and higher with conditions at ends")
        if missing := [name for name in self.components if name not in given]:
            raise Unprintable(f"an initial state that is not passed: {', '.join(missing)}")

    @cached_property
    def arguments(self) -> list[str]:
        """The arguments of `solver` that the equations and conditions need."""
        coefficients = list(self.known.arrays.values())
        parameters = [self.known.names[name] for name in self.known.problem.interface.parameters]
        text = "\n".join((*self.closing, *self._rates))
        return [name for name in (*coefficients, *parameters) if mentions(text, name)]

    @cached_property
    def closing(self) -> tuple[str, ...]:
        """What sets the values that conditions hold."""
        return tuple(self._held())

    def _held(self) -> Iterator[str]:
        for held in self.known.held:
            yield from self._ends(held.field, held.axis, held.ends)
        if self.known.viscous:
            yield from self._held_velocities()

    def _held_velocities(self) -> Iterator[str]:
        """Yield what holds velocities, by the time derivative of conditions that do not depend on time."""
        velocities = {self.known.names[name]: velocity for name, velocity in self.known.velocities.items()}
        for held in self.known.held:
            if velocity := velocities.get(held.field):
                if any(mentions(end.value, str(self.known.time)) for end in held.ends):
                    raise Unprintable("a velocity that follows from a condition that depends on time")
                yield from self._ends(velocity, held.axis, [replace(end, value="0.0") for end in held.ends])

    def _ends(self, field: str, axis: int, ends: Sequence[End]) -> Iterator[str]:
        """Yield what sets the values at the ends of an axis; those that are given need no differences."""
        given = [(end, self._there(end, field, axis)) for end in ends]
        if any(end.b for end in ends):
            conditions = ", ".join(f"({end.index}, {end.a!r}, {end.b!r}, {value})" for end, value in given)
            yield f"{field}[...] = held({field}, axes, {axis}, [{conditions}])"
            return
        for end, value in given:
            divided = value if end.a == 1 else f"({value}) / {end.a!r}"
            yield f"{field}[{at(self.dimension, axis, end.index)}] = {divided}"

    def _there(self, end: End, field: str, axis: int) -> str:
        """Return the value of a condition where it holds: arrays have values at all nodes."""
        if any(mentions(end.value, name) for name in (*self.known.space, *self.known.arrays.values())):
            return f"np.broadcast_to({end.value}, {field}.shape)[{at(self.dimension, axis, end.index)}]"
        return end.value

    @cached_property
    def _rates(self) -> tuple[str, ...]:
        return tuple(self._all_rates())

    def _all_rates(self) -> Iterator[str]:
        known = self.known
        accelerations = []
        for row, name in enumerate(known.problem.fields):
            rate, velocity = self._rate(name), known.velocities.get(name)
            yield f"rate[{row}] = {velocity or rate}"
            if velocity:
                accelerations.append((name, rate))
        for row, (_, rate) in enumerate(accelerations, len(known.fields)):
            yield f"rate[{row}] = {rate}"
        fields = [*known.fields, *(known.names[name] for name, _ in accelerations)]
        for row, field in enumerate(fields):
            yield from self._stopped(row, field)

    def _rate(self, field: str) -> str:
        equation = self._equation(field)
        return self.known.printer.code(isolated(equation.left, equation.right, self._highest(field)))

    def _highest(self, field: str) -> Derivative:
        return Derivative(Name(field), (str(self.known.problem.time_name),) * self.known.orders[field])

    def _equation(self, field: str) -> Equation:
        """Return the equation of the rate of a field."""
        for equation in self.known.problem.equations:
            if any(self._highest(field) in walk(side) for side in (equation.left, equation.right)):
                return equation
        raise Unprintable(f"no equation has the rate of '{field}' itself")

    def _stopped(self, row: int, field: str) -> Iterator[str]:
        for held in self.known.held:
            if held.field == field:
                yield from (
                    f"rate[{row}, {at(self.dimension, held.axis, end.index)}] = 0.0" for end in held.ends
                )

    def _coordinates(self, text: Iterable[str]) -> Iterator[str]:
        """Yield what sets those coordinates that a text uses."""
        body = "\n".join(text)
        if any(mentions(body, axis) for axis in self.known.space):
            nodes = ", ".join(f"axes[{number}][0]" for number in range(self.dimension))
            grid = f'np.meshgrid({nodes}, indexing="ij")' if self.dimension > 1 else nodes
            yield f"{', '.join(self.known.space)} = {grid}"

    def operator(self) -> str:
        """Return the functions `closed` and `rates`."""
        known, arguments = self.known, "".join(f", {name}" for name in self.arguments)
        state = ", ".join(known.components) + "," * (len(known.components) == 1)
        closing = [
            *self._coordinates(self.closing),
            "state = state.copy()",
            f"{state} = state",
            *self.closing,
        ]
        return joined(
            f"def closed({known.time}, state, axes{arguments}):",
            '    """Return the components with the end values that the conditions ask for."""',
            *(f"    {line}" for line in closing if self.closing),
            "    return state",
            "",
            "",
            f"def rates({known.time}, state, axes{arguments}):",
            '    """Return the time derivatives of all components, zero where conditions hold the values."""',
            "",
            "    def diff(values, *along):",
            "        return differentiate(axes, values, along)",
            "",
            *(f"    {line}" for line in self._coordinates(self._rates)),
            f"    {state} = closed({known.time}, state, axes{arguments})",
            "    rate = np.empty_like(state)",
            *(f"    {line}" for line in self._rates),
            "    return rate",
        )


def at(dimension: int, axis: int, index: int | str) -> str:
    """Return the subscript of one place, or of a slice of places, along an axis of an array."""
    return f"..., {index}{', :' * (dimension - 1 - axis)}"


def joined(*rows: str) -> str:
    """Return lines of a program without white space at their ends."""
    return re.sub(r"[ \t]+$", "", "\n".join(rows), flags=re.MULTILINE)


def _damps(node: Node, time: str) -> bool:
    """Whether a part of an equation differentiates a time derivative twice or more in space."""
    if isinstance(node, Derivative) and node.by.count(time) < len(node.by) - 1:
        return any(isinstance(part, Derivative) and time in part.by for part in walk(node))
    inner = (part for part in walk(node) if part is not node)
    return (
        isinstance(node, Apply)
        and node.function in ("lap", "div")
        and any(isinstance(part, Derivative) and time in part.by for part in inner)
    )
