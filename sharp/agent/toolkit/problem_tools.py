"""Tools that set a problem up, piece by piece: each takes typed expressions and gives a fragment of a specification."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import yaml
from pydantic import Field

from sharp.agent.tools import Parameters, ToolContext, ToolError, ToolPort, ToolResult, tool
from sharp.problems import (
    Boundary,
    BoundaryType,
    Coordinates,
    Diagnostic,
    Eigenvalue,
    Expression,
    GivenFunction,
    GivenQuantity,
    Identifier,
    Shape,
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
    equations: Annotated[tuple[Expression, ...], Field(min_length=1)]
    eigenvalue: Eigenvalue | None = None


class DomainArgs(Parameters):
    """Where the problem is posed, and for how long."""

    domain: Shape
    time: tuple[Expression, Expression] | None = None


class InitialConditionArgs(Parameters):
    """The state at the initial time: `u`, and `u_t` for an equation of second order in time."""

    field: Identifier
    value: Expression


class BoundaryConditionArgs(Parameters):
    """One condition on one part of the boundary, or on all of it."""

    type: BoundaryType
    where: Expression | None = None
    axis: Identifier | None = None
    field: Identifier | None = None
    a: Expression | None = None
    b: Expression | None = None
    order: Annotated[int, Field(ge=2, le=3)] | None = None
    value: Expression | None = None


class MeanArgs(Parameters):
    """The mean value of a field that is otherwise fixed up to a constant only."""

    field: Identifier
    value: Expression


class ReferenceArgs(Parameters):
    """What to compare with: an exact solution as an expression for each field, or the lowest eigenvalues, ascending."""

    value: dict[Identifier, Expression] = Field(default_factory=dict)
    eigenvalues: tuple[Expression, ...] = ()


class AssembleArgs(Parameters):
    """A title, and the relative error that is aimed at."""

    title: str = "Stated problem"
    accuracy: Annotated[float, Field(gt=0, lt=1)] = 1e-6


_EQUATIONS = ToolPort("equations", "equations", "unknowns, coordinates, parameters and equations")
_DOMAIN = ToolPort("domain", "domain", "the region and the time interval")
_INITIAL = ToolPort("initial", "initial", "one initial value")
_BOUNDARY = ToolPort("boundary", "boundary", "one boundary condition")
_MEAN = ToolPort("mean", "mean", "a mean value")
_REFERENCE = ToolPort("reference", "reference", "an exact solution")
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
    "outward. periodic takes an axis and nothing else.",
    examples=(
        {"type": "dirichlet", "where": "x = 0", "field": "u", "value": "0"},
        {"type": "robin", "where": "x = 1", "field": "u", "a": "1", "b": "2", "value": "t"},
        {"type": "periodic", "axis": "x"},
    ),
)
def define_boundary_condition(call: ToolContext) -> ToolResult:
    """Gives one condition on a part of the boundary, or on all of it."""
    try:
        Boundary.model_validate(_fragment(call))
    except ValueError as error:
        found = re.search(r"Value error, (.*?) \[type=", str(error), re.DOTALL)
        raise ToolError(f"define_boundary_condition: {found[1] if found else error}") from None
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
    (
        _EQUATIONS,
        _DOMAIN,
        ToolPort("initial", "initial", "all initial values", required=False, many=True),
        ToolPort("boundary", "boundary", "all boundary conditions", required=False, many=True),
        ToolPort("mean", "mean", "mean values", required=False, many=True),
        ToolPort("reference", "reference", "an exact solution", required=False),
    ),
    (PROBLEM,),
    AssembleArgs,
    examples=({"title": "A cooling rod", "accuracy": 1e-6},),
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
        "accuracy": parameters.accuracy,
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
    assemble_problem,
)
