"""The solver's interface, the data layout and the output grid: checks of them, and what they are by default."""

from __future__ import annotations

import keyword
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from sharp.error_messages import valid_values
from sharp.problems.checks import ValidationContext, only_with_time
from sharp.problems.conditions import initial_keys
from sharp.problems.problem import OutputGrid
from sharp.problems.quantity_checks import fixed_point
from sharp.problems.spec import ArrayPort, DataLayout, Interface, Outputs
from sharp.yaml_source import Path

# Nodes along each axis in one, two and three space dimensions, and output times, that are enough to draw a solution.
_POINTS = {1: 101, 2: 41, 3: 17}
_TIMES = 11


def check_outputs(checked: ValidationContext) -> None:
    """The output grid has points along each space coordinate, and output times where there is time."""
    outputs = checked.spec.outputs
    if outputs is None:
        return
    if outputs.points:
        checked.same_keys(("outputs", "points"), outputs.points, checked.space, "a space coordinate")
    if outputs.times is not None:
        only_with_time(checked, ("outputs", "times"), outputs.times)
    checked.listed = {
        name: found for name in outputs.at if (found := _listed(checked, name, outputs.at[name])) is not None
    }
    for name, at in outputs.probes.items():
        path, before = ("outputs", "probes", name), len(checked.faults)
        checked.same_keys(path, at, checked.space, "a space coordinate")
        if len(checked.faults) == before and (point := fixed_point(checked, path, at)) is not None:
            checked.probes[name] = point


def _listed(checked: ValidationContext, name: str, texts: Sequence[str]) -> tuple[float, ...] | None:
    """Return the points of a coordinate that are listed: ascending, and within the domain or the time interval."""
    path: Path = ("outputs", "at", name)
    if name not in checked.coordinates:
        valid = valid_values("coordinates", name, checked.coordinates)
        checked.add_issue(path, f"'{name}' is no coordinate; {valid}")
        return None
    found = [checked.number((*path, index), text) for index, text in enumerate(texts)]
    values = tuple(value for value in found if value is not None)
    ends = checked.time if name == checked.time_name else checked.bounds.get(name)
    if len(values) < len(found) or ends is None:
        return None
    slack = 1e-12 * (ends[1] - ends[0])
    if any(later <= earlier for earlier, later in pairwise(values)):
        checked.add_issue(path, "expected ascending values")
        return None
    if values[0] < ends[0] - slack or values[-1] > ends[1] + slack:
        checked.add_issue(path, f"expected values from {ends[0]:g} to {ends[1]:g}, found others")
        return None
    return tuple(min(max(value, ends[0]), ends[1]) for value in values)


def check_interface(checked: ValidationContext) -> None:
    """Ports hold what the problem knows, arguments have different names, and all fields are returned."""
    interface = checked.spec.interface
    if interface is None:
        return
    given = (*initial_keys(checked), *checked.spec.coefficients)
    _check_ports(checked, "inputs", interface.inputs, given, "is not given at the start, nor a coefficient")
    _check_ports(checked, "returns", interface.returns, checked.spec.fields, "is not a field")
    only_with_time(checked, ("interface", "coordinates"), interface.coordinates)
    for index, name in enumerate(interface.parameters):
        if name not in checked.spec.parameters:
            valid = valid_values("parameters", name, checked.spec.parameters)
            checked.add_issue(("interface", "parameters", index), f"'{name}' is not a parameter; {valid}")
    times = [interface.coordinates] if interface.coordinates else []
    arguments = [*(port.name for port in interface.inputs), *times, *interface.parameters]
    _check_different(checked, ("interface",), arguments, "arguments")
    _check_different(
        checked, ("interface", "returns"), [port.name for port in interface.returns], "returned arrays"
    )
    _check_complete(checked, interface, given)


def _check_ports(
    checked: ValidationContext, side: str, ports: Sequence[ArrayPort], known: Sequence[str], fault: str
) -> None:
    for index, port in enumerate(ports):
        path: Path = ("interface", side, index)
        if port.field not in known:
            valid = valid_values("fields", port.field, known)
            checked.add_issue((*path, "field"), f"'{port.field}' {fault}; {valid}")
        shapes = _shapes(checked, with_time=side == "returns")
        if port.shape not in shapes:
            valid = " or ".join(f"[{', '.join(shape)}]" for shape in shapes)
            checked.add_issue((*path, "shape"), f"expected the axes {valid}, found [{', '.join(port.shape)}]")


