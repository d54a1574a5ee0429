"""What goes into a solver and what comes out, in words: shared by the description and the template."""

from __future__ import annotations

from collections.abc import Iterator

from sharp.problems.problem import Problem
from sharp.problems.spec import ArrayPort

TIMES = "the output times in increasing order, the first being the initial time"


def signature(problem: Problem) -> str:
    """Return the call of a solver, as `solver(u0_batch, t_coordinate, nu)`."""
    return f"{problem.interface.function}({', '.join(problem.interface.arguments)})"


def shape(port: ArrayPort) -> str:
    """Return the axes of an array, as `[batch, N]`."""
    return f"[{', '.join(port.shape)}]"


def input_text(problem: Problem, port: ArrayPort) -> str:
    """Return what an input array holds."""
    if port.field in problem.specification.coefficients:
        return f"the coefficient `{port.field}` of each sample at the grid points"
    return f"`{port.field}` of each sample at the initial time"


def return_text(problem: Problem, port: ArrayPort) -> str:
    """Return what a returned array holds, and that it begins with the initial state."""
    if problem.time is None:
        return f"`{port.field}` of each sample at the grid points"
    start = [given.name for given in problem.interface.inputs if given.field == port.field]
    equal = f"; `{port.name}[:, 0]` equals `{start[0]}`" if start else ""
    return f"`{port.field}` of each sample at all output times{equal}"


def axes_text(problem: Problem) -> str:
    """Return what the array axes run over and where the grid points lie."""
    times = ["output time (in returned arrays)"] if problem.time is not None else []
    axes = ", ".join(["sample", *times, *(f"`{name}`" for name in problem.space)])
    return " ".join([f"Array axes: {axes}.", *_grid_lines(problem)])


def _grid_lines(problem: Problem) -> Iterator[str]:
    for name in problem.space:
        low, high = problem.bounds[name]
        count = "N" if "N" in problem.interface.returns[0].shape else f"N{name}"
        start = f"{low:g} + " if low else ""
        if problem.grid.kind == "cells":
            yield (
                f"Along `{name}` the points are the centres of {count} equal cells: "
                f"`{name}_i = {start}(i + 1/2)*d{name}` with `d{name} = {high - low:g}/{count}`."
            )
        else:
            yield (
                f"Along `{name}` there are {count} nodes, both ends included: "
                f"`{name}_i = {start}i*d{name}` with `d{name} = {high - low:g}/({count} - 1)`."
            )


def sizes_text(problem: Problem) -> str:
    """Return the sizes of the data, and that others have to work."""
    sizes = " x ".join(str(problem.grid.points[name]) for name in problem.space)
    spacing = ", ".join(f"d{name} = {gap:.6g}" for name, gap in problem.spacing.items())
    times, grids = "", "grids"
    if problem.time is not None and problem.grid.times is not None:
        step = (problem.time[1] - problem.time[0]) / (problem.grid.times - 1)
        times, grids = f" and T+1 = {problem.grid.times} output times, {step:g} apart", "grids and times"
    return (
        f"The data have {sizes} grid points ({spacing}){times}. "
        f"Read all sizes from the arrays: the solver has to work for other {grids} as well."
    )
