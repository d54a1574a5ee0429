"""Problems outside the library, as prompts describe them, with states and exact solutions on their grids."""

from __future__ import annotations

import contextlib
import io
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from sharp.llm.protocol import Message
from sharp.problems import Problem, render_description
from sharp.problems.cases import load_case
from sharp.problems.loader import parse_problem
from sharp.rule_based.derived_family import family_of
from sharp.rule_based.library import EquationFamily
from sharp.rule_based.prompt_problem import PromptProblem, task
from sharp.solvers.functions import compile_function


def case(name: str) -> Problem:
    return load_case(name).problem


def stated(text: str) -> Problem:
    """Return a problem from the part of a specification that follows its title."""
    return parse_problem(f"pde_spec: 1\nid: stated\ntitle: Stated\n{text}", "stated.yaml")


def asked(problem: Problem) -> PromptProblem:
    return task([Message("user", f"# Write a solver\n\n{render_description(problem)}")])


def family(problem: Problem) -> EquationFamily:
    found = family_of(asked(problem).name)
    assert found is not None, asked(problem).reason
    return found


def grid(problem: Problem, sizes: Mapping[str, int] | None = None) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the points [n, d] of the output grid, or of one with other sizes, and its shape."""
    counts = dict(problem.grid.points) | dict(sizes or {})
    axes = []
    for axis, (low, high) in problem.bounds.items():
        count = counts[axis]
        centres = low + (high - low) * (np.arange(count) + 0.5) / count
        axes.append(centres if problem.grid.kind == "cells" else np.linspace(low, high, count))
    meshed = np.meshgrid(*axes, indexing="ij")
    return np.stack([part.ravel() for part in meshed], axis=-1), meshed[0].shape


def moments(problem: Problem) -> np.ndarray:
    assert problem.time is not None
    return np.linspace(*problem.time, problem.grid.times or 11)


def arguments(problem: Problem, sizes: Mapping[str, int] | None = None, batch: int = 2) -> tuple[Any, ...]:
    """Return the arguments of a solver for the stated data, the same in every sample."""
    points, shape = grid(problem, sizes)
    times = moments(problem)
    functions = {**problem.specification.coefficients, **problem.specification.initial}
    arrays = []
    for port in problem.interface.inputs:
        values = compile_function(problem, functions[port.field].expression or "0")(points, times[:1])
        arrays.append(np.broadcast_to(values.reshape(shape), (batch, *shape)).copy())
    return (*arrays, times, *(problem.parameters[name] for name in problem.interface.parameters))


def exact(problem: Problem, sizes: Mapping[str, int] | None = None) -> np.ndarray:
    """Return the exact solution [field, time, …] on the grid."""
    points, shape = grid(problem, sizes)
    times = moments(problem)
    values = [
        compile_function(problem, problem.specification.reference.value[port.field])(points, times).reshape(
            -1, *shape
        )
        for port in problem.interface.returns
    ]
    return np.stack(values)


def run(code: str, arguments: tuple[Any, ...]) -> tuple[np.ndarray, ...]:
    """Return what the solver of a sound program returns."""
    module = types.ModuleType("candidate")
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "candidate.py", "exec"), module.__dict__)
        found = module.solver(*arguments)
    return found if isinstance(found, tuple) else (found,)


def distance(arrays: tuple[np.ndarray, ...], reference: np.ndarray) -> float:
    """Return the relative L2 distance of the last sample from a reference."""
    found = np.stack([array[-1] for array in arrays])
    return float(np.linalg.norm(found - reference) / np.linalg.norm(reference))
