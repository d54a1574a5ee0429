"""Checks that need the whole specification: names, values of numbers, and expressions in their places."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from sharp.error_messages import valid_values
from sharp.errors import SpecificationError
from sharp.problems.analysis import order
from sharp.problems.expressions import Equation, Node, Number, names_in
from sharp.problems.grammar import (
    RESERVED,
    Scope,
    evaluate_tree,
    parse_equation_tree,
    parse_tree,
    with_definitions,
)
from sharp.problems.quantities import QuantityOfInterest
from sharp.problems.spec import Specification
from sharp.yaml_source import Path, ValidationIssue

if TYPE_CHECKING:
    from sharp.problems.plane_domains import Domain  # loads NumPy

_FIXED = "domains do not move; for a change of phase, state the enthalpy on a fixed domain"
_UNKNOWN_NAME = re.compile(r"unknown name '(\w+)'")
_Computed = TypeVar("_Computed")


@dataclass
class ValidationContext:
    """A specification, what checking it has found out so far, and what is wrong with it.

    `parameters` and `trees` hold the values and expressions of the parameters, each after those it needs; `units` those
    of all names that have one.
    """

    spec: Specification
    faults: list[ValidationIssue] = field(default_factory=list)
    parameters: dict[str, float] = field(default_factory=dict)
    trees: dict[str, Node] = field(default_factory=dict)
    domain: Domain | None = None
    time: tuple[float, float] | None = None
    equations: list[Equation] = field(default_factory=list)
    units: dict[str, Any] = field(default_factory=dict)
    quantities: tuple[QuantityOfInterest, ...] = ()
    listed: dict[str, tuple[float, ...]] = field(default_factory=dict)
    probes: dict[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        """The smallest box around the domain; empty where the domain is wrong."""
        return self.domain.bounds if self.domain else {}

    @property
    def space(self) -> tuple[str, ...]:
        """The space coordinates."""
        return self.spec.coordinates.space

    @property
    def time_name(self) -> str | None:
        """The name of the time coordinate, None in steady problems."""
        return self.spec.coordinates.time

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The space coordinates, then time."""
        return self.spec.coordinates.names

    def order(self, name: str, coordinate: str) -> int | None:
        """Return the highest derivative of a field along a coordinate, None where it does not occur."""
        return order(self.equations, name, coordinate, self.space)

    def add_issue(self, path: Path, message: str, kind: str = "form", question: str = "") -> None:
        """Note a fault."""
        self.faults.append(ValidationIssue(path, message, kind, question))

    def attempt(
        self, path: Path, compute: Callable[..., _Computed], *arguments: Any, kind: str = "form"
    ) -> _Computed | None:
        """Return what `compute` returns, or None after noting its error as a fault of a kind.

        A name that is declared nowhere is always a fault of its own kind.
        """
        try:
            return compute(*arguments)
        except SpecificationError as error:
            unknown = _UNKNOWN_NAME.search(str(error))
            if unknown:
                number = f", a number ({_FIXED})" if path[:1] == ("domain",) else ""
                self.add_issue(
                    path, str(error), "unknown-name", f"What is the value of {unknown[1]}{number}?"
                )
            else:
                self.add_issue(path, str(error), kind)
            return None

    def scope(self, coordinates: Iterable[str] = ()) -> Scope:
        """Return the names of an expression of the parameters and some coordinates."""
        return Scope.of([*self.spec.parameters, *coordinates])

    def expression(self, path: Path, text: str, coordinates: Iterable[str] = ()) -> Node | None:
        """Parse an expression of the parameters and some coordinates."""
        return self.attempt(path, parse_tree, text, self.scope(coordinates))

    def number(self, path: Path, text: str) -> float | None:
        """Evaluate an expression of the parameters; None where it or a parameter in it is wrong."""
        moving = self._what_moves(text)
        if moving:
            hint = f" ({_FIXED})" if path[:1] == ("domain",) else ""
            self.add_issue(path, f"expected a number, found '{text}', which depends on '{moving}'{hint}")
            return None
        tree = self.expression(path, text)
        if tree is None or not names_in(tree) <= self.parameters.keys():
            return None
        return self.attempt(path, evaluate_tree, tree, self.parameters)

    def _what_moves(self, text: str) -> str | None:
        """Return the coordinate or field that what should be a number depends on."""
        try:
            held = names_in(parse_tree(text, self.scope([*self.coordinates, *self.spec.fields])))
        except SpecificationError:
            return None
        return next((name for name in (*self.coordinates, *self.spec.fields) if name in held), None)

    def interval(self, path: Path, ends: tuple[str, str]) -> tuple[float, float] | None:
        """Evaluate two ends; the first must be less than the second."""
        low, high = (self.number((*path, index), text) for index, text in enumerate(ends))
        if low is None or high is None:
            return None
        if low >= high:
            self.add_issue(path, f"expected a start below the end, found {low:g} and {high:g}")
            return None
        return low, high

    def same_keys(
        self,
        path: Path,
        found: Iterable[str],
        wanted: Iterable[str],
        what: str,
        kinds: tuple[str, str] = ("form", "form"),
        question: str = "",
    ) -> None:
        """Note the keys that are not wanted in a mapping, or missing from it: faults of the first and second kind.

        `question` asks for the missing ones: `{}` stands for them.
        """
        found, wanted = list(found), list(wanted)
        for name in found:
            if name not in wanted:
                self.add_issue(
                    (*path, name), f"'{name}' is not {what}; {valid_values('keys', name, wanted)}", kinds[0]
                )
        missing = [name for name in wanted if name not in found]
        if missing:
            lacking = ", ".join(missing)
            message = f"expected an entry for each of {', '.join(wanted)}; missing: {lacking}"
            self.add_issue(path, message, kinds[1], question.format(lacking))


