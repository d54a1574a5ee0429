"""Tools that set a problem up, piece by piece: each takes typed expressions and gives a fragment of a specification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, model_validator

from sharp.agent.tools import Parameters, ToolContext, ToolError, ToolPort, ToolResult, tool
from sharp.problems import (
    Boundary,
    Coordinates,
    Diagnostic,
    Eigenvalue,
    Expression,
    GivenFunction,
    GivenQuantity,
    Identifier,
    Outputs,
    QuantitySpec,
    Shape,
    check_syntax,
    diagnose,
)
from sharp.solvers.problem_summary import problem_summary
from sharp.yaml_source import show


class EquationArgs(Parameters):
    """The unknowns and what they obey, in the expression grammar of specifications."""

    coordinates: Coordinates
    fields: Annotated[tuple[Identifier, ...], Field(min_length=1)]
    parameters: dict[Identifier, GivenQuantity] = Field(default_factory=dict)
    coefficients: dict[Identifier, GivenFunction] = Field(default_factory=dict)
    units: dict[Identifier, Expression] = Field(default_factory=dict)
    definitions: dict[Identifier, Expression] = Field(default_factory=dict)
    equations: Annotated[tuple[Expression, ...], Field(min_length=1)]
    eigenvalue: Eigenvalue | None = None

    @model_validator(mode="after")
    def _readable(self) -> EquationArgs:
        unknown = [self.eigenvalue.name] if self.eigenvalue else []
        names = [*self.parameters, *self.coefficients, *unknown]
        functions = (*self.fields, *self.coefficients)
        for text in self.equations:
            check_syntax(text, names, functions, self.coordinates.names, equation=True)
        for quantity in self.parameters.values():
            check_syntax(quantity.value, self.parameters)
        for given in self.coefficients.values():
            check_syntax(given.expression or "0", [*self.parameters, *self.coordinates.space])
        return self


class DomainArgs(Parameters):
    """Where the problem is posed, and for how long."""

    domain: Shape
    time: tuple[Expression, Expression] | None = None

    @model_validator(mode="after")
    def _readable(self) -> DomainArgs:
        for text in self.time or ():
            check_syntax(text)
        return self


class InitialConditionArgs(Parameters):
    """The state at the initial time: `u`, and `u_t` for an equation of second order in time."""

    field: Identifier
    value: Expression

    @model_validator(mode="after")
    def _readable(self) -> InitialConditionArgs:
        check_syntax(self.value)
        return self


class BoundaryConditionArgs(Parameters, Boundary):
    """One condition on one part of the boundary, or on all of it."""

    @model_validator(mode="after")
    def _readable(self) -> BoundaryConditionArgs:
        for text in (self.a, self.b, self.value):
            check_syntax(text or "0")
        return self


class MeanArgs(Parameters):
    """The mean value of a field that is otherwise fixed up to a constant only."""

    field: Identifier
    value: Expression


class ReferenceArgs(Parameters):
    """What to compare with: an exact solution as an expression for each field, or the lowest eigenvalues, ascending."""

    value: dict[Identifier, Expression] = Field(default_factory=dict)
    eigenvalues: tuple[Expression, ...] = ()


class OutputArgs(Parameters, Outputs):
    """Cells or nodes, points along each coordinate, times; lists of own points and times; named probe points."""


class QuantityArgs(Parameters, QuantitySpec):
    """The name of a number that is asked for, and what it is."""

    name: Identifier

    @model_validator(mode="after")
    def _readable(self) -> QuantityArgs:
        for text in (self.value, *self.at.values()):
            check_syntax(text, derivatives=True)
        return self


class AssembleArgs(Parameters):
    """A title, the relative error that is aimed at, and what is meant although it would be asked about."""

    title: str = "Stated problem"
    accuracy: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    allow: tuple[Literal["corner-jump"], ...] = ()


_EQUATIONS = ToolPort("equations", "equations", "unknowns, coordinates, parameters and equations")
_DOMAIN = ToolPort("domain", "domain", "the region and the time interval")
_INITIAL = ToolPort("initial", "initial", "one initial value")
_BOUNDARY = ToolPort("boundary", "boundary", "one boundary condition")
_MEAN = ToolPort("mean", "mean", "a mean value")
_REFERENCE = ToolPort("reference", "reference", "an exact solution")
_OUTPUTS = ToolPort("outputs", "outputs", "where the solution is wanted")
_QUANTITY = ToolPort("quantity", "quantity", "a number that is asked for")
PROBLEM = ToolPort("problem", "problem", "the checked problem")


@tool(
    "parser",
    (),
    (_EQUATIONS,),
    EquationArgs,
    limits="Equations in Cartesian coordinates, one for each field. Derivatives are u_t, u_xx, D(u, x), lap(u), "
    "div(a*grad(u)); products are written with *; numbers are used as written, so units have to agree.",
    examples=(
        {
            "coordinates": {"space": ["x"], "time": "t"},
            "fields": ["u"],
            "parameters": {"alpha": "0.1"},
            "equations": ["u_t = alpha*u_xx"],
        },
    ),
)
def define_equations(call: ToolContext) -> ToolResult:
    """Names the coordinates and unknown fields and gives the equations, with parameters and their units."""
    given = _fragment(call)
    return ToolResult({"equations": given}, {key: given[key] for key in ("equations", "fields")})


@tool(
    "parser",
    (),
    (_DOMAIN,),
    DomainArgs,
    limits="Boxes of one to three dimensions, and in the plane disks, annuli and polygons.",
    examples=(
        {"domain": {"type": "box", "bounds": {"x": ["0", "1"]}}, "time": ["0", "2"]},
        {"domain": {"type": "disk", "radius": "2"}},
    ),
)
def define_domain(call: ToolContext) -> ToolResult:
    """Gives the region, and the time interval of a problem that depends on time."""
    return _told("domain", _fragment(call))


@tool(
    "parser",
    (),
    (_INITIAL,),
    InitialConditionArgs,
    examples=({"field": "u", "value": "sin(pi*x)"}, {"field": "u_t", "value": "0"}),
)
def define_initial_condition(call: ToolContext) -> ToolResult:
    """Gives the value of a field at the initial time, or of its time derivative (field u_t)."""
    return _told("initial", {call.parameters.field: call.parameters.value})


@tool(
    "parser",
    (),
    (_BOUNDARY,),
    BoundaryConditionArgs,
    limits="where is all, one end of an axis such as x = 0, or inner, outer, edge 2. Normal derivatives point "
    "outward. robin means a*field + b*(outward normal derivative) = value: cooling k*du/dn = -h*(u - T) is a: h, b: k, "
    "value: h*T. periodic takes an axis and nothing else.",
    examples=(
        {"type": "dirichlet", "where": "x = 0", "field": "u", "value": "0"},
        {"type": "robin", "where": "x = 1", "field": "u", "a": "1", "b": "2", "value": "t"},
        {"type": "periodic", "axis": "x"},
    ),
)
def define_boundary_condition(call: ToolContext) -> ToolResult:
    """Gives one condition on a part of the boundary, or on all of it."""
    return _told("boundary", _fragment(call))


@tool("parser", (), (_MEAN,), MeanArgs, examples=({"field": "u", "value": "0"},))
def define_mean(call: ToolContext) -> ToolResult:
    """Fixes the mean of a field over the domain, where equations and conditions leave a constant open."""
    return _told("mean", {call.parameters.field: call.parameters.value})


@tool("parser", (), (_REFERENCE,), ReferenceArgs, examples=({"value": {"u": "exp(-t)*sin(x)"}},))
def define_reference_solution(call: ToolContext) -> ToolResult:
    """Gives an exact solution that the result is to be compared with."""
    return _told("reference", _fragment(call))


@tool(
    "parser",
    (),
    (_OUTPUTS,),
    OutputArgs,
    limits="at lists points of single coordinates, ascending, time included; probes are points with all coordinates.",
    examples=(
        {"grid": "cells", "points": {"x": 240}, "times": 41},
        {"at": {"t": ["0", "60", "3600"]}, "probes": {"sensor": {"x": "L/2"}}},
    ),
)
def define_outputs(call: ToolContext) -> ToolResult:
    """Says where the solution is wanted: a grid of cells or nodes, own points and times, probe points."""
    return _told("outputs", _fragment(call))


@tool(
    "parser",
    (),
    (_QUANTITY,),
    QuantityArgs,
    limits="value is an expression of fields and first derivatives. take: value, mean, integral, maximum, minimum, "
    "over all coordinates that `at` leaves free. over: a part of the boundary, where normal_x is a component of the "
    "outward normal. unit converts, if all names have units. mode counts eigenvalues.",
    examples=(
        {"name": "face", "value": "u", "at": {"x": "L", "t": "3600"}, "unit": "degC"},
        {"name": "loss", "value": "-k*u_x*normal_x", "take": "integral", "over": "x = L"},
    ),
)
def define_quantity(call: ToolContext) -> ToolResult:
    """Asks for one number of the solution, which comes back with its error: a value at a point, a mean, a flux."""
    fragment = _fragment(call)
    return _told("quantity", {fragment.pop("name"): fragment})


@tool(
    "parser",
    (
        _EQUATIONS,
        _DOMAIN,
        ToolPort("initial", "initial", "all initial values", required=False, many=True),
        ToolPort("boundary", "boundary", "all boundary conditions", required=False, many=True),
        ToolPort("mean", "mean", "mean values", required=False, many=True),
        ToolPort("reference", "reference", "an exact solution", required=False),
        ToolPort("outputs", "outputs", "where the solution is wanted", required=False),
        ToolPort("quantity", "quantity", "all numbers that are asked for", required=False, many=True),
    ),
    (PROBLEM,),
    AssembleArgs,
    limits="allow: [corner-jump] where the statement means that initial and boundary values differ where they meet, as "
    "in a quenched rod.",
    examples=(
        {"title": "A cooling rod", "accuracy": 1e-6},
        {"title": "A quenched rod", "allow": ["corner-jump"]},
    ),
)
def assemble_problem(call: ToolContext) -> ToolResult:
    """Puts the pieces together and checks that they fit: names, numbers of conditions, units."""
    document = _assembled(call.parameters, call.inputs)
    found = diagnose(yaml.safe_dump(document, allow_unicode=True, sort_keys=False), "problem")
    if found.problem is None:
        raise ToolError(f"assemble_problem: {objections(found.concerns)}")
    told = [f"{name}: {value}" for name, value in problem_summary(found.problem)]
    return ToolResult({"problem": found.problem}, {"as understood": told})


def _fragment(call: ToolContext) -> dict[str, Any]:
    fragment: dict[str, Any] = call.parameters.model_dump(mode="json", exclude_defaults=True)
    return fragment


def _told(port: str, fragment: Mapping[str, Any]) -> ToolResult:
    return ToolResult({port: fragment}, fragment)


def objections(concerns: Iterable[Diagnostic]) -> str:
    """Return what is wrong with a problem, with the question where one is asked for."""
    told = []
    for concern in concerns:
        place = f"{show(concern.path)}: " if concern.path else ""
        question = f" ({concern.question})" if concern.question else ""
        if concern.kind == "corner-jump":
            question += " If a jump is meant: assemble_problem takes allow: [corner-jump]"
        if concern.verdict != "warn":
            told.append(f"[{concern.verdict}: {concern.kind}] {place}{concern.message}{question}")
    return "; ".join(told)


def _assembled(parameters: AssembleArgs, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the specification of fragments as a document; raises `ToolError` where two give the same value."""
    reference = inputs["reference"]
    return {
        "pde_spec": 1,
        "id": "stated-problem",
        "title": parameters.title,
        **inputs["equations"],
        **inputs["domain"],
        "initial": _merged("initial", inputs["initial"]),
        "boundary": inputs["boundary"],
        "mean": _merged("mean", inputs["mean"]),
        **({"reference": {"kind": "exact", **reference}} if reference else {}),
        **({"outputs": inputs["outputs"]} if inputs["outputs"] else {}),
        "quantities": _merged("quantities", inputs["quantity"]),
        "accuracy": parameters.accuracy,
        "allow": list(parameters.allow),
    }


def _merged(what: str, fragments: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for fragment in fragments:
        for name, value in fragment.items():
            if name in merged:
                raise ToolError(
                    f"assemble_problem: {what}: '{name}' is given twice; expected one value for each"
                )
            merged[name] = value
    return merged


TOOLS = (
    define_equations,
    define_domain,
    define_initial_condition,
    define_boundary_condition,
    define_mean,
    define_reference_solution,
    define_outputs,
    define_quantity,
    assemble_problem,
)