def _shapes(checked: ValidationContext, *, with_time: bool) -> list[tuple[str, ...]]:
    """Return the accepted axes: one symbol N for all space axes, or Nx, Ny, … for each its own."""
    times = ("T+1",) if with_time and checked.time_name else ()
    shapes = [("batch", *times, *("N" for _ in checked.space))]
    if len(checked.space) > 1:
        shapes.append(("batch", *times, *(f"N{name}" for name in checked.space)))
    return shapes


def _check_different(checked: ValidationContext, path: Path, names: Iterable[str], what: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            checked.add_issue(path, f"{count} {what} are named '{name}'; expected different names")
        if keyword.iskeyword(name):
            checked.add_issue(path, f"'{name}' is a keyword of Python and cannot name one of the {what}")


def _check_complete(checked: ValidationContext, interface: Interface, given: Sequence[str]) -> None:
    spec = checked.spec
    functions = {**spec.initial, **spec.coefficients}
    sampled = {name for name in given if name in functions and functions[name].family is not None}
    for side, wanted, ports in (
        ("inputs", sampled, interface.inputs),
        ("returns", {*spec.fields}, interface.returns),
    ):
        missing = sorted(wanted - {port.field for port in ports})
        if missing:
            checked.add_issue(
                ("interface", side),
                f"expected a port for each of {', '.join(sorted(wanted))}; missing: {', '.join(missing)}",
            )


def check_data(checked: ValidationContext) -> None:
    """The data layout names a key for each port, and for the times where there is time."""
    data, interface = checked.spec.data, checked.spec.interface
    if data is None:
        return
    if interface is None:
        checked.add_issue(
            ("data",), "expected an interface as well, whose arrays the keys are of; found none"
        )
        return
    checked.same_keys(("data", "inputs"), data.inputs, (port.name for port in interface.inputs), "an input")
    checked.same_keys(
        ("data", "returns"), data.returns, (port.name for port in interface.returns), "a returned array"
    )
    only_with_time(checked, ("data", "time_key"), data.time_key)
    if data.space_keys and len(data.space_keys) != len(checked.space):
        found = len(data.space_keys)
        checked.add_issue(
            ("data", "space_keys"),
            f"expected a key for each of {', '.join(checked.space)}, or none; found {found}",
        )


def grid_of(checked: ValidationContext) -> OutputGrid:
    """Return the output grid as written, or one that is enough to draw the solution."""
    outputs, count = checked.spec.outputs or Outputs(), _POINTS[len(checked.space)]
    points = {name: outputs.points.get(name, count) for name in checked.space}
    times = (outputs.times or _TIMES) if checked.time_name else None
    return OutputGrid(outputs.grid, points, times, checked.listed, checked.probes)


def default_interface(checked: ValidationContext) -> Interface:
    """Return the signature whose inputs are the initial states and the coefficients, and whose parameters are all."""
    axes = tuple("N" if len(checked.space) == 1 else f"N{name}" for name in checked.space)
    times = ("T+1",) if checked.time_name else ()
    inputs = [(f"{name}0_batch", name) for name in initial_keys(checked)]
    inputs += [(name, name) for name in checked.spec.coefficients]
    return Interface(
        inputs=tuple(ArrayPort(name=name, field=held, shape=("batch", *axes)) for name, held in inputs),
        coordinates=f"{checked.time_name}_coordinate" if checked.time_name else None,
        parameters=tuple(checked.spec.parameters),
        returns=tuple(
            ArrayPort(name=name, field=name, shape=("batch", *times, *axes)) for name in checked.spec.fields
        ),
    )


def default_layout(interface: Interface) -> DataLayout:
    """Return a layout with an array of its own for each port."""
    return DataLayout(
        inputs={port.name: port.name for port in interface.inputs},
        returns={port.name: port.name for port in interface.returns},
        time_key="t" if interface.coordinates else None,
    )