def check_names(checked: ValidationContext) -> None:
    """Every name is declared once and hides nothing of the grammar, of Python or of the derivative marks."""
    places = list(_declared(checked.spec))
    count = Counter(name for _, name in places)
    names = set(count)
    for path, name in places:
        if count[name] > 1:
            checked.add_issue(
                path, f"the name '{name}' is declared {count[name]} times; expected different names"
            )
        if name in RESERVED or keyword.iskeyword(name):
            checked.add_issue(path, f"'{name}' is a word of the grammar or of Python; choose another name")
        head, _, marks = name.rpartition("_")
        if head in names and marks and set(marks) <= set("".join(checked.coordinates)):
            checked.add_issue(path, f"'{name}' reads as a derivative of '{head}'; choose another name")


def _declared(spec: Specification) -> Iterator[tuple[Path, str]]:
    for index, name in enumerate(spec.coordinates.space):
        yield ("coordinates", "space", index), name
    if spec.coordinates.time:
        yield ("coordinates", "time"), spec.coordinates.time
    for index, name in enumerate(spec.fields):
        yield ("fields", index), name
    if spec.eigenvalue:
        yield ("eigenvalue", "name"), spec.eigenvalue.name
    for section in ("coefficients", "parameters", "definitions"):
        for name in getattr(spec, section):
            yield (section, name), name


def check_parameters(checked: ValidationContext) -> None:
    """Every parameter has a value, in whatever order they are written."""
    pending: dict[str, Node] = {}
    for name, quantity in checked.spec.parameters.items():
        tree = checked.expression(("parameters", name), quantity.value)
        if tree is not None:
            pending[name] = tree
    while ready := [name for name, tree in pending.items() if names_in(tree) <= checked.parameters.keys()]:
        for name in ready:
            tree, place = pending.pop(name), ("parameters", name)
            value = checked.attempt(
                place, evaluate_tree, tree, checked.parameters, kind="singular-coefficient"
            )
            if value is not None:
                checked.parameters[name], checked.trees[name] = value, tree
    for name, tree in pending.items():
        circle = sorted(names_in(tree) & pending.keys())
        if names_in(tree) <= pending.keys() | checked.parameters.keys():
            checked.add_issue(
                ("parameters", name), f"the value depends on itself, through {', '.join(circle)}"
            )


def check_time(checked: ValidationContext) -> None:
    """There is a time interval where there is time."""
    spec = checked.spec
    question = f"From when to when is the solution wanted: the first and last {checked.time_name}?"
    only_with_time(checked, ("time",), spec.time, "missing-time-interval", question)
    if spec.time is not None:
        checked.time = checked.interval(("time",), spec.time)


