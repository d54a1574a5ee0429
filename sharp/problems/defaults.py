"""What a specification need not say: where the solution is wanted, and the signature of a solver."""

from __future__ import annotations

from sharp.problems.checks import ValidationContext
from sharp.problems.conditions import initial_keys
from sharp.problems.problem import ArrayPort, DataLayout, Interface, OutputGrid

# Nodes along each axis in one, two and three space dimensions, and output times.
_POINTS = {1: 101, 2: 41, 3: 17}
_TIMES = 11


def grid(checked: ValidationContext) -> OutputGrid:
    """Return nodes that are enough to draw the solution."""
    count = _POINTS[len(checked.space)]
    return OutputGrid("nodes", dict.fromkeys(checked.space, count), _TIMES if checked.time_name else None)


def interface(checked: ValidationContext) -> Interface:
    """Return the signature whose inputs are the initial states and the coefficients, and whose parameters are all."""
    axes = tuple("N" if len(checked.space) == 1 else f"N{name}" for name in checked.space)
    inputs = [ArrayPort(f"{name}0_batch", name, ("batch", *axes)) for name in initial_keys(checked)]
    inputs += [ArrayPort(name, name, ("batch", *axes)) for name in checked.spec.coefficients]
    times = ("T+1",) if checked.time_name else ()
    returns = tuple(ArrayPort(name, name, ("batch", *times, *axes)) for name in checked.spec.fields)
    times_name = f"{checked.time_name}_coordinate" if checked.time_name else None
    return Interface("solver", tuple(inputs), times_name, tuple(checked.spec.parameters), returns)


def layout(interface: Interface) -> DataLayout:
    """Return a layout with an array of its own for each port."""
    return DataLayout(
        {port.name: port.name for port in interface.inputs},
        {port.name: port.name for port in interface.returns},
        "t" if interface.coordinates else None,
        (),
    )