def only_with_time(
    checked: ValidationContext, path: Path, value: object, kind: str = "form", question: str = ""
) -> None:
    """Note an entry that is missing from a time-dependent problem, or given in a steady one."""
    if checked.time_name and value is None:
        message = f"expected a value, as the problem depends on the time {checked.time_name}; found nothing"
        checked.add_issue(path, message, kind, question)
    if not checked.time_name and value is not None:
        checked.add_issue(path, "expected nothing, as no time coordinate is declared in coordinates.time")


def check_equations(checked: ValidationContext) -> None:
    """There is one equation a field, every field occurs, and time does where it is declared."""
    spec = checked.spec
    unknown = [spec.eigenvalue.name] if spec.eigenvalue else []
    names = [*spec.parameters, *unknown]
    scope = Scope.of(names, (*spec.fields, *spec.coefficients), checked.coordinates)
    definitions = _definitions(checked, scope)
    for index, text in enumerate(spec.equations):
        equation = checked.attempt(("equations", index), _equation, text, scope, definitions)
        if equation is not None:
            checked.equations.append(equation)
    if len(checked.equations) < len(spec.equations):
        return
    if len(spec.equations) != len(spec.fields):
        message = (
            f"expected one equation for each field ({', '.join(spec.fields)}), found {len(spec.equations)}"
        )
        few = len(spec.equations) < len(spec.fields)
        question = f"Which other equation holds for {', '.join(spec.fields)}?" if few else ""
        checked.add_issue(
            ("equations",), message, "missing-equation" if few else "too-many-equations", question
        )
    for index, name in enumerate(spec.fields):
        if checked.order(name, checked.space[0]) is None:
            question = f"Which equation holds for {name}?"
            message = f"the field '{name}' occurs in no equation"
            checked.add_issue(("fields", index), message, "missing-equation", question)
    if checked.time_name and not any(checked.order(name, checked.time_name) for name in spec.fields):
        checked.add_issue(("equations",), f"no equation has a derivative along the time {checked.time_name}")


def _definitions(checked: ValidationContext, scope: Scope) -> dict[str, Node]:
    """Return the expression of every definition, those before it written out; notes what is wrong with them."""
    found: dict[str, Node] = {}
    for name, text in checked.spec.definitions.items():
        tree = checked.attempt(("definitions", name), _definition, text, scope, found)
        # A definition that is wrong is a number in those that follow, lest each use be a fault of its own.
        found[name] = Number(1) if tree is None else tree
    return found


def _definition(text: str, scope: Scope, known: Mapping[str, Node]) -> Node:
    tree = parse_tree(text, scope.plus(known))
    return with_definitions(tree, known, scope)


def _equation(text: str, scope: Scope, definitions: Mapping[str, Node]) -> Equation:
    written = parse_equation_tree(text, scope.plus(definitions))
    left, right = (with_definitions(side, definitions, scope) for side in (written.left, written.right))
    return Equation(left, right)


def check_expressions(checked: ValidationContext) -> None:
    """Coefficients depend on space, an exact solution on all coordinates, and each field has one."""
    spec = checked.spec
    for name, given in spec.coefficients.items():
        if given.expression is not None:
            checked.expression(("coefficients", name), given.expression, checked.space)
    for name, text in spec.mean.items():
        if name not in spec.fields:
            checked.add_issue(
                ("mean", name), f"'{name}' is not a field; {valid_values('fields', name, spec.fields)}"
            )
        checked.expression(("mean", name), text, [checked.time_name] if checked.time_name else [])
    for index, text in enumerate(spec.reference.eigenvalues):
        checked.number(("reference", "eigenvalues", index), text)
    _check_eigenvalue(checked)
    if spec.reference.value:
        checked.same_keys(("reference", "value"), spec.reference.value, spec.fields, "a field")
    for name, text in spec.reference.value.items():
        checked.expression(("reference", "value", name), text, checked.coordinates)


def _check_eigenvalue(checked: ValidationContext) -> None:
    """An eigenvalue belongs to a steady problem and occurs in its equations."""
    unknown = checked.spec.eigenvalue
    if unknown is None:
        return
    if checked.time_name:
        checked.add_issue(
            ("eigenvalue",), "expected a steady problem, as eigenvalues are of those; found a time coordinate"
        )
    if not any(unknown.name in names_in(equation) for equation in checked.equations):
        checked.add_issue(("eigenvalue", "name"), f"'{unknown.name}' occurs in no equation")
